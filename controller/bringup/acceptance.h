// Judging acceptance: the executor's hooks for `check` actions. Connects what agents answered with the pure
// rules of controller/report/. The end of a run is in conclude.h. Thread: the reactor's.
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

// What was read of the plan for one result, and is read for the next one, too.
struct KeptOfPlan {
  GpuChecksOfPlan gpus = {};
  StepsOfAction steps = {};
};

// Code::failed with the first reason when what was found or measured on the action's node alone is not what
// is declared, or when a test of several nodes gave no right result. What needs the other nodes (fleet,
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
