// Loads that run across all measured nodes of a plan (`among: group`, module accept_group): chooses the node
// that leads and those that serve. No I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Before this pass every node of such a step has the step, whichever nodes are in the plan, so that its
// configuration digest does not depend on them. This pass leaves the step only on the first of its `hosts` in
// the plan, with the planned hosts only; the other hosts serve (accept_group_serve) in the same stage, as
// long as that node may need them; the remaining nodes get no step. A step with fewer than two planned hosts
// is dropped.
void assign_groups(Planning& p);

}  // namespace muster
