// Lint: what must hold of every plan before it may be approved. Pure. Run by the planner on its own output,
// which is rejected if anything is found, and on every golden plan.
//
// Ids unique and of the form node/name; dependencies exist and are acyclic; each node's actions are in
// dependency order; every image action has its destruction entry unless it only accepts muster's own layout;
// no disk is destroyed twice, nor one disk on two nodes that see it; no secret value in it (only
// "secret:NAME"); every timeout and attempt count is positive; `when_failed` actions are last on their node
// and nothing waits for them; a slot is written only where the disk is the node's own, and booted once.
#pragma once

#include <string>
#include <vector>

#include "controller/plan/plan.h"

namespace muster {

std::vector<std::string> lint_plan(const Plan& plan);  // empty: fine

}  // namespace muster
