// Decides whether a measurement is applicable: GPU loads are not applicable to a lab's stand-ins
// (base/standin.h), where a figure would be meaningless. The error counters of the stand-ins' driver are
// still read, because labs simulate errors.
#include <fmt/format.h>

#include "agent/checks/checks.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/system/smbios.h"

namespace muster::checks {

Result<CheckResult> has_what_it_measures(StepContext& context, const Json& params) {
  if (!loads_gpus(params)) return steps::holds();
  const auto standins = standin_gpus(context.files);
  if (!standins) return steps::holds();
  return CheckResult{Holds::not_applicable,
                     fmt::format("{}: {} GPUs are the lab's stand-ins, so there is nothing to measure",
                                 kSimulatedGpu, standins->count)};
}

}  // namespace muster::checks
