// Converts text to lower case: ASCII letters only, independent of the locale.
#pragma once

#include <string>

namespace muster {

inline std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace muster
