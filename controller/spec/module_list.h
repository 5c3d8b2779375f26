// The agent's step modules and their parameters, so that a playbook with an unknown one is rejected, with its
// line, before anything runs. The controller does not link the agent: schema/modules.json is written from it
// and is part of the program; a test compares the two. Thread: pure.
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
// By module, by name.
const std::map<std::string, std::map<std::string, ModuleParameter>>& module_list();

// What a step (or its `verify`) calls: the module exists, its parameters are known, complete, and of the
// right type unless they contain a {{variable}}. Errors give the place of the mistake.
void check_module_call(const YamlNode& step, const std::string& path, std::vector<SpecError>& errors);

namespace embedded {  // generated at build time from schema/modules.json
extern const char* const modules;
}  // namespace embedded

}  // namespace muster
