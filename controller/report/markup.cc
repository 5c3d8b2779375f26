#include "controller/report/markup.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/digest.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace muster::markup {
namespace {

// XML has no U+FFFE and U+FFFF.
bool may_be_shown(const Utf8Character& character) {
  const uint32_t unicode = character.unicode;
  if (!character.valid || unicode == 0xfffe || unicode == 0xffff) return false;
  return unicode == '\n' || unicode == '\t' || !controls_display(unicode);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    const std::string_view bytes = text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
    if (!may_be_shown(next)) {
      out += "\xef\xbf\xbd";  // replacement character
      continue;
    }
    switch (bytes.front()) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += bytes;
    }
  }
  return out;
}

std::string plain(std::string_view text) { return printable(text, '?'); }

std::string anchor(std::string_view text) {
  std::string out;
  bool exact = true;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    out += plain ? c : '-';
    exact = exact && plain;
  }
  if (!exact || out.empty()) out += "-" + sha256(text).substr(7, 8);
  return out;
}

std::string duration(DurationMs ms) {
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms < 60 * kSecond) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  return to_human(ms);
}

std::string size(uint64_t bytes) {
  static const char* const kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit < 5) value /= 1000, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.3g} {}", value, kUnits[unit]);
}

std::string metric_label(const std::string& check_name) {
  const size_t slash = check_name.rfind('/');
  if (slash == std::string::npos || check_name.starts_with("hardware/")) return "";
  std::string out = check_name.substr(slash + 1);
  if (out == "gflops") return "";
  for (const std::string_view unit : {"_mbps", "_ms"})
    if (out.size() > unit.size() && out.ends_with(unit)) out.resize(out.size() - unit.size());
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

}  // namespace muster::markup
