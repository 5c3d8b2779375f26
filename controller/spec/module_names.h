// The names of the agent's step modules, so that a playbook which names none of them is refused with its line
// before anything runs. The controller does not link the agent; a test compares the two. Thread: pure.
#pragma once

#include <string>
#include <vector>

namespace muster {

// In alphabetical order.
const std::vector<std::string>& module_names();

}  // namespace muster
