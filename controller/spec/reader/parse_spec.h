// Reads a spec from YAML. Pure functions, no I/O.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/spec/only_for.h"
#include "controller/spec/spec.h"
#include "controller/spec/variables.h"

namespace muster {

struct ParsedSpec {
  Spec spec;
  std::vector<SpecError> errors;        // empty: usable
  std::vector<std::string> names = {};  // of the nodes, in the order of the file
};
// Names from outside the file, besides the spec's own playbooks; an empty list is not checked.
struct SpecNames {
  std::vector<std::string> playbooks, profiles;
  std::vector<KnownRecipe> recipes;
  std::map<std::string, OnlyFor> only_for = {};         // of playbooks that are not for all distributions
  std::map<std::string, VarGroups> optional_vars = {};  // of playbooks that have such variables
  std::map<std::string, std::set<std::string>> variables = {};  // that shipped playbooks read in templates
  // Distribution::id of the machine that builds images, which has a mirror of its own; empty: unknown, so
  // that no mirror is known to be missing.
  std::string builder = {};
  std::string more_recipes = {};  // how to name more, for the message about a recipe that is not in `recipes`
};
// `text` is YAML. All failures are reported in `errors`.
ParsedSpec parse_spec(const std::string& text, const SpecNames& names = {});

// This version's playbooks, acceptance profiles and recipes: a spec is checked without having the files.
// Stateless.
SpecNames shipped_names();

namespace embedded {  // generated at build time from playbooks/ and images/
// Names, each followed by a space.
extern const char* const playbook_names;
extern const char* const profile_names;
extern const char* const playbooks_only_for;       // lines: name, distribution, what to do on others
extern const char* const playbooks_optional_vars;  // lines: name, the variables of one group
extern const char* const playbooks_vars;           // lines: name, the variables in its templates
extern const char* const recipes;                  // lines "NAME [DISTRIBUTION]"
}  // namespace embedded

}  // namespace muster
