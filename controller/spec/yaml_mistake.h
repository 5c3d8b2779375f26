// Where a text that is not valid YAML went wrong: a parser reports where it noticed, which is often many
// lines behind the mistake. Looks for the mistakes that are made by hand: a tab, an indentation unlike that
// of its siblings, a key without a colon, a quote or bracket that is not closed. Pure function, no I/O.
#pragma once

#include <optional>
#include <string>

#include "controller/spec/spec.h"

namespace muster {

// The first such mistake, with its code (controller/spec/findings.h) and place, in a text that a parser
// refused. `noticed`: the line, from 1, at which it did; a mistake lies there or above. nullopt: none of
// these.
std::optional<SpecError> find_yaml_mistake(const std::string& text, int noticed);

}  // namespace muster
