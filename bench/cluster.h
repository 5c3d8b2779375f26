// The CPU cluster of docs/specs with any number of nodes, as benchmarks plan it: the spec that is shown, the
// playbooks and the acceptance that are shipped, and machines that are what it declares. Run in the project's
// folder. Thread: one.
#pragma once

#include <functional>
#include <string>

#include "base/facts.h"
#include "base/json.h"
#include "controller/plan/planner.h"
#include "controller/spec/spec.h"

namespace muster::bench {

[[noreturn]] void give_up(const std::string& why);

// The spec that is shown, with so many nodes and networks that hold them.
std::string spec_text(int nodes);
// Nothing is known of the nodes.
PlannerInput cluster_of(int nodes);
// What an inventory of such a machine says.
HardwareFacts facts_of(const NodeSpec& node);
// It waits in the RAM system.
NodeObservation seen(const NodeSpec& node);
// Ends the program where there is a refusal.
Plan planned(const PlannerInput& input);

double seconds_of(const std::function<void()>& work);
// What `work` came to in a process of its own: the most memory a process ever had is not given back.
Json in_child(const std::string& what, const std::function<Json()>& work);

}  // namespace muster::bench
