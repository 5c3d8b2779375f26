// Rails and the storage network, as names for playbooks (docs/playbook-context.md), and the network of a
// storage section. Pure functions, no I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// {rails, rail_gpus, storage_port, rail_qos, rail_traffic_class, rail_rules, rails_infiniband,
// foreign_ports}.
Json interconnect_of(const Spec& spec, const NodeSpec& node);

// The network for the section's daemons and clients: the storage network if every node that mounts the
// section has a port in it, else the provisioning network. Never both: a server gives its clients a single
// address for each of the other servers.
class SectionNetwork {
 public:
  SectionNetwork(const Spec& spec, const StorageSpec& section);
  const std::string& cidr() const { return cidr_; }
  const std::string& address(const NodeSpec& node) const {
    return on_storage_ ? node.storage.address : node.address;
  }

 private:
  bool on_storage_ = false;
  std::string cidr_;
};

// Predicts from the inventory which ports a node will use as rails, so that the plan shows them before
// anything is configured. The node decides by the same rules and with the link state of its ports
// (agent/steps/network/port_choice.h). Returns "rail 0 = 0000:18:00.0, rail 1 = 0000:2a:00.0 (each nearest to
// its GPU)", or why it cannot be predicted. Empty: the spec names the ports, there are no rails, or the
// inventory is too old.
std::string rails_seen(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts);

// One note per text, for all nodes with the same text.
std::vector<std::string> rail_notes(const std::map<std::string, std::string>& seen_of_node);

}  // namespace muster
