// A small cluster for examples of rollouts: `count` nodes n00, n01, ... of role "gpu" that are at work, idle,
// and run image "old" where "new" is wanted.
#pragma once

#include <string>
#include <vector>

#include "controller/rollout/next.h"

namespace muster::rollout {

inline std::string node_name(size_t i) {
  const std::string digits = std::to_string(i);
  return "n" + std::string(digits.size() < 2 ? 1 : 0, '0') + digits;
}

inline View cluster(size_t count, int max_unavailable = 100) {
  View view;
  view.policy.roles = {"gpu"};
  view.policy.max_unavailable.count = max_unavailable;
  view.policy.failure_budget = 1;
  view.target = "t1";
  view.night = 1;
  for (size_t i = 0; i < count; ++i) {
    Node node{.name = node_name(i), .role = "gpu", .image_now = "old", .image_wanted = "new"};
    node.state = NodeState::accepted;
    node.online = node.has_bmc = true;
    view.nodes.push_back(node);
  }
  return view;
}

// A rollout whose canary came through.
inline Row proven_row() {
  Row row = begun(1, "t1");
  row.stage = Stage::batches;
  row.proven["new"] = 1;
  return row;
}

using Places = std::vector<size_t>;

inline Places nodes_of(const View& view, const Row& row) { return next(view, row).batch.nodes; }

inline Reason reason_of(const Answer& answer, size_t node) {
  for (const Left& left : answer.left)
    if (left.node == node) return left.reason;
  return Reason::none;
}

inline void make_group(View& view, const std::string& name, int can_miss, const Places& members) {
  view.groups.push_back({name, GroupKind::storage, can_miss, true});
  for (const size_t at : members) view.nodes[at].groups.push_back(view.groups.size() - 1);
}

// The batch's run ended, each node as `outcome` says.
inline Row after_run(Row row, Outcome outcome, int64_t run, int64_t night = 1) {
  RunEnd end{run, night, false, {}};
  for (const auto& [node, image] : row.batch->images) end.nodes[node] = {outcome, "as the test says"};
  return judged(with_run(std::move(row), run).value(), end).value();
}

}  // namespace muster::rollout
