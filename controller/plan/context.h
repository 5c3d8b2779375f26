// The names that a playbook may use (docs/playbook-context.md), with their values for one node. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/plan/cluster_context.h"
#include "controller/spec/spec.h"
#include "controller/spec/variables.h"

namespace muster {

// The names of docs/playbook-context.md for one node, with the values that apply to one playbook at a time
// (enter()). The objects that the input refers to must outlive it.
class NodeContext : public NamedValues {
 public:
  explicit NodeContext(const ContextInput& input);
  NodeContext(const NodeContext&) = delete;
  NodeContext& operator=(const NodeContext&) = delete;
  ~NodeContext() { give_back_members(); }

  // From now on, the values are those for this playbook ("": the acceptance profile) or for this view.
  void enter(const std::string& playbook);
  void enter(const NodeView& view);
  // From now on, these variables need not be set: then they are the empty text. Must outlive the object.
  void set_optional(const VarGroups& vars) { optional_ = &vars; }
  // Sets the value of `item` in templates; null: `item` is unknown.
  void set_item(const Json* item) { item_ = item; }
  // Removes the current content of the disks from the values (see ContextInput::with_content).
  void forget_content();

  // Valid until the view or the item changes; null: unknown name.
  const Json* find(const std::string& name) override;
  void identify(const std::string& name, std::vector<uintptr_t>& into) override;
  // Returns the node set that `peers` or `rdma_peers` lists (without this node); null for other names.
  const NodeSet* set_of(const std::string& name);

  const NodeSpec& node() const { return in_.node; }
  ClusterContext& cluster() { return in_.cluster; }
  const std::string& playbook() const { return playbook_; }
  const NodeView& view() const { return view_; }
  bool leads() const { return view_.leader && view_.leader->name == node().name; }

 private:
  const Json* root(const std::string& name);
  void put_content();
  void give_back_members();

  ContextInput in_;
  std::string playbook_;
  NodeView view_;
  const Json* item_ = nullptr;
  const VarGroups* optional_ = nullptr;
  Json values_;
  std::map<const NodeSet*, Json> without_self_;  // for templates that use the elements one by one
};

// "10.20.0.0/24" -> "24"; "" if it has none.
std::string prefix_of(const std::string& cidr);

}  // namespace muster
