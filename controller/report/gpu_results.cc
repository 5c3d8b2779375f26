#include "controller/report/gpu_results.h"

#include <fmt/format.h>

#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "controller/report/measured.h"
#include "controller/report/report.h"
#include "controller/report/signature.h"

namespace muster {
namespace {

Error useless(const std::string& why) { return fail(Code::invalid, "acceptance.gpu_results: " + why); }

// Returns the GPUs of a node by UUID, without simulated ones.
std::map<std::string, std::string> models_of(const NodeReport& node) {
  std::map<std::string, std::string> out;
  const auto facts = hardware_facts_from_json(node.facts);
  if (!facts.ok()) return out;
  for (const auto& gpu : facts->gpus)
    if (!gpu.simulated && !gpu.uuid.empty() && gpu.model.find("SIMULATED") == std::string::npos)
      out[gpu.uuid] = gpu.model;
  return out;
}

}  // namespace

Result<GpuResults> read_gpu_results(const std::string& text, const std::string& public_pem,
                                    const SignatureCheck& check) {
  const auto trusted = key_line(public_pem);
  if (!trusted.ok())
    return fail(Code::invalid, "acceptance.gpu_results_key: " + trusted.error().message +
                                   " (`muster report key` prints one)");
  const auto parts = split_signature(text);
  if (!parts.ok()) return useless("not a signed report: " + parts.error().message);
  if (parts->public_key != *trusted)
    return useless(fmt::format("the report is signed by key {}, but `gpu_results_key` is {}",
                               key_fingerprint(parts->public_key), key_fingerprint(*trusted)));
  if (!check(public_pem, parts->body, parts->value))
    return useless("the report's signature does not match its content");
  const auto json = parse_json(parts->body);
  if (!json.ok()) return useless(json.error().message);
  const auto report = report_from_json(*json);
  if (!report.ok()) return useless(report.error().message);
  if (report->simulated)
    return useless("the report is about SIMULATED HARDWARE, which proves nothing about real GPUs");
  std::map<std::string, std::map<std::string, std::vector<double>>> values;
  for (const auto& node : report->nodes) {
    if (!handed_over(node)) continue;
    const auto models = models_of(node);
    for (const auto& one : node.checks) {
      const auto model = models.find(one.subject);
      // Of a model that the GPU table does not have, the operator has checked what the trusted node reached.
      const bool good = one.verdict == Verdict::pass || one.verdict == Verdict::not_judged;
      if (model != models.end() && good && one.measured && !one.lower_is_better)
        values[model->second][one.name].push_back(*one.measured);
    }
  }
  GpuResults out;
  out.digest = parts->digest;
  for (const auto& [model, checks] : values)
    for (const auto& [name, list] : checks)
      out.models[model][name] = {median_of(list), static_cast<int>(list.size())};
  if (out.models.empty())
    return useless("the report contains no GPU that was measured and passed on an accepted node");
  return out;
}

}  // namespace muster
