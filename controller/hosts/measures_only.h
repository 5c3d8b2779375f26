// What a plan for running hosts may hold: orders to measure, and nothing else. Thread: a pure function.
#pragma once

#include "base/result.h"
#include "controller/plan/plan.h"

namespace muster {

// denied: an action that is no check, a step of a module that is none of acceptance, or anything that would
// be destroyed. Looked at in release builds as well, right before the plan is approved: whatever goes wrong
// in a spec, a profile or the planner, a host that muster does not manage is not changed.
Status measures_only(const Plan& plan);

}  // namespace muster
