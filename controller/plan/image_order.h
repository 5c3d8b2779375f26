// What a node is ordered to write when its image is written, whichever way. Pure.
#pragma once

#include <optional>

#include "controller/plan/planning.h"

namespace muster {

// "10.20.0.11/24": of the node in its installed system.
std::string installed_address(const Spec& spec, const NodeSpec& node);
// Nothing, and a problem of the plan, where there is no image or no OS disk: prepare() refused both.
std::optional<wire::ImageJob> image_order(Planning& p, const Draft& d);

}  // namespace muster
