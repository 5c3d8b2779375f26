// Predicts from the inventory which ports a node will use as rails. The plan shows it, so that an operator
// sees it before anything is configured. The node itself decides, by the same rules and with the link state
// of its ports (agent/steps/network/port_choice.h). Pure functions, no I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns "rail 0 = 0000:18:00.0, rail 1 = 0000:2a:00.0 (each nearest to its GPU)", or why it cannot be
// predicted. Empty: the spec names the ports, there are no rails, or the inventory is too old.
std::string rails_seen(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts);

// Returns one note per text, for all nodes with the same text.
std::vector<std::string> rail_notes(const std::map<std::string, std::string>& seen_of_node);

}  // namespace muster
