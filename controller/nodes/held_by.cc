#include "controller/nodes/held_by.h"

#include <array>
#include <utility>

namespace muster {
namespace {

constexpr std::array<std::pair<HeldBy, std::string_view>, 3> kWords = {
    {{HeldBy::nobody, ""}, {HeldBy::run, "run"}, {HeldBy::an_operator, "operator"}}};

}  // namespace

std::string_view to_string(HeldBy held) {
  for (const auto& [value, word] : kWords)
    if (value == held) return word;
  return "";
}

HeldBy held_by_from_string(std::string_view word) {
  for (const auto& [value, known] : kWords)
    if (known == word) return value;
  return HeldBy::an_operator;
}

}  // namespace muster
