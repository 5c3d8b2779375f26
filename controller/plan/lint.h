// Lint: conditions that every plan must meet before it may be approved. The planner checks its own output,
// and rejects it if a condition is violated; tests check every golden plan. Pure functions, no I/O.
// Ids are unique and of the form node/name; dependencies exist and are acyclic; each node's actions are in
// dependency order; every image action has a destruction entry unless it accepts only muster's own layout; no
// disk is destroyed twice, or on two nodes that both see it; the plan contains no secret value (only
// "secret:NAME"); every timeout and attempt count is positive; `when_failed` actions are last on their node
// and nothing waits for them; a slot is written only where the disk is the node's own, and booted once.
#pragma once

#include <string>
#include <vector>

#include "controller/plan/plan.h"

namespace muster {

std::vector<std::string> lint_plan(const Plan& plan);  // returns the violations

}  // namespace muster
