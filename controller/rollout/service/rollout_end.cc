#include "controller/rollout/service/rollout_end.h"

#include <algorithm>

#include "controller/bringup/run_records.h"

namespace muster {
namespace {

using rollout::NodeEnd;
using rollout::Outcome;

// True if, when the node went back, only its slot had been written and its jobs paused: they did not end in
// time.
bool given_back(const RunRecords& records, const RunRecords::Node& node) {
  return std::none_of(node.actions.begin(), node.actions.end(), [&](const Action* action) {
    const bool harmless = action->kind == ActionKind::write_slot || action->phase == "pause";
    return !action->when_failed && !harmless && records.record(action->id).attempt > 0;
  });
}

bool paused(const RunRecords& records, const RunRecords::Node& node) {
  return std::any_of(node.actions.begin(), node.actions.end(), [&](const Action* action) {
    return !action->when_failed && action->phase == "pause" && records.record(action->id).attempt > 0;
  });
}

NodeEnd end_of_node(const RunRow& run, const RunRecords& records, const std::string& name,
                    const NodeRow& row) {
  const RunRecords::Node& node = records.node(name);
  const bool cancelled = run.state == RunState::cancelled;
  if (row.state == NodeState::quarantined && row.held_by == HeldBy::an_operator)
    return {Outcome::held, row.reason};
  if (!node.reason.empty()) return {Outcome::quarantined, node.reason};
  if (node.back && node.back->there) {
    const bool jobs = paused(records, node) && given_back(records, node);
    return {jobs ? Outcome::jobs : Outcome::returned, node.back->reason};
  }
  if (!node.stood_down.empty())
    return {cancelled ? Outcome::unfinished : Outcome::not_begun, node.stood_down};
  const bool works = row.state == NodeState::accepted || row.state == NodeState::degraded;
  if (works && row.accepted_run == run.id) return {Outcome::accepted, row.reason};
  if (cancelled) return {Outcome::unfinished, "its run was cancelled"};
  return {Outcome::quarantined,
          row.reason.empty() ? "the batch's run has no result for this node" : row.reason};
}

}  // namespace

Result<rollout::RunEnd> end_of(const RunSources& run, const std::map<std::string, NodeRow>& nodes) {
  TRY(const auto records, RunRecords::of(*run.plan, run.journal));
  rollout::RunEnd out;
  out.run = run.row.id;
  out.cancelled = run.row.state == RunState::cancelled;
  for (const auto& name : run.plan->nodes) {
    if (run.plan->only_serves(NodeName(name))) continue;
    const auto row = nodes.find(name);
    out.nodes[name] = end_of_node(run.row, records, name, row == nodes.end() ? NodeRow{} : row->second);
  }
  return out;
}

}  // namespace muster
