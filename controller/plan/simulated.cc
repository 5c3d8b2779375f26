#include "controller/plan/simulated.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/json_dump.h"
#include "base/standin.h"

namespace muster {

namespace {

// Multiplies the number by `by`, but reduces no number to below `least`. Keeps the type: an
// integer stays an integer, and text (from a template) stays text.
void scale(Json& value, double by, double least) {
  const bool text = value.is_string();
  if (!text && !value.is_number()) return;
  char* end = nullptr;
  const std::string was = text ? value.get<std::string>() : std::string();
  const double old = text ? std::strtod(was.c_str(), &end) : value.get<double>();
  if (text && (was.empty() || *end != '\0')) return;
  const double scaled = std::max(std::min(old, least), old * by);
  const bool whole = text ? was.find('.') == std::string::npos : value.is_number_integer();
  const Json number = whole ? Json(static_cast<int64_t>(std::llround(scaled))) : Json(scaled);
  value = text ? Json(dump_json(number)) : number;
}

struct Amount {
  const char* key;
  double least;
};
// Parameters in seconds, in MiB, and in bytes (largest message). The time that a server waits for its
// partners is not scaled, because slow machines need it most; nor is the kernel containers, whose seconds
// limit the starts that it waits for.
constexpr Amount kAmounts[] = {
    {"seconds", 1}, {"random-seconds", 1}, {"parallel-seconds", 1}, {"size", 8}, {"max_bytes", 1 << 20}};

}  // namespace

void Simulated::change(std::vector<PlannedStep>& steps) {
  for (PlannedStep& planned : steps) {
    RenderedStepPtr& known = changed_[planned.rendered];
    if (!known) {
      wire::Step step = planned.step();
      change_amounts(planned.name, step.params);
      if (step.expect.is_object()) change_limits(planned.name, step.expect);
      known = std::make_shared<const RenderedStep>(std::move(step), planned.rendered->peers);
    }
    planned.rendered = known;
  }
}

void Simulated::change_limits(const std::string& check, Json& expect) {
  for (auto& [metric, limit] : expect.items()) {
    if (!limit.is_object()) continue;
    if (!what_.compare)
      for (const char* key : {"derive", "ratio", "fail_ratio", "fleet_min_ratio", "history_min_ratio",
                              "of_raw_reads", "otherwise_min"})
        limit.erase(key);
    const auto own = what_.limits.find(check + "/" + metric);
    if (own == what_.limits.end()) continue;
    used_.insert(own->first);
    for (const char* key : {"min", "max", "degraded_below", "degraded_above", "otherwise_min"})
      limit.erase(key);
    limit.update(own->second);
    limit["set_by"] = "lab";
  }
}

void Simulated::change_amounts(const std::string& check, Json& params) {
  if (!params.is_object()) return;
  const auto options = params.find("options");
  const bool has_options = options != params.end() && options->is_object();
  if (what_.time_scale < 1 && params.value("kernel", Json()) != "containers")
    for (const auto& [key, least] : kAmounts) {
      if (const auto at = params.find(key); at != params.end()) scale(*at, what_.time_scale, least);
      if (!has_options) continue;
      if (const auto at = options->find(key); at != options->end()) scale(*at, what_.time_scale, least);
    }
  const auto own = what_.options.find(check);
  if (own == what_.options.end()) return;
  used_.insert(own->first);
  if (!has_options) params["options"] = Json::object();
  params["options"].update(own->second);
}

std::vector<std::string> Simulated::notes(const std::string& profile) const {
  std::vector<std::string> out;
  std::vector<std::string> changed, unknown;
  const auto sort = [&](const std::map<std::string, Json>& names) {
    for (const auto& [name, value] : names)
      if (used_.count(name))
        changed.push_back(name + " " + dump_json(value));
      else
        unknown.push_back("'" + name + "'");
  };
  sort(what_.limits);
  sort(what_.options);
  std::string text =
      fmt::format("profile {} as changed by the spec's lab section for simulated hardware", profile);
  if (what_.time_scale < 1) text += fmt::format("; times and sizes multiplied by {:g}", what_.time_scale);
  if (!what_.compare) text += "; no comparison with other machines, earlier runs or derived values";
  if (!changed.empty()) text += fmt::format("; {}", fmt::join(changed, ", "));
  out.push_back(text);
  if (!unknown.empty())
    out.push_back(fmt::format("the spec's lab.acceptance has entries that profile {} does not have: {}",
                              profile, fmt::join(unknown, ", ")));
  return out;
}

std::string simulated_gpu_note(const std::map<std::string, const HardwareFacts*>& machines) {
  std::vector<std::string> those;
  for (const auto& [name, facts] : machines)
    if (const int count = simulated_gpus(*facts); count > 0)
      those.push_back(fmt::format("{} ({})", name, count));
  if (those.empty()) return "";
  return fmt::format("{}: provided by the lab on {}; these GPUs are not measured", kSimulatedGpu,
                     fmt::join(those, ", "));
}

}  // namespace muster
