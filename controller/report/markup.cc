#include "controller/report/markup.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/digest.h"
#include "base/printable.h"

namespace muster::markup {
namespace {

// Returns the length of the valid UTF-8 sequence at `i`; 0 if there is none.
size_t sequence_length(std::string_view s, size_t i) {
  const auto byte = [&](size_t k) { return k < s.size() ? static_cast<unsigned char>(s[k]) : 0u; };
  const unsigned lead = byte(i);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  if (lead == 0xe0 && byte(i + 1) < 0xa0) return 0;   // overlong
  if (lead == 0xed && byte(i + 1) >= 0xa0) return 0;  // surrogates
  if (lead == 0xef && byte(i + 1) == 0xbf && (byte(i + 2) == 0xbe || byte(i + 2) == 0xbf))
    return 0;  // not allowed in XML
  if ((lead == 0xf0 && byte(i + 1) < 0x90) || (lead == 0xf4 && byte(i + 1) >= 0x90)) return 0;
  return length;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text, i);
    const char c = text[i];
    const bool control = length == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    if (length == 0 || control || c == 0x7f) {
      out += "\xef\xbf\xbd";  // replacement character for the invalid byte
      ++i;
      continue;
    }
    switch (c) {
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
        out += text.substr(i, length);
    }
    i += length;
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
