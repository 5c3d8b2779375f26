// Parts of a text, and lists of names for people. Thread safety: stateless.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns the non-empty pieces between any of these separators: adjacent ones count as one.
inline std::vector<std::string> split(const std::string& text, std::string_view separators) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}
inline std::vector<std::string> split(const std::string& text, char separator) {
  return split(text, std::string_view(&separator, 1));
}

// Returns the lines, without their ends. The text after the last end is a line unless it is empty.
inline std::vector<std::string> split_lines(const std::string& text, const char* ends = "\n") {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(ends, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

inline std::vector<std::string> split_words(const std::string& text, const char* blanks = " \t\n\v\f\r") {
  std::vector<std::string> out;
  for (size_t end = 0, begin = 0; (begin = text.find_first_not_of(blanks, end)) != text.npos;) {
    end = std::min(text.find_first_of(blanks, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
  }
  return out;
}

inline std::string trim(const std::string& text, const char* blanks = " \t\r\n") {
  const size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

// True for a line of YAML or of a configuration file without content: it is blank, or a comment.
inline bool says_nothing(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  return first == line.npos || line[first] == '#';
}

// "/sys/class/net/eth0" -> "eth0"
inline std::string last_component(const std::string& path) { return path.substr(path.rfind('/') + 1); }

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// "/dev/md/" -> "/dev/md"; the root remains.
std::string without_trailing_slashes(std::string path);
// "7 x x16, 1 x x8"
std::string tally(const std::map<std::string, int>& counts);
// "a, b and 3 more", with at most `most` names.
inline constexpr size_t kNamesShown = 3;  // in a sentence
std::string some_of(const std::vector<std::string>& names, size_t most = kNamesShown);

}  // namespace muster
