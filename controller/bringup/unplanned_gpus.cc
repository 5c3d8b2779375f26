#include "controller/bringup/unplanned_gpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/standin.h"
#include "controller/report/gpu_checks.h"

namespace muster {

namespace {

// True if a step checks the node's own GPUs. Plans hold thousands of steps as text: only those that contain a
// word used by GPU checks are parsed (controller/report/gpu_checks.cc).
bool has_gpu_checks(const ActionParams& params) {
  if (params.steps().empty()) return checks_own_gpus(params.value("steps", Json()));
  return std::any_of(params.steps().begin(), params.steps().end(), [](const SharedText& step) {
    const std::string text = step.text();
    if (text.find("\"gpu-") == std::string::npos && text.find("\"counters\"") == std::string::npos)
      return false;
    const auto json = parse_json(text);
    return json.ok() && checks_own_gpus(Json::array({*json}));
  });
}

}  // namespace

std::set<std::string> checked_for_gpus(const Plan& plan) {
  std::set<std::string> nodes;
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::check && !nodes.count(action.node) && has_gpu_checks(action.params))
      nodes.insert(action.node);
  return nodes;
}

const std::set<std::string>& GpuChecksOfPlan::of(const std::shared_ptr<const Plan>& plan) {
  if (plan_ == plan) return nodes_;
  nodes_ = checked_for_gpus(*plan);
  plan_ = plan;
  return nodes_;
}

bool has_real_gpus(const HardwareFacts* facts) {
  return facts && facts->gpus.size() != static_cast<size_t>(simulated_gpus(*facts));
}

std::optional<Check> unplanned_gpus(const std::set<std::string>& checked, const std::string& node,
                                    const HardwareFacts* facts) {
  if (!has_real_gpus(facts)) return std::nullopt;
  if (checked.empty() || checked.count(node)) return std::nullopt;
  Check out;
  out.name = "gpus/planned";
  out.title = "GPUs are measured";
  out.mandatory = true;
  out.verdict = Verdict::skipped;
  out.expected_text = "measured";
  out.measured_text = fmt::format("{} found", facts->gpus.size());
  out.derivation = "every GPU that is found must be measured";
  out.reason = fmt::format(
      "GPUs appeared after the plan was made, so the plan has no checks for them; to measure them, run "
      "`muster "
      "accept --limit {}`",
      node);
  return out;
}

}  // namespace muster
