// The data about a cluster's nodes for a playbook's templates (docs/playbook-context.md): the nodes that it
// is about, their leader, their hardware. Made once for all nodes. Pure.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "controller/plan/interconnect.h"
#include "controller/plan/rendered_steps.h"
#include "controller/plan/shared_text.h"
#include "controller/spec/spec.h"

namespace muster {

// The nodes that steps are about, such as those of a playbook: its members and their context data.
struct NodeSet {
  std::vector<const NodeSpec*> members;        // in order of name
  Json nodes, machines, gpu_nodes, gpu_fleet;  // as in docs/playbook-context.md
  bool has_gpus = false;
  int64_t gpus_of_each = 0;
  TextPtr ring;  // {name, address} of each, as text

  // Place of the node among the members, or -1.
  int place_of(const std::string& node) const;
  bool has(const NodeSpec& node) const { return place_of(node.name) >= 0; }
  size_t others_than(const NodeSpec& node) const { return members.size() - (has(node) ? 1 : 0); }
  // The text of `nodes` without one of them, or with only those at these places.
  SharedText text_without(const NodeSpec& node) const;
  SharedText text_of(const std::vector<int>& places) const;

 private:
  friend class ClusterContext;
  TextPtr text_;                // of `nodes`
  std::vector<size_t> begins_;  // offset of each in it, and of its end
};

// The context of steps: the nodes they are about, and their leader (null: none).
struct NodeView {
  NodeSet* set = nullptr;
  const NodeSpec* leader = nullptr;
};

// The part of a shared storage section that is the same for all nodes that mount it.
struct SharedSection {
  SectionNetwork network;
  const NodeSpec* leader;       // null: it has no members
  bool holds_data;              // a member was seen with data of it
  std::array<Json, 2> members;  // {name, address}; lent: to `storage_shared`, to the engine's own list
};

// What is the same for every node of a cluster, made once for all of them: it grows with the cluster, and a
// copy for each of 1,000 nodes would take too long. Members of sections are lent to one NodeContext at a
// time.
class ClusterContext {
 public:
  // `machines`: the nodes that were seen at least once. Both must outlive it.
  ClusterContext(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines);
  ClusterContext(const ClusterContext&) = delete;
  ClusterContext& operator=(const ClusterContext&) = delete;

  // The nodes that have the playbook; with `among`, those that also have that one. "" means an acceptance
  // profile, which all nodes have.
  NodeView of(const std::string& playbook, const std::string& among = "");
  // The nodes that mount a shared storage section; null for other names.
  NodeSet* of_section(const std::string& name);
  SharedSection& shared_section(const StorageSpec& section);
  NodeSet& nobody() { return set_of({}); }
  const Json& hosts() const { return hosts_; }
  const std::map<std::string, const HardwareFacts*>& machines() const { return machines_; }
  RenderedSteps& rendered() { return rendered_; }

 private:
  NodeSet& set_of(std::vector<const NodeSpec*> members);

  const Spec& spec_;
  const std::map<std::string, const HardwareFacts*>& machines_;
  Json hosts_;
  // There are few: playbooks of the same roles share one.
  std::map<std::vector<const NodeSpec*>, std::unique_ptr<NodeSet>> sets_;
  std::map<std::pair<std::string, std::string>, NodeView> views_;
  std::map<std::string, NodeSet*> sections_;
  std::map<const StorageSpec*, SharedSection> shared_sections_;
  RenderedSteps rendered_;
};

// {name, address}
Json name_and_address(const NodeSpec& node);

}  // namespace muster
