// Loads over all nodes of a plan that are measured (`among: group`, module accept_group): who leads, who
// serves. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Each node of such a step has it so far, whichever nodes are in the plan: so its configuration digest does
// not depend on that. Now the first of its `hosts` that is in the plan keeps it, with those hosts only; the
// others serve (accept_group_serve) in the same stage, as long as that node may need them; nodes that are no
// hosts do neither. A step with fewer than two hosts in the plan is left out.
void assign_groups(Planning& p);

}  // namespace muster
