#include "base/split.h"

#include <fmt/format.h>

namespace muster {

std::string some_of(const std::vector<std::string>& names, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > most) out += " and " + std::to_string(names.size() - most) + " more";
  return out;
}

std::string tally(const std::map<std::string, int>& counts) {
  std::string out;
  for (const auto& [what, count] : counts)
    out += fmt::format("{}{} x {}", out.empty() ? "" : ", ", count, what);
  return out;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace muster
