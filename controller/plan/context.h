// The names a playbook may use (docs/playbook-context.md) as a value, and the steps a node gets from them.
// Pure.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/wire.h"
#include "controller/plan/disks.h"
#include "controller/spec/playbook.h"
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

struct ContextInput {
  const Spec& spec;
  const NodeSpec& node;
  const NodeDisks& disks;
  std::string controller_address;
  const std::map<std::string, std::string>& public_values;
  ClusterContext& cluster;
  bool with_content = true;  // false: what is on the disks at this moment is left out (configuration digests)
  std::set<std::string> forced = {};  // PlanRequest::force
};

// The names of docs/playbook-context.md for one node, as the steps of one playbook at a time see them.
class NodeContext {
 public:
  explicit NodeContext(const ContextInput& input);
  NodeContext(const NodeContext&) = delete;
  NodeContext& operator=(const NodeContext&) = delete;
  ~NodeContext() { leave(); }

  // From here on as a step of this playbook sees it ("": of an acceptance profile), or with this view.
  void enter(const std::string& playbook);
  void enter(const NodeView& view);

  Json& values() { return values_; }
  const NodeSpec& node() const { return node_; }
  ClusterContext& cluster() { return cluster_; }
  const std::string& playbook() const { return playbook_; }
  const NodeView& view() const { return view_; }
  bool leads() const { return view_.leader && view_.leader->name == node_.name; }

 private:
  void leave();

  const NodeSpec& node_;
  ClusterContext& cluster_;
  std::string playbook_;
  NodeView view_;
  Json own_entry_;  // what was taken out of the set's peers
  Json values_;
};

// "10.20.0.0/24" -> "24"; "" without one.
std::string prefix_of(const std::string& cidr);

struct PlannedStep {
  wire::Step step;
  int stage = 1;
  std::string on = "all";
  const NodeSet* about = nullptr;  // the cluster context's: whom "the nodes" of the step meant
};
// The steps of `phase` this node gets from the playbook that was entered, rendered. Problems are appended,
// each naming playbook, step and node. `item` is put into the context and taken out again: it is too large to
// be copied for every step.
std::vector<PlannedStep> plan_steps(const Playbook& playbook, const std::string& phase, NodeContext& context,
                                    std::vector<std::string>& problems);

}  // namespace muster
