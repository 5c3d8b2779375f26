// The types that parameters of step modules have, asked by the agent before a step and by the controller when
// a playbook comes. Thread: pure.
#pragma once

#include <string>

#include "base/json.h"

namespace muster {

// type: string, int, number, bool, list, object or any; nothing is of another.
bool has_type(const Json& value, const std::string& type);

}  // namespace muster
