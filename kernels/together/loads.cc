#include "kernels/together/loads.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>

#include "base/json_at.h"

namespace muster::together {
namespace {

using kernels::Outcome;

constexpr Outcome kOutcomes[] = {Outcome::measured, Outcome::corrupt, Outcome::failed, Outcome::refused,
                                 Outcome::unavailable};

std::string who(int rank, const std::string& name) { return fmt::format("rank {} on {}", rank, name); }

}  // namespace

kernels::Measurement lost_measurement(const char* check, const std::vector<Lost>& lost, const Error& error) {
  kernels::Measurement out;
  out.check = check;
  const bool began = error.code != Code::unavailable && error.code != Code::denied;
  out.outcome = began ? Outcome::failed : Outcome::unavailable;
  out.error = error.message;
  out.detail["lost"] = Json::array();
  for (const auto& one : lost) {
    out.faulty_parts.push_back(who(one.rank, one.name));
    out.detail["lost"].push_back({{"rank", one.rank}, {"name", one.name}, {"how", to_string(one.kind)}});
  }
  return out;
}

std::vector<std::string> names(const Group& group) {
  std::vector<std::string> out;
  for (int r = 0; r < group.size(); ++r) out.push_back(group.name(r));
  return out;
}

Result<kernels::Measurement> envelope(Group& group, const char* check, uint64_t wrong, const char* words) {
  TRY(const auto all, group.gather(std::to_string(wrong), 0));
  kernels::Measurement out;
  out.check = check;
  out.detail["rank"] = group.rank();
  if (group.rank() != 0) {
    out.detail["took_part"] = true;
    return out;
  }
  for (size_t r = 0; r < all.size(); ++r) {
    uint64_t count = 0;
    std::from_chars(all[r].data(), all[r].data() + all[r].size(), count);
    if (count == 0) continue;
    const int rank = static_cast<int>(r);
    out.faulty_parts.push_back(who(rank, group.name(rank)));
    if (!out.error.empty()) continue;
    out.outcome = Outcome::corrupt;
    out.error = out.faulty_parts.back() + " " + fmt::format(fmt::runtime(words), count);
  }
  out.metrics["ranks"] = {static_cast<double>(group.size()), "ranks"};
  out.detail["hosts"] = names(group);
  return out;
}

kernels::Measurement measurement_from_json(const Json& json) {
  kernels::Measurement out;
  out.check = text_at(json, "check");
  out.error = text_at(json, "error");
  const std::string outcome = text_at(json, "outcome");
  const auto known = std::find_if(std::begin(kOutcomes), std::end(kOutcomes),
                                  [&](Outcome one) { return to_string(one) == outcome; });
  if (known == std::end(kOutcomes)) {
    out.outcome = Outcome::failed;
    out.error = "the load's output is not a measurement";
    return out;
  }
  out.outcome = *known;
  if (const auto faulty_parts = json.find("blame"); faulty_parts != json.end() && faulty_parts->is_array())
    for (const Json& one : *faulty_parts)
      if (one.is_string()) out.faulty_parts.push_back(one.get<std::string>());
  if (const auto detail = json.find("detail"); detail != json.end() && detail->is_object())
    out.detail = *detail;
  const auto metrics = json.find("metrics");
  if (metrics == json.end() || !metrics->is_object()) return out;
  for (const auto& [name, metric] : metrics->items()) {
    const Json* value = metric.is_object() && metric.contains("value") ? &metric["value"] : nullptr;
    const Json* unit = metric.is_object() && metric.contains("unit") ? &metric["unit"] : nullptr;
    if (value && value->is_number() && unit && unit->is_string())
      out.metrics[name] = {value->get<double>(), unit->get<std::string>()};
  }
  return out;
}

kernels::Measurement run_load(const std::string& load, Group& group, const LoadOptions& options,
                              const GpuHere& here) {
  if (load == "allreduce") return run_allreduce(group, options);
  if (load == "training") return run_training(group, options);
  if (load == "nccl") return run_nccl(group, options, here);
  if (load == "gpu-training") return run_gpu_training(group, options, here);
  kernels::Measurement out;
  out.check = load;
  out.outcome = Outcome::refused;
  out.error = fmt::format("unknown load '{}'", load);
  return out;
}

}  // namespace muster::together
