// Rails and the storage network, as the names that a playbook may use (docs/playbook-context.md), and over
// which network a storage section runs. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// {rails, rail_gpus, storage_port, rail_qos, rail_rules, rails_infiniband, foreign_ports}
Json interconnect_of(const Spec& spec, const NodeSpec& node);

// Over which network the section's daemons and clients speak: the storage network where every node that
// mounts it has a port there, else the provisioning network. Never both: a server tells its clients one
// address of each of the others.
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
