// PlanningSnapshot: all inputs of a plan at one moment. Taken on the reactor's thread, which is quick because
// large parts are shared; immutable afterwards. A worker makes the planner's input from it. Thread safety:
// plain value type.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/facts_text.h"
#include "controller/bringup/playbook_cache.h"
#include "controller/current/current_spec.h"
#include "controller/plan/planner_input.h"

namespace muster {

// The sources of NodeObservation::facts and ::machine.
struct LookedAt {
  FactsText facts;
  std::set<std::string> written = {};  // since that inventory (disks_written.h)
};

struct PlanningSnapshot {
  std::shared_ptr<const SpecRevision> spec;
  PlaybookCache::Shared playbooks;
  std::map<std::string, LookedAt> looked_at;  // by node; of others, `in` has the facts already
  PlannerInput in;                            // the rest
};

PlannerInput planner_input(const PlanningSnapshot& snapshot);
// Adds the facts that were found on `node` to `seen`.
void add_facts(NodeObservation& seen, const std::string& node, const LookedAt& at);

}  // namespace muster
