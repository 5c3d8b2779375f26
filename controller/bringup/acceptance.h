// Judging acceptance: the executor's hooks for `check` actions. Applies the pure rules of controller/report/
// to the agents' results. The end of a run is in conclude.h. Thread: the reactor's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/bringup/current_spec.h"
#include "controller/bringup/measured_steps.h"
#include "controller/bringup/unplanned_gpus.h"
#include "controller/plan/plan.h"
#include "controller/run/executor.h"

namespace muster {

// What was read from the plan for one result, kept for the next one.
struct KeptOfPlan {
  GpuChecksOfPlan gpus = {};
  StepsOfAction steps = {};
};

// Code::failed with the first reason if what was found or measured on the action's node alone is not as
// declared, or if a test of several nodes gave no valid result. What depends on the other nodes (fleet,
// links, how fast collectives are, and whether all of them miss the same floor) is left to conclude().
Status judge(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
             const Json& result);

// The first floor that the action's node missed in this result; "": none.
std::string reservation(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
                        const Json& result);

// A test of several nodes that did not pass (the last of `results.front()`'s tries) is followed by rounds of
// the same test in pairs, until the faulty node is isolated or cannot be. nullopt: there is none, or the node
// failed by itself.
std::optional<FollowUp> follow_up(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor,
                                  const Action& action, const std::vector<Json>& results);

}  // namespace muster
