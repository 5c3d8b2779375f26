// Checks the types of step modules' parameters: the agent before a step, the controller when it receives a
// playbook. Pure functions, no I/O.
#pragma once

#include <string>

#include "base/json.h"

namespace muster {

// True if `value` has `type`: string, int, number, bool, list, object or any. An unknown type never matches.
bool has_type(const Json& value, const std::string& type);

}  // namespace muster
