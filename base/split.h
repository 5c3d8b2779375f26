// Splits a text at a separator. Thread safety: stateless.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace muster {

// Returns the non-empty pieces: adjacent separators count as one.
inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace muster
