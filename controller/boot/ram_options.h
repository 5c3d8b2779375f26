// Kernel options of the RAM system. Pure.
#pragma once

#include <string>

#include "controller/spec/spec.h"

namespace muster {

// The RAM system gets the controller's own kernel options, and of the spec's only those about a panic: the
// others are for the installed system, and may need memory or devices that only it has. `node` may be null.
std::string ram_kernel_options(const std::string& own, const Spec& cluster, const NodeSpec* node);

}  // namespace muster
