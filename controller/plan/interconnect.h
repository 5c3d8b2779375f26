// Rails and the storage network, as names for playbooks (docs/playbook-context.md), and the network of a
// storage section. Pure functions, no I/O.
#pragma once

#include <string>

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns {rails, rail_gpus, storage_port, rail_qos, rail_rules, rails_infiniband, foreign_ports}.
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

}  // namespace muster
