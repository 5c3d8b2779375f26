// A port that must be closed on a neighbour, seen from one node: playbook `firewall` uses it to check that
// the neighbour's firewall is up. Pure.
//
// To a node that the rules allow everywhere, every port answers "refused" however well the firewall works: to
// the controller's own machine, and to nodes whose address is in `network.storage` or a rule of the spec's
// `firewall`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/spec/spec.h"

namespace muster {

// A privileged TCP port on which no node of the spec accepts packets from this node's address; empty if there
// is none. A rule for some roles counts for all nodes: which neighbour is probed is known only when the order
// is sent. The ports that the playbook itself opens are repeated here: a test compares the two.
std::optional<uint16_t> closed_port(const Spec& spec, const NodeSpec& node,
                                    const std::string& controller_address);

}  // namespace muster
