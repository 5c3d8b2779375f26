#include "controller/bringup/planning_snapshot.h"

#include "base/log.h"
#include "controller/bringup/disks_written.h"
#include "controller/bringup/proving.h"

namespace muster {
namespace {

void add_proving_times(PlannerInput& in, const ProvenRun& run) {
  const auto json = parse_json(run.plan);
  if (!json.ok()) return;
  const auto plan = plan_from_json(*json);
  if (!plan.ok()) return;
  const auto times = proving_times(*plan, run.journal);
  for (const auto& name : run.nodes)
    if (const auto took = times.find(name); took != times.end()) in.nodes[name].proving_took = took->second;
}

}  // namespace

void add_facts(NodeObservation& seen, const std::string& node, const LookedAt& at) {
  if (at.facts.empty()) return;
  const auto facts = at.facts.facts();
  if (!facts) return log::warning("stored facts unreadable, the node counts as never seen", {{"node", node}});
  seen.machine = *facts;
  seen.facts = still_known(*facts, at.written);
}

PlannerInput planner_input(const PlanningSnapshot& snapshot) {
  PlannerInput in = snapshot.in;
  in.spec = snapshot.spec->spec;
  in.revision = snapshot.spec->revision;
  in.playbooks = snapshot.playbooks->all;
  for (const auto& [name, at] : snapshot.looked_at) add_facts(in.nodes[name], name, at);
  for (const auto& [run, proven] : snapshot.proven) add_proving_times(in, proven);
  return in;
}

}  // namespace muster
