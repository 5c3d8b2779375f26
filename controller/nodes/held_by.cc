#include "controller/nodes/held_by.h"

#include "base/words.h"

namespace muster {
namespace {

constexpr Words<HeldBy, 3> kWords = {
    {{HeldBy::nobody, ""}, {HeldBy::run, "run"}, {HeldBy::an_operator, "operator"}}};

}  // namespace

std::string_view to_string(HeldBy held) { return word_of(kWords, held); }

HeldBy held_by_from_string(std::string_view word) {
  return value_of(kWords, word).value_or(HeldBy::an_operator);
}

}  // namespace muster
