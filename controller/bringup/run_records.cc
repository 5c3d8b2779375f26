#include "controller/bringup/run_records.h"

#include <algorithm>

namespace muster {
namespace {

bool over(ActionState state) {
  return state == ActionState::succeeded || state == ActionState::failed || state == ActionState::abandoned;
}

std::string reason_in(const Json& data) {
  const auto it = data.is_object() ? data.find("reason") : data.end();
  return it != data.end() && it->is_string() ? it->get<std::string>() : "";
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
  if (row.event == "quarantined") nodes_[row.node].reason = reason_in(row.data);
  if (row.event == "returning" || row.event == "returned")
    nodes_[row.node].back = {reason_in(row.data), row.event == "returned"};
  if (row.event != "not_started") return Ok{};
  nodes_[row.node].back.reset();  // cancelled on its way
  nodes_[row.node].stood_down = reason_in(row.data);
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
