// What of a neighbour must be shut, seen from one node: the port by which playbook `firewall` proves that the
// neighbour's firewall is up. Pure.
//
// To a node that the rules let in everywhere, every port answers "refused" however well the firewall works:
// to the controller's own machine, and where `network.storage` or a rule of the spec's `firewall` holds its
// address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/spec/spec.h"

namespace muster {

// A privileged TCP port on which no node of the spec lets in packets from this node's address; empty when
// there is none. A rule for some roles counts for all nodes: which neighbour is probed is known only when the
// order is sent. What the playbook lets in of itself is known here, too: a test holds the two against each
// other.
std::optional<uint16_t> closed_port(const Spec& spec, const NodeSpec& node,
                                    const std::string& controller_address);

}  // namespace muster
