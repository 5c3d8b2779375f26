// Which node is the machine that the controller itself runs on (docs/operations.md, "The controller host as a
// node"): it can be a node of the cluster, with the system it has, and is never installed, wiped or switched
// off from here. Pure.
//
// Any one sign is enough, and what is not known is no sign: an empty field, a UUID that a board's maker left
// at its placeholder, and an address that the port does not have alone (base/placeholders.h) tell no machines
// apart. A sign that is there by chance (two boards of one UUID) costs a refusal; one that is overlooked
// costs the controller.
#pragma once

#include <set>
#include <string>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

struct OwnMachine {
  std::string uuid;            // SMBIOS product UUID; empty: unknown
  std::set<std::string> macs;  // of its physical ports, lower case
  // The addresses that the controller listens on. None of the loopback: a host is adopted from where the
  // operator is, and may be reached through a tunnel there.
  std::set<std::string> addresses;
  // What a provider may know it by who says neither MACs nor UUIDs: the addresses of its interfaces but for
  // the loopback's, and its host name, lower case.
  std::set<std::string> names = {};
};

// The sign, for people: "its address 10.20.0.1 is the controller's"; empty: there is none. `bound_uuid` is
// the machine that the node was when it was seen last (NodeRow::product_uuid), `facts` what it showed; both
// may be unknown.
std::string sign_of_own_machine(const OwnMachine& own, const NodeSpec& node, const std::string& bound_uuid,
                                const HardwareFacts* facts);

}  // namespace muster
