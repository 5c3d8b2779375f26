// Reads a spec from YAML. Pure functions, no I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/spec/only_for.h"
#include "controller/spec/spec.h"

namespace muster {

struct ParsedSpec {
  Spec spec;
  std::vector<SpecError> errors;        // empty: usable
  std::vector<std::string> names = {};  // of the nodes, in the order of the file
};
// Names from outside the file, besides the spec's own playbooks; an empty list is not checked.
struct SpecNames {
  std::vector<std::string> playbooks, profiles, recipes;
  std::map<std::string, OnlyFor> only_for = {};  // of playbooks that are not for all distributions
};
// `text` is YAML. All failures are reported in `errors`.
ParsedSpec parse_spec(const std::string& text, const SpecNames& names = {});

// This version's playbooks and acceptance profiles: a spec is checked without having the files. Stateless.

// Recipes are not included: the controller reads images/ itself.
SpecNames shipped_names();

namespace embedded {  // generated at build time from playbooks/: names, each followed by a space
extern const char* const playbook_names;
extern const char* const profile_names;
extern const char* const playbooks_only_for;  // lines: name, distribution, what to do on others
}  // namespace embedded

}  // namespace muster
