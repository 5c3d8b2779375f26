// The names a playbook may use (docs/playbook-context.md), as one node sees them. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "controller/plan/cluster_context.h"
#include "controller/plan/context_input.h"
#include "controller/spec/spec.h"

namespace muster {

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

}  // namespace muster
