#include "base/name_ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace muster {
namespace {

struct Numbered {
  std::string prefix, digits;
};

Numbered numbered(const std::string& name) {
  size_t at = name.size();
  while (at > 0 && name.size() - at < 6 && std::isdigit(static_cast<unsigned char>(name[at - 1]))) --at;
  return {name.substr(0, at), name.substr(at)};
}

// Joins sorted numbers with the same number of digits: "01-03,07".
std::string joined_numbers(const std::vector<std::string>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && std::stol(numbers[end + 1]) == std::stol(numbers[end]) + 1) ++end;
    out += (out.empty() ? "" : ",") + numbers[i];
    if (end > i) out += "-" + numbers[end];
    i = end + 1;
  }
  return out;
}

}  // namespace

std::string names_in_ranges(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::map<std::pair<std::string, size_t>, std::vector<std::string>> groups;
  std::vector<std::string> out;
  for (const auto& name : names) {
    const Numbered n = numbered(name);
    if (n.digits.empty())
      out.push_back(name);
    else
      groups[{n.prefix, n.digits.size()}].push_back(n.digits);
  }
  for (const auto& [key, numbers] : groups)
    out.push_back(numbers.size() == 1 ? key.first + numbers.front()
                                      : fmt::format("{}[{}]", key.first, joined_numbers(numbers)));
  std::sort(out.begin(), out.end());
  return fmt::format("{}", fmt::join(out, ","));
}

}  // namespace muster
