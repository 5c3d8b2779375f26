#include "controller/bringup/proving.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace muster {
namespace {

constexpr int64_t kLookBack = 50;

// It configured the node and accepted it: every action of the node that is not in reserve succeeded.
bool accepted_in(const DoneRun& run, const std::string& node) {
  switch (run.plan.kind) {
    case PlanKind::install:
    case PlanKind::apply:
    case PlanKind::reimage:
    case PlanKind::admit:
    case PlanKind::rollback:
      break;
    case PlanKind::discover:
    case PlanKind::wake:
    case PlanKind::adopt:
    case PlanKind::accept:
    case PlanKind::drain:
    case PlanKind::undrain:
    case PlanKind::none:
      return false;
  }
  std::set<std::string> open;
  for (const auto& action : run.plan.actions)
    if (action.node == node && !action.when_failed) open.insert(action.id);
  if (open.empty() || run.plan.only_serves(node)) return false;
  for (const auto& row : run.journal)
    if (row.event == "succeeded") open.erase(row.action);
  return open.empty();
}

}  // namespace

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
    // Where the clock was set back meanwhile, it seems to have ended before it began.
    sum += std::max<DurationMs>(row.time - begun[row.action], 0);
  }
  return sum;
}

std::map<std::string, DurationMs> proving_times(const std::map<std::string, int64_t>& accepted,
                                                const RunOf& run_of) {
  std::map<std::string, DurationMs> out;
  std::map<int64_t, std::vector<std::string>> open;  // by the run that is looked at next
  for (const auto& [node, id] : accepted) open[id].push_back(node);
  while (!open.empty()) {
    const auto newest = std::prev(open.end());
    const int64_t id = newest->first;
    const std::vector<std::string> nodes = std::move(newest->second);
    open.erase(newest);
    const auto run = run_of(id);
    for (const auto& node : nodes) {
      const int64_t last = accepted.at(node);
      const bool counts = run && (id == last ? run->plan.kind != PlanKind::accept : accepted_in(*run, node));
      const bool unreadable = !run && id == last;
      if (counts)
        out[node] = proving_took(run->plan, run->journal, node);
      else if (!unreadable && id > 1 && last - id < kLookBack)
        open[id - 1].push_back(node);
    }
  }
  return out;
}

}  // namespace muster
