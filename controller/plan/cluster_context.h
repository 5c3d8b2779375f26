// The data about a cluster's nodes for the templates of a playbook (docs/playbook-context.md): the nodes that
// have the playbook, their leader, their hardware. Built once for all nodes. No I/O.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "base/names.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/interconnect.h"
#include "controller/plan/rendered_steps.h"
#include "controller/plan/shared_text.h"
#include "controller/spec/spec.h"

namespace muster {

// A set of nodes, such as those that have a playbook, with their context data.
struct NodeSet {
  std::vector<const NodeSpec*> members;        // in order of name
  Json nodes, machines, gpu_nodes, gpu_fleet;  // as in docs/playbook-context.md
  bool has_gpus = false;
  int64_t gpus_of_each = 0;
  TextPtr ring;  // {name, address} of each member, as text

  // -1: not in `members`.
  int place_of(const NodeName& node) const;
  bool has(const NodeSpec& node) const { return place_of(node.name) >= 0; }
  size_t others_than(const NodeSpec& node) const { return members.size() - (has(node) ? 1 : 0); }
  // Return the JSON text of `nodes` without the given node, or with only the nodes at these indexes.
  SharedText text_without(const NodeSpec& node) const;
  SharedText text_of(const std::vector<int>& places) const;

 private:
  friend class ClusterContext;
  TextPtr text_;                // JSON text of `nodes`
  std::vector<size_t> begins_;  // offset of each node in text_, and of the end
};

// The context of a playbook's steps: the nodes that have the playbook, and their leader (null: none).
struct NodeView {
  NodeSet* set = nullptr;
  const NodeSpec* leader = nullptr;
};

// The part of a shared storage section that is the same for all nodes that mount it.
struct SharedSection {
  SectionNetwork network;
  const NodeSpec* leader;       // null: the section has no members
  bool holds_data;              // a member was seen with data of this section
  std::array<Json, 2> members;  // lists of {name, address}, lent to one NodeContext at a time
};

// The data that is the same for every node of a cluster, built once for all of them: its size grows with the
// cluster, and copying it for each of 1,000 nodes would take too long. The member lists of sections are lent
// to one NodeContext at a time.
class ClusterContext {
 public:
  // `machines`: the facts of the nodes that were seen at least once. `with_driver`: the nodes of which the
  // image has NVIDIA's driver. All arguments must outlive this object, and be complete at its first use.
  ClusterContext(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines,
                 const std::set<std::string>& with_driver = kNone);
  ClusterContext(const ClusterContext&) = delete;
  ClusterContext& operator=(const ClusterContext&) = delete;

  // Returns the nodes that have the playbook; with `among`, those that have both playbooks. An empty
  // `playbook` means the acceptance profile, which all nodes have.
  NodeView of(const std::string& playbook, const std::string& among = "");
  // Null if no such shared storage section exists.
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
  const std::set<std::string>& with_driver_;
  static inline const std::set<std::string> kNone = {};
  Json hosts_;
  // Playbooks of the same roles share one set, so there are few.
  std::map<std::vector<const NodeSpec*>, std::unique_ptr<NodeSet>> sets_;
  std::map<std::pair<std::string, std::string>, NodeView> views_;
  std::map<std::string, NodeSet*> sections_;
  std::map<const StorageSpec*, SharedSection> shared_sections_;
  RenderedSteps rendered_;
};

Json name_and_address(const NodeSpec& node);

// The inputs from which the values of a playbook's names are built, for one node. Plain data only.

struct ContextInput {
  const Spec& spec;
  const NodeSpec& node;
  const NodeDisks& disks;
  std::string controller_address;
  const std::map<std::string, std::string>& public_values;
  ClusterContext& cluster;
  bool with_content = true;  // false: omit the current content of the disks (for configuration digests)
  const std::set<std::string>& forced = kNobody;  // PlanRequest::force
  // The nodes that the plan takes out of service until they are accepted again.
  const std::set<std::string>& pausing = kNobody;
  std::string metrics_address = {};  // PlannerInput::metrics_address
  bool in_rollout = false;           // the plan is of a rollout's batch

  static inline const std::set<std::string> kNobody = {};
};

}  // namespace muster
