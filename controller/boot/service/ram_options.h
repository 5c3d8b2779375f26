// Kernel options of the RAM system. Pure function, no I/O.
#pragma once

#include <string>

#include "controller/spec/spec.h"

namespace muster {

// Returns the RAM system's kernel options: the controller's (`own`), and of the spec's only those about a
// panic: others may need memory or devices that only the installed system has. `node` may be null.
std::string ram_kernel_options(const std::string& own, const Spec& cluster, const NodeSpec* node);

}  // namespace muster
