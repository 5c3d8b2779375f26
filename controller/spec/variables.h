// Variables of the spec that a playbook can do without (`optional_vars` of a playbook). Pure, no I/O.
//
// Where such a variable is not set, templates of that playbook have the empty text for it. A group is set as
// a whole or not at all: a URL without its digest is an error of the spec.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster {

using VarGroups = std::vector<std::vector<std::string>>;

struct WrongVariable {
  std::string name, reason;  // empty if nothing is wrong
};

// True if one of the groups has this variable.
bool is_optional(const VarGroups& groups, const std::string& name);

// Variables whose group is not complete, those of no use without another that is not set, those whose value
// has a wrong form, and those that are probably misspelt: close to an optional variable that is not set.
// Names in `known` are never misspelt.
std::vector<WrongVariable> wrong_variables(const std::map<std::string, std::string>& vars,
                                           const VarGroups& groups, const std::vector<std::string>& known);

}  // namespace muster
