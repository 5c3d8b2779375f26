// The order that writes a node's image, in place or through the RAM system. No I/O.
#pragma once

#include <optional>

#include "controller/plan/planning.h"

namespace muster {

// Returns the node's address in its installed system, "10.20.0.11/24".
std::string installed_address(const Spec& spec, const NodeSpec& node);
// Returns the order; empty, and adds a problem, if the node has no image or OS disk (already refused).
std::optional<wire::ImageJob> image_order(Planning& p, const Draft& d);

}  // namespace muster
