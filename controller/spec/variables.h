// Variables of the spec that a playbook can do without (`optional_vars` of a playbook). Pure, no I/O.
//
// Where such a variable is not set, templates of that playbook have the empty text for it. A group is set as
// a whole or not at all: a URL without its digest is an error of the spec.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/spec/address.h"

namespace muster {

using VarGroups = std::vector<std::vector<std::string>>;

struct WrongVariable {
  std::string name, reason;  // empty if nothing is wrong
};

// True if one of the groups has this variable.
bool is_optional(const VarGroups& groups, const std::string& name);

// The network of `docker_bridge`, "10.201.0.1/24": the address that the bridge itself has, and its network.
// None if the value has another form.
std::optional<Cidr> bridge_network(const std::string& value);

// Variables whose group is not complete, those of no use without another that is not set, those whose value
// has a wrong form, and those that are probably misspelt: close to an optional variable that is not set.
// Names in `known` are never misspelt.
std::vector<WrongVariable> wrong_variables(const std::map<std::string, std::string>& vars,
                                           const VarGroups& groups, const std::vector<std::string>& known);

}  // namespace muster
