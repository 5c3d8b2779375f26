// Which node is the machine that the controller itself runs on (docs/operations.md, "The controller host as a
// node"): it can be a node of the cluster, with its existing system, and muster never installs it, wipes it
// or switches it off. Pure.
//
// Any one sign is enough, and unknown values are not signs: an empty field, a placeholder UUID from the
// board's maker, and an address that is not unique to the port (base/placeholders.h) identify no machine. A
// false sign (two boards with the same UUID) costs a refusal; an overlooked one costs the controller.
#pragma once

#include <set>
#include <string>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

struct OwnMachine {
  std::string uuid;            // SMBIOS product UUID; empty: unknown
  std::set<std::string> macs;  // of its physical ports, lower case
  // The addresses that the controller listens on. No loopback addresses: a host is adopted from the
  // operator's machine and may be reached through a tunnel there.
  std::set<std::string> addresses;
  // For a provider that reports neither MACs nor UUIDs: the addresses of its interfaces except loopback, and
  // its host name, lower case.
  std::set<std::string> names = {};
};

// The sign, for people: "its address 10.20.0.1 is the controller's"; empty: none. `bound_uuid` is the machine
// that the node was when last seen (NodeRow::product_uuid), `facts` its inventory; both may be unknown.
std::string sign_of_own_machine(const OwnMachine& own, const NodeSpec& node, const std::string& bound_uuid,
                                const HardwareFacts* facts);

}  // namespace muster
