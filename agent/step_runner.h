// Runs the steps of a `steps` or `check` order over step modules: check -> apply -> verify, one after the
// other.
//
// Synchronous and pure over StepContext: the work runner calls it in its worker thread. Consecutive steps of
// one module whose checks can be batched (check_many) are checked together; such a module promises that
// applying one of its steps does not invalidate the check of a different one. mode "apply": what does not
// hold is applied and verified. mode "check": nothing is written; what does not hold is `failed`. A step's
// own `verify` {module, params} must hold after the step, applied or already; in mode "check" only its check
// runs. Statuses: already | applied | measured | failed | not_applicable | not_looked_at | incomplete.
// `incomplete`: not carried out (cancelled, an earlier mandatory step failed, a measurement that could not be
// made): never the same as passed. `not_looked_at`: this agent lacks what the step needs (wire::Step::needs),
// and the order continues; not a pass either. A step that should change something is `incomplete` in that
// case.
#pragma once

#include <functional>
#include <vector>

#include "agent/runner.h"
#include "agent/step.h"
#include "base/wire.h"

namespace muster {

struct StepOrder {
  std::vector<wire::Step> steps;
  bool stop_on_failure = true;  // after a failed mandatory step the rest is `incomplete`
  bool write = true;            // false: mode "check"
  bool reverify = false;        // also verify what holds already: the order continues after its own reboot
};
// Refuses unknown keys, duplicate ids, unknown modules and wrong parameters before anything runs.
Result<StepOrder> step_order_from_json(const Json& params, const StepContext& context);

// `emit` gets ("step", {step, name, status, message, ms, diff?, result?}) and ("progress", {done, total,
// unit, text}) as it goes. The outcome's result is {"steps": [the same data...], "counts": {status: n}}; its
// status fails with the first failed or incomplete mandatory step, Code::cancelled when that was because of
// StepContext::cancelled. `now` is only used to measure how long each step took.
WorkOutcome run_steps(StepContext& context, const StepOrder& order, const std::function<TimeMs()>& now,
                      const WorkRunner::Emit& emit);

}  // namespace muster
