// What a playbook is told of the nodes of a cluster (docs/playbook-context.md): those that it is about, their
// leader, their hardware. Made once for all nodes. Pure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// Nodes that steps are about, as those of a playbook: who has it, and what the context says of them.
struct NodeSet {
  std::vector<const NodeSpec*> members;  // in order of name
  Json nodes, peers, ring;               // peers: all of them, without whom it is lent to while it is lent
  Json machines, gpu_nodes, no_fleet;    // as in docs/playbook-context.md; no_fleet: an empty list
  bool has_gpus = false;
  int64_t gpus_of_each = 0;

  // Place of the node among the members, or -1.
  int place_of(const std::string& node) const;
  bool has(const NodeSpec& node) const { return place_of(node.name) >= 0; }
};

// What steps see: the nodes they are about, and who leads there (null: nobody).
struct NodeView {
  NodeSet* set = nullptr;
  const NodeSpec* leader = nullptr;
};

// What is the same for every node of a cluster, made once for all of them: it grows with the cluster. Its
// lists are lent to one NodeContext at a time, never copied: with 1,000 nodes that is what takes the time.
class ClusterContext {
 public:
  // `machines`: the nodes that were seen at least once. Both must outlive it.
  ClusterContext(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines);
  ClusterContext(const ClusterContext&) = delete;
  ClusterContext& operator=(const ClusterContext&) = delete;

  // The nodes that have the playbook; with `among`, those that have that one, too. "" stands for an
  // acceptance profile, which all nodes have.
  NodeView of(const std::string& playbook, const std::string& among = "");
  // The nodes that mount a shared storage section; null for other names.
  NodeSet* of_section(const std::string& name);
  const std::string& hosts() const { return hosts_; }
  const std::map<std::string, const HardwareFacts*>& machines() const { return machines_; }

 private:
  NodeSet& set_of(std::vector<const NodeSpec*> members);

  const Spec& spec_;
  const std::map<std::string, const HardwareFacts*>& machines_;
  std::string hosts_;
  // Few: playbooks that the same roles have share one.
  std::map<std::vector<const NodeSpec*>, std::unique_ptr<NodeSet>> sets_;
  std::map<std::pair<std::string, std::string>, NodeView> views_;
  std::map<std::string, NodeSet*> sections_;
};

// {name, address}
Json name_and_address(const NodeSpec& node);

}  // namespace muster
