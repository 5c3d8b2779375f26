#include "controller/plan/gpu_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "controller/spec/hardware.h"

namespace muster {
namespace {

// The ratio below which a node is degraded, if the profile sets none.
constexpr double kDegradedBelow = 0.93;

bool measures_own_gpus(const wire::Step& step) {
  return step.module == "accept" && step.params.is_object() &&
         step.params.value("kernel", "").starts_with("gpu-");
}

// True for values that are nearly equal on all healthy machines, which the profile compares across the fleet.
bool is_speed(const Json& limit) {
  return limit.is_object() && (limit.contains("derive") || limit.contains("fleet_min_ratio") ||
                               limit.contains("history_min_ratio"));
}

// Those in the signed results that match this node's GPUs; empty if none matches.
std::set<std::string> possible_models(const GpuResults& results, const NodeSpec& node,
                                      const HardwareFacts* facts) {
  std::set<std::string> out;
  bool named = false;
  if (facts)
    for (const auto& gpu : facts->gpus) {
      if (!is_named(gpu)) continue;
      named = true;
      if (results.models.count(gpu.model)) out.insert(gpu.model);
    }
  if (named || node.hardware.gpu_model.empty()) return out;
  for (const auto& [model, speeds] : results.models)
    if (glob_match(node.hardware.gpu_model, model)) out.insert(model);
  return out;
}

std::string model_text(const NodeSpec& node, const HardwareFacts* facts) {
  std::set<std::string> names;
  if (facts)
    for (const auto& gpu : facts->gpus)
      if (!gpu.model.empty()) names.insert(gpu.model);
  if (!names.empty()) return fmt::format("{}", fmt::join(names, ", "));
  return node.hardware.gpu_model.empty()
             ? "an unknown model (none was found, and hardware.gpu_model is not declared)"
             : node.hardware.gpu_model;
}

}  // namespace

void hold_to_results(const GpuResults& results, const NodeSpec& node, const HardwareFacts* facts,
                     std::vector<PlannedStep>& steps, std::vector<std::string>& problems) {
  const std::set<std::string> models = possible_models(results, node, facts);
  std::vector<std::string> have, missing;
  for (const auto& [model, speeds] : results.models) have.push_back(model);
  bool any = false;
  for (auto& planned : steps) {
    if (!measures_own_gpus(planned.step())) continue;
    wire::Step step = planned.step();
    any = true;
    step.mandatory = true;
    Json none = Json::object();
    Json& expect = step.expect.is_object() ? step.expect : none;
    expect.erase("blocks");
    for (auto& [metric, limit] : expect.items()) {
      if (!is_speed(limit)) continue;
      const std::string check = planned.name + "/" + metric;
      Json proven = Json::object();
      for (const auto& [model, speeds] : results.models)
        if (const auto speed = speeds.find(check); speed != speeds.end())
          proven[model] = {{"value", speed->second.value}, {"gpus", speed->second.gpus}};
      const bool known = std::any_of(models.begin(), models.end(),
                                     [&](const std::string& model) { return proven.contains(model); });
      if (!known) missing.push_back(check);
      limit["proven"] = {{"by", results.digest.substr(0, 19)},
                         {"ratio", limit.value("ratio", kDegradedBelow)},
                         {"models", proven}};
      limit.erase("derive");
      limit.erase("ratio");
    }
    planned.change(std::move(step));
  }
  if (!any || missing.empty()) return;
  if (models.empty())
    problems.push_back(
        fmt::format("{}: acceptance.gpu is mandatory, but the signed results are for {}, not for {}",
                    node.name, fmt::join(have, ", "), model_text(node, facts)));
  else
    problems.push_back(
        fmt::format("{}: acceptance.gpu is mandatory, but the signed results for {} lack {}: measure one "
                    "node with this GPU model and this profile, or use the profile of those results",
                    node.name, fmt::join(models, ", "), fmt::join(missing, ", ")));
}

}  // namespace muster
