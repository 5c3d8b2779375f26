#include "controller/bringup/planning_snapshot.h"

#include "sys/log.h"

namespace muster {

std::set<std::string> written_since(const std::map<std::string, TimeMs>& written, TimeMs seen_at) {
  std::set<std::string> out;
  for (const auto& [slot, began] : written)
    if (began >= seen_at) out.insert(slot);
  return out;
}

std::optional<HardwareFacts> still_known(HardwareFacts facts, const std::set<std::string>& written) {
  if (written.count("")) return std::nullopt;
  for (const auto& slot : written) facts.boot.slots[slot].stage = "writing";
  return facts;
}

void add_facts(NodeObservation& seen, const std::string& node, const LookedAt& at) {
  if (at.facts.empty()) return;
  const auto facts = at.facts.facts();
  if (!facts)
    return log::warning("the stored facts cannot be read: the node is treated as never seen",
                        {{"node", node}});
  seen.machine = *facts;
  seen.facts = still_known(*facts, at.written);
}

PlannerInput planner_input(const PlanningSnapshot& snapshot) {
  PlannerInput in = snapshot.in;
  in.spec = snapshot.spec->spec;
  in.revision = snapshot.spec->revision;
  if (const auto& batch = in.request.batch) {
    in.spec.limits.drain_timeout = batch->drain_timeout;
    in.spec.limits.trial = batch->trial;
    in.spec.limits.failure_budget = batch->failure_budget;
  }
  in.playbooks = snapshot.playbooks->all;
  for (const auto& [name, at] : snapshot.looked_at) add_facts(in.nodes[name], name, at);
  return in;
}

}  // namespace muster
