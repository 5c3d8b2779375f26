// The order that writes a node's image, in place or through the RAM system. Pure.
#pragma once

#include <optional>

#include "controller/plan/planning.h"

namespace muster {

// The node's address in its installed system: "10.20.0.11/24".
std::string installed_address(const Spec& spec, const NodeSpec& node);
// Without image or OS disk: nothing, and a problem in the plan, because prepare() should have refused both.
std::optional<wire::ImageJob> image_order(Planning& p, const Draft& d);

}  // namespace muster
