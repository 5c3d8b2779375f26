#include "controller/report/import/import_text.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/split.h"

namespace muster {
namespace {

void append_utf8(std::string& out, unsigned unit) {
  if (unit < 0x80) {
    out += static_cast<char>(unit);
  } else if (unit < 0x800) {
    out += static_cast<char>(0xc0 | unit >> 6);
    out += static_cast<char>(0x80 | (unit & 0x3f));
  } else if (unit >= 0xd800 && unit < 0xe000) {
    out += '?';  // half a character outside of what these programs print
  } else {
    out += static_cast<char>(0xe0 | unit >> 12);
    out += static_cast<char>(0x80 | (unit >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (unit & 0x3f));
  }
}

// PowerShell's `>` writes UTF-16.
std::string as_utf8(const std::string& text) {
  if (text.starts_with("\xef\xbb\xbf")) return text.substr(3);
  const bool little = text.starts_with("\xff\xfe"), big = text.starts_with("\xfe\xff");
  if (!little && !big) return text;
  std::string out;
  for (size_t i = 2; i + 1 < text.size(); i += 2) {
    const unsigned first = static_cast<unsigned char>(text[i]),
                   second = static_cast<unsigned char>(text[i + 1]);
    append_utf8(out, little ? first | second << 8 : first << 8 | second);
  }
  return out;
}

std::string without_colours(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b' || i + 1 >= text.size() || text[i + 1] != '[') {
      out += text[i];
      continue;
    }
    i += 2;
    while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
  }
  return out;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// "[1,0]<stdout>:", "[prterun-node01-4711@1,0]<stdout>: ", " 0: "
std::string untagged(const std::string& line) {
  if (const size_t end = line.find(">:"); !line.empty() && line[0] == '[' && end != std::string::npos) {
    const std::string tag = line.substr(0, end);
    const bool spaced = has(tag, "@") && line.compare(end, 3, ">: ") == 0;  // Open MPI 5
    if (tag.ends_with("]<stdout") || tag.ends_with("]<stderr")) return line.substr(end + (spaced ? 3 : 2));
  }
  constexpr size_t kLongestRank = 6;
  const size_t end = line.find(": ");
  if (end != std::string::npos && is_number(trim(line.substr(0, std::min(end, kLongestRank)))) &&
      end <= kLongestRank)
    return line.substr(end + 2);
  return line;
}

// The place of the line in the beginning of a run, from 0.
std::optional<size_t> place_of(const std::string& line, const Beginning& beginning) {
  for (size_t i = 0; i < beginning.size(); ++i)
    if (std::all_of(beginning[i].begin(), beginning[i].end(),
                    [&](const char* words) { return has(line, words); }))
      return i;
  return {};
}

}  // namespace

std::string plain_text(const std::string& text) {
  std::string unix_ends = without_colours(as_utf8(text)), out;
  size_t kept = 0;
  for (size_t i = 0; i < unix_ends.size(); ++i)
    if (unix_ends[i] != '\r' || i + 1 >= unix_ends.size() || unix_ends[i + 1] != '\n')
      unix_ends[kept++] = unix_ends[i];
  unix_ends.resize(kept);
  for (const auto& line : split_lines(unix_ends)) out += untagged(line) + "\n";
  return out;
}

std::vector<Run> runs_of(const std::string& text, const Beginning& beginning) {
  std::vector<Run> out = {{"", 1}};
  std::optional<size_t> last;
  size_t number = 0;
  for (const auto& line : split_lines(text)) {
    ++number;
    const auto place = place_of(line, beginning);
    if (place && last && *place <= *last) out.push_back({"", number});
    if (place) last = place;
    out.back().text += line + "\n";
  }
  return out;
}

}  // namespace muster
