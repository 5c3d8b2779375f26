// The executor's hooks for `check` actions, which judge acceptance: they apply the rules of
// controller/report/ to the agents' results. For the end of a run see conclude.h. Thread: the reactor's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/bringup/measured_steps.h"
#include "controller/bringup/unplanned_gpus.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/plan/plan.h"

namespace muster {

// What was read from the plan for one result, kept because the next result needs it, too.
struct KeptOfPlan {
  GpuChecksOfPlan gpus = {};
  StepsOfAction steps = {};
};

// Returns Code::failed with the first reason if what was found or measured on the action's node alone is not
// as declared, or if a test of several nodes gave no valid result. What depends on other nodes (fleet, links,
// speed of collectives, and whether all nodes miss the same floor) is judged in conclude().
Status judge(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
             const Json& result);

// Returns the first floor that the action's node missed in this result; "" if there is none.
std::string reservation(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
                        const Json& result);

// Returns the next round if a test of several nodes failed in the last attempt (`results.front()`): the same
// test in pairs, until the faulty node is isolated or there is no way to isolate it. nullopt: no further
// round, or the node failed by itself.
std::optional<FollowUp> follow_up(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor,
                                  const Action& action, const std::vector<Json>& results);

}  // namespace muster
