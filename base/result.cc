#include "base/result.h"

#include <array>

namespace muster {
namespace {
constexpr std::array<std::string_view, 9> kWords = {
    "invalid", "not_found", "conflict", "denied", "unavailable", "timeout", "failed", "corrupt", "cancelled"};
}

std::string_view to_string(Code code) { return kWords.at(static_cast<size_t>(code)); }

Code code_from_string(std::string_view word) {
  for (size_t i = 0; i < kWords.size(); ++i)
    if (kWords[i] == word) return static_cast<Code>(i);
  return Code::failed;
}

}  // namespace muster
