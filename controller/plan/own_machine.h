// Detects the node that is the controller's own machine (docs/operations.md, "The controller host as a
// node"): it can be a node of the cluster, with its existing system, but muster never installs it, wipes it
// or switches it off. Pure functions, no I/O.
// A single match is enough. Values that identify no machine are not compared: an empty field, a placeholder
// UUID from the board's manufacturer, an address that is not unique to the port (base/placeholders.h). A
// false match (two boards with the same UUID) costs a refusal; a missed one costs the controller.
#pragma once

#include <set>
#include <string>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

struct OwnMachine {
  std::string uuid;            // SMBIOS product UUID; empty: unknown
  std::set<std::string> macs;  // of its physical ports, lower case
  // The addresses that the controller listens on, without loopback addresses: a node's address may be a
  // loopback address if it is adopted through a tunnel on the operator's machine.
  std::set<std::string> addresses;
  // If a provider reports neither MACs nor UUIDs: this machine's addresses, without loopback, and its host
  // name in lower case.
  std::set<std::string> names = {};
};

// Returns what matches: "its address 10.20.0.1 is the controller's"; empty: nothing. `bound_uuid`: of the
// machine last seen under this name (NodeRow::product_uuid), `facts`: its inventory; both may be unknown.
std::string sign_of_own_machine(const OwnMachine& own, const NodeSpec& node, const std::string& bound_uuid,
                                const HardwareFacts* facts);

}  // namespace muster
