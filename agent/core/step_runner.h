// Runs the steps of a `steps` or `check` order through their modules: check -> apply -> verify, one step
// after the other.
//
// Synchronous, with all I/O through StepContext: the work runner calls it in its worker thread. Consecutive
// steps of one module whose checks can be batched (check_many) are checked together; such a module
// guarantees that applying one of its steps does not invalidate the check of another. mode "apply": steps
// that do not hold are applied and verified. mode "check": nothing is written; a step that does not hold is
// `failed`. A step's own `verify` {module, params} must hold after the step, whether just applied or already
// in place; in mode "check" only its check runs; of a node at work (`only_looks`) not even that, unless its
// module only reads, since a test may start containers or jobs, or wait for minutes. Statuses: already |
// applied | measured | failed | not_applicable | not_looked_at | incomplete. `incomplete`: not carried out
// (cancelled, an earlier mandatory step failed, a measurement could not be made); never counts as passed.
// `not_looked_at`: this agent lacks what the step needs (wire::Step::needs), and the order continues; it
// does not count as passed either. A step that should change something is `incomplete` in that case.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/runner.h"
#include "agent/core/step.h"
#include "base/wire.h"

namespace muster {

struct StepOrder {
  std::vector<wire::Step> steps;
  bool stop_on_failure = true;  // after a failed mandatory step the rest is `incomplete`
  bool write = true;            // false: mode "check"
  bool reverify = false;        // also verify steps that hold: the order continues after its own reboot
  bool only_looks = false;      // mode "check" of a node that has other work
};
// Rejects unknown keys, duplicate ids, unknown modules and wrong parameters before anything runs.
Result<StepOrder> step_order_from_json(const Json& params, const StepContext& context);

// `emit` gets ("step", {step, name, status, message, ms, diff?, result?}) and ("progress", {done, total,
// unit, text}) as it goes. The outcome's result is {"steps": [the same data...], "counts": {status: n},
// "denied"?}; its status fails with the first failed or incomplete mandatory step, Code::cancelled when that
// was because of StepContext::cancelled. "denied" is the id of that step if its module gave Code::denied.
// Nothing of it has a value of StepContext::secrets. `now` is only used to measure how long each step took.
WorkOutcome run_steps(StepContext& context, const StepOrder& order, const std::function<TimeMs()>& now,
                      const WorkRunner::Emit& emit);

// The first mandatory step that does not hold, or whose check cannot be made; none: all hold. Nothing is
// applied.
struct UnmetStep {
  std::string id, why;
  bool denied = false;  // its module gave Code::denied
};
std::optional<UnmetStep> first_unmet(StepContext& context, const std::vector<wire::Step>& steps);

}  // namespace muster
