// The names a playbook may use (docs/playbook-context.md), as one node sees them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/plan/cluster_context.h"
#include "controller/plan/context_input.h"
#include "controller/spec/spec.h"

namespace muster {

// The names of docs/playbook-context.md for one node, as seen by the steps of one playbook at a time. The
// objects that the input refers to must outlive it.
class NodeContext : public NamedValues {
 public:
  explicit NodeContext(const ContextInput& input);
  NodeContext(const NodeContext&) = delete;
  NodeContext& operator=(const NodeContext&) = delete;
  ~NodeContext() { give_back_members(); }

  // From now on as a step of this playbook ("": of an acceptance profile) sees it, or with this view.
  void enter(const std::string& playbook);
  void enter(const NodeView& view);
  // `item` of templates from now on; null: none.
  void set_item(const Json* item) { item_ = item; }
  // From now on as if the content of the disks were unknown (ContextInput::with_content).
  void forget_content();

  // The value of a dotted name. Valid until the view or the item changes.
  const Json* find(const std::string& name) override;
  void identify(const std::string& name, std::vector<uintptr_t>& into) override;
  // The set whose list, without this node, is `peers` or `rdma_peers`; null for other names.
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
  Json values_;
  std::map<const NodeSet*, Json> without_self_;  // for templates that use the elements one by one
};

// "10.20.0.0/24" -> "24"; "" without one.
std::string prefix_of(const std::string& cidr);

}  // namespace muster
