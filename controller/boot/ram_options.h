// Kernel options of the RAM system. Pure.
#pragma once

#include <string>

#include "controller/spec/spec.h"

namespace muster {

// The RAM system gets the controller's own kernel options, and of the spec's only what it says about a panic:
// the others are for the installed system, and may need memory or devices as only that one has them. `node`
// may be null.
std::string ram_kernel_options(const std::string& own, const Spec& cluster, const NodeSpec* node);

}  // namespace muster
