// PlanningSnapshot: all that a plan is made from, as it is at one moment. Taken on the reactor's thread,
// which is quick, as what is large is shared; it never changes from then on, and a worker makes the
// planner's input of it. Thread: a value.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/facts_text.h"
#include "controller/bringup/current_spec.h"
#include "controller/bringup/playbook_shelf.h"
#include "controller/plan/planner_input.h"

namespace muster {

// What makes NodeObservation::facts and ::machine.
struct LookedAt {
  FactsText facts;
  std::set<std::string> written = {};  // since then (disks_written.h)
};

struct PlanningSnapshot {
  std::shared_ptr<const SpecRevision> spec;
  PlaybookShelf::Shared playbooks;
  std::map<std::string, LookedAt> looked_at;  // by node; of another one `in` has all there is
  PlannerInput in;                            // the rest
};

PlannerInput planner_input(const PlanningSnapshot& snapshot);
// Puts in what was found on the node named.
void add_facts(NodeObservation& seen, const std::string& node, const LookedAt& at);

}  // namespace muster
