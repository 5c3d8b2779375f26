// Which ports a node will take as rails, as far as the inventory shows: part of the plan, so that an operator
// sees it before anything is configured. The node decides (agent/steps/network/port_choice.h) by the same
// rules; in addition it knows which ports have a link. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// "rail 0 = 0000:18:00.0, rail 1 = 0000:2a:00.0 (each nearest to its GPU)", or why the inventory does not
// show it. Empty: the spec names the ports, there are no rails, or the inventory is too old.
std::string rails_seen(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts);

// One remark for all nodes with the same text.
std::vector<std::string> rail_notes(const std::map<std::string, std::string>& seen_of_node);

}  // namespace muster
