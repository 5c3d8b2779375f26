#include "controller/bringup/run_records.h"

#include <algorithm>

#include "base/json_at.h"

namespace muster {
namespace {

bool over(ActionState state) {
  return state == ActionState::succeeded || state == ActionState::failed || state == ActionState::abandoned;
}

}  // namespace

TimeMs began(const ActionRecord& record) {
  return record.first_intent > 0 ? record.first_intent : record.ended;
}

RunRecords::RunRecords(const Plan& plan) {
  for (const auto& action : plan.actions) nodes_[action.node].actions.push_back(&action);
}

Status RunRecords::apply(const JournalRow& row) {
  TRY_(log_.apply(row));
  if (row.event == "quarantined") nodes_[row.node].reason = text_at(row.data, "reason");
  if (row.event == "returning" || row.event == "returned")
    nodes_[row.node].back = {text_at(row.data, "reason"), row.event == "returned"};
  if (row.event != "not_started") return Ok{};
  nodes_[row.node].back.reset();  // cancelled on its way
  nodes_[row.node].stood_down = text_at(row.data, "reason");
  return Ok{};
}

Result<RunRecords> RunRecords::of(const Plan& plan, const std::vector<JournalRow>& journal) {
  RunRecords out(plan);
  for (const auto& row : journal) TRY_(out.apply(row));
  return out;
}

const RunRecords::Node& RunRecords::node(const std::string& name) const {
  static const Node kNone;
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? kNone : found->second;
}

std::vector<PhaseTime> RunRecords::phases(const std::string& name) const {
  std::vector<PhaseTime> phases;
  for (const Action* action : node(name).actions) {
    const ActionRecord& record = log_.of(action->id);
    if (record.state == ActionState::fresh) continue;
    auto phase = std::find_if(phases.begin(), phases.end(),
                              [&](const PhaseTime& p) { return p.phase == action->phase; });
    if (phase == phases.end()) phase = phases.insert(phases.end(), {action->phase, began(record), 0, "done"});
    phase->end = std::max(phase->end, record.ended);
    if (!over(record.state))
      phase->outcome = "running";
    else if (record.state != ActionState::succeeded)
      phase->outcome = "failed";
  }
  return phases;
}

}  // namespace muster
