#include "controller/bringup/proving.h"

#include <algorithm>

namespace muster {

std::map<std::string, DurationMs> proving_times(const Plan& plan, const std::vector<JournalRow>& journal) {
  std::map<std::string, DurationMs> sums;
  if (plan.kind == PlanKind::accept) return sums;
  std::map<std::string, const std::string*> proving;  // node, by action
  for (const auto& action : plan.actions) {
    const bool proves = action.kind == ActionKind::steps || action.kind == ActionKind::check;
    const bool on_trial = !action.when_failed && action.phase != "pause" && action.phase != "resume";
    if (proves && on_trial) proving[action.id] = &action.node;
  }
  std::map<std::string, TimeMs> begun;
  for (const auto& row : journal) {
    const auto action = proving.find(row.action);
    if (action == proving.end() || *action->second != row.node) continue;
    if (row.event == "intent") begun[row.action] = row.time;
    if (row.event != "succeeded" || begun.count(row.action) == 0) continue;
    // By a clock that was set meanwhile it may have ended before it began.
    sums[row.node] += std::max<DurationMs>(row.time - begun[row.action], 0);
  }
  return sums;
}

}  // namespace muster
