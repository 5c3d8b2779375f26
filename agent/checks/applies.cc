// Whether a measurement has anything to measure here: loads of GPUs do not on a lab's stand-ins
// (base/standin.h), where a figure would be made up. What the stand-ins' driver counts is read all the same:
// errors are rehearsed.
#include <fmt/format.h>

#include "agent/checks/checks.h"
#include "agent/steps/system/smbios.h"
#include "agent/steps/step_modules.h"

namespace muster::checks {

Result<CheckResult> has_what_it_measures(StepContext& context, const Json& params) {
  if (!loads_gpus(params)) return steps::holds();
  const auto standins = standin_gpus(context.files);
  if (!standins) return steps::holds();
  return CheckResult{Holds::not_applicable,
                     fmt::format("{}: {} are the lab's stand-ins, there is nothing to measure", kSimulatedGpu,
                                 standins->count)};
}

}  // namespace muster::checks
