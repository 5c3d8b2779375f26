// Reads a spec from YAML. Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "controller/spec/spec.h"

namespace muster {

struct ParsedSpec {
  Spec spec;
  std::vector<SpecError> errors;        // empty: usable
  std::vector<std::string> names = {};  // of the nodes, in the order of the file
};
// Names that exist outside the file, in addition to the spec's own playbooks; with an empty list they are not
// checked.
struct SpecNames {
  std::vector<std::string> playbooks, profiles, recipes;
};
// `text` is YAML. All failures are reported in `errors`.
ParsedSpec parse_spec(const std::string& text, const SpecNames& names = {});

}  // namespace muster
