// The types of step modules' parameters, checked by the agent before a step and by the controller when a
// playbook arrives. Thread: pure.
#pragma once

#include <string>

#include "base/json.h"

namespace muster {

// type: string, int, number, bool, list, object or any; any other type never matches.
bool has_type(const Json& value, const std::string& type);

}  // namespace muster
