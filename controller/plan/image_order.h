// The order that writes a node's image, in place or through the RAM system. No I/O.
#pragma once

#include <optional>

#include "controller/plan/planning.h"

namespace muster {

// Returns the node's address in its installed system, "10.20.0.11/24".
std::string installed_address(const Spec& spec, const NodeSpec& node);
// Returns the order. If the node has no image or OS disk (already refused), adds a problem and returns none.
std::optional<wire::ImageJob> image_order(Planning& p, const Draft& d);

}  // namespace muster
