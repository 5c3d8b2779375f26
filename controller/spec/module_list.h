// The agent's step modules and their parameters, for rejecting a playbook with an unknown one, with its line,
// before anything runs. The controller does not link the agent: schema/modules.json is generated from it and
// is part of the program; a test compares the two. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/spec/yaml.h"

namespace muster {

struct ModuleParameter {
  std::string type;  // string | int | number | bool | list | object | any
  bool required = false;
};
// Returns the parameters of each module, by module name and parameter name.
const std::map<std::string, std::map<std::string, ModuleParameter>>& module_list();

// Checks the call of a step (or of its `verify`): the module exists, and its parameters are known, complete,
// and of the right type unless they contain a {{variable}}. Errors give the place of the mistake.
void check_module_call(const YamlNode& step, const std::string& path, std::vector<SpecError>& errors);

namespace embedded {  // generated at build time from schema/modules.json
extern const char* const modules;
}  // namespace embedded

}  // namespace muster
