// The CPU cluster of docs/specs with any number of nodes, as benchmarks plan it: the documented spec, the
// shipped playbooks and acceptance, and machines as declared. Run in the project's folder. Thread: one.
#pragma once

#include <functional>
#include <string>

#include "base/facts.h"
#include "base/json.h"
#include "controller/plan/planner.h"
#include "controller/spec/spec.h"

namespace muster::bench {

[[noreturn]] void give_up(const std::string& why);

// The documented spec, with this number of nodes and large enough networks.
std::string spec_text(int nodes);
// Nodes without a record.
PlannerInput cluster_of(int nodes);
// An inventory of such a machine.
HardwareFacts facts_of(const NodeSpec& node);
// It waits in the RAM system.
NodeObservation seen(const NodeSpec& node);
// Ends the program after a refusal.
Plan planned(const PlannerInput& input);

double seconds_of(const std::function<void()>& work);
// The result of `work` in a process of its own, because a process's peak memory is never reset.
Json in_child(const std::string& what, const std::function<Json()>& work);

}  // namespace muster::bench
