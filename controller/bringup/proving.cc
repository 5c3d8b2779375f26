#include "controller/bringup/proving.h"

#include <algorithm>
#include <map>
#include <set>

namespace muster {

DurationMs proving_took(const Plan& plan, const std::vector<JournalRow>& journal, const std::string& node) {
  if (plan.kind == PlanKind::accept) return 0;
  std::set<std::string> proving;
  for (const auto& action : plan.actions) {
    const bool proves = action.kind == ActionKind::steps || action.kind == ActionKind::check;
    const bool on_trial = !action.when_failed && action.phase != "pause" && action.phase != "resume";
    if (action.node == node && proves && on_trial) proving.insert(action.id);
  }
  std::map<std::string, TimeMs> begun;
  DurationMs sum = 0;
  for (const auto& row : journal) {
    if (row.node != node || proving.count(row.action) == 0) continue;
    if (row.event == "intent") begun[row.action] = row.time;
    if (row.event != "succeeded" || begun.count(row.action) == 0) continue;
    // By a clock that was set meanwhile it may have ended before it began.
    sum += std::max<DurationMs>(row.time - begun[row.action], 0);
  }
  return sum;
}

}  // namespace muster
