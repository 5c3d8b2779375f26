// Loads over all measured nodes of a plan (`among: group`, module accept_group): which node leads, which ones
// serve. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Up to this point each node of such a step has it, whichever nodes are in the plan, so that its
// configuration digest does not depend on them. Now the first of its `hosts` that is in the plan keeps it,
// with the planned hosts only; the others serve (accept_group_serve) in the same stage, as long as that node
// may need them; nodes that are not hosts do neither. A step with fewer than two hosts in the plan is
// dropped.
void assign_groups(Planning& p);

}  // namespace muster
