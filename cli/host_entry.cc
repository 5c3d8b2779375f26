#include "cli/host_entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"

namespace muster::cli {
namespace {

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

int column_at(const HostEntry& entry, size_t byte) {
  const auto bytes = static_cast<std::ptrdiff_t>(std::min(byte, entry.text.size()));
  return entry.column + static_cast<int>(bytes - std::count_if(entry.text.begin(), entry.text.begin() + bytes,
                                                               continues_character));
}

}  // namespace

HostEntry without_comment(HostEntry entry) {
  entry.text.resize(std::min(entry.text.find('#'), entry.text.size()));
  return entry;
}

std::vector<HostWord> words_in(const HostEntry& entry) {
  std::vector<HostWord> out;
  for (size_t at = 0; at < entry.text.size();) {
    const size_t begin = entry.text.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    at = std::min(entry.text.find_first_of(" \t", begin), entry.text.size());
    out.push_back({entry.text.substr(begin, at - begin), column_at(entry, begin)});
  }
  return out;
}

std::optional<SpecError> wrong_character(const HostEntry& entry) {
  for (size_t i = 0; i < entry.text.size(); ++i) {
    const auto c = static_cast<unsigned char>(entry.text[i]);
    if (is_control(entry.text[i]))
      return SpecError{entry.line, column_at(entry, i), "", fmt::format("control character 0x{:02x}", c)};
    if (c >= 0x80)
      return SpecError{entry.line, column_at(entry, i), "",
                       "not an ASCII character: names, destinations and groups must be ASCII"};
  }
  return {};
}

std::vector<HostEntry> entries_of_option(const std::string& text) {
  std::vector<HostEntry> out(1);
  int line = 1, column = 1, depth = 0;
  for (const char c : text) {
    depth += (c == '[') - (c == ']');
    if (!continues_character(c)) ++column;
    if (c == '\n') {
      depth = 0;
      column = 1;
      out.push_back({"", ++line, column});
    } else if (c == ',' && depth <= 0) {
      out.push_back({"", line, column});
    } else {
      out.back().text += c;
    }
  }
  return out;
}

std::vector<std::string> lines_of_hosts_file(const std::string& text) {
  std::vector<std::string> out = split_lines(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text);
  for (std::string& line : out)
    if (line.ends_with('\r')) line.pop_back();
  return out;
}

}  // namespace muster::cli
