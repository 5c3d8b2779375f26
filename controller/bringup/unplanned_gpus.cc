#include "controller/bringup/unplanned_gpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/standin.h"
#include "controller/report/gpu_checks.h"

namespace muster {

std::optional<Check> unplanned_gpus(const Plan& plan, const std::string& node, const HardwareFacts* facts) {
  if (!facts || facts->gpus.size() == static_cast<size_t>(simulated_gpus(*facts))) return std::nullopt;
  bool planned = false, elsewhere = false;
  for (const auto& action : plan.actions) {
    if (action.kind != ActionKind::check) continue;
    const bool own = action.node == node;
    if (!own && elsewhere) continue;
    if (!checks_own_gpus(action.params.value("steps", Json()))) continue;
    (own ? planned : elsewhere) = true;
  }
  if (planned || !elsewhere) return std::nullopt;
  Check out;
  out.name = "gpus/planned";
  out.title = "GPUs are measured";
  out.mandatory = true;
  out.verdict = Verdict::skipped;
  out.expected_text = "measured";
  out.measured_text = fmt::format("{} found", facts->gpus.size());
  out.derivation = "every GPU that is found has to be measured";
  out.reason = fmt::format(
      "GPUs appeared after the plan was made, so none of their checks is in it; to mend it: "
      "`muster accept --limit {}`",
      node);
  return out;
}

}  // namespace muster
