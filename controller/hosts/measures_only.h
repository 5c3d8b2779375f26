// What a plan for running hosts may contain: orders to measure, and nothing else. Thread: a pure function.
#pragma once

#include "base/result.h"
#include "controller/plan/plan.h"

namespace muster {

// denied: an action that is not a check, a step of a module that is not an acceptance module, or anything
// that would be destroyed. Checked in release builds as well, right before the plan is approved: whatever
// goes wrong in a spec, a profile or the planner, a host that muster does not manage is not changed.
Status measures_only(const Plan& plan);

}  // namespace muster
