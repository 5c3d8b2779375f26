// Restricts a plan for running hosts to orders that measure. Thread safety: stateless function.
#pragma once

#include "base/result.h"
#include "controller/plan/plan.h"

namespace muster {

// denied if the plan has an action that is not a check, a step of a module that is not an acceptance module,
// or anything to be destroyed. Also checked in release builds, right before the plan is approved: whatever is
// wrong in a spec, a profile or the planner, a host that muster does not manage is not changed.
Status measures_only(const Plan& plan);

}  // namespace muster
