#include "controller/report/gpu_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/cuda_driver.h"
#include "base/standin.h"
#include "controller/report/gpu_archive.h"
#include "controller/report/measured.h"
#include "controller/spec/gpu_software.h"

namespace muster {
namespace {

constexpr const char* kCublaslt = "libcublasLt.so.";

bool is_of_own_gpus(const Json& params) {
  const std::string kernel = text_of(field(params, "kernel"));
  return kernel.starts_with("gpu-") ||
         (kernel == "counters" && field(field(params, "options"), "gpus") == true);
}
bool is_about_gpus(const Json& params) { return loads_gpus(params) || is_of_own_gpus(params); }

// A check of one node's own GPUs has a part for each of these GPUs.
void add_unmeasured(const Json& params, size_t gpus, MeasuredStep& step) {
  const Json& parts = field(step.result, "parts");
  if (!text_of(field(params, "kernel")).starts_with("gpu-") || !parts.is_array()) return;
  if (parts.size() >= std::max<size_t>(gpus, 1)) return;
  const std::string error = parts.empty() ? std::string("no GPU was measured")
                                          : fmt::format("{} of {} GPUs were measured", parts.size(), gpus);
  step.result["parts"].push_back(
      {{"subject", ""}, {"result", {{"outcome", "unavailable"}, {"error", error}}}});
}

void mark_stand_in(bool lab, MeasuredStep& step) {
  step.title = fmt::format("{} ({})", step.title, kSimulatedGpu);
  step.status = lab ? "not_applicable" : "failed";
  step.message = lab ? "not applicable: SIMULATED GPU" : "SIMULATED GPU, but this is not a lab";
  step.mandatory = step.mandatory && !lab;
  step.result = step.rounds = nullptr;
  step.members.clear();
}

std::string outcome_of(const MeasuredStep& step) { return text_of(field(step.result, "outcome")); }

bool is_test(const Json& result) {
  const std::string outcome = text_of(field(result, "outcome"));
  return outcome == "measured" || outcome == "corrupt";
}

// Over all GPUs of its members, or over pairs: a failure is a measurement only if it could have passed.
bool ran_somewhere(const MeasuredStep& step) {
  if (is_test(step.result)) return true;
  for (const Json& parts : step.rounds)
    for (const Json& part : parts)
      if (is_test(field(part, "result"))) return true;
  return false;
}

// Returns the members that could not take part, with what each reported.
std::map<std::string, const Json*> reasons_of(const MeasuredStep& step) {
  std::map<std::string, const Json*> out;
  for (const Json& one : field(field(step.result, "detail"), "nodes")) {
    if (text_of(field(one, "outcome")) != "unavailable") continue;
    if (field(field(one, "detail"), "stopped") == true) continue;  // ended because of a different member
    const std::string host = text_of(field(one, "host"));
    const std::string name = host.substr(0, host.find('.'));
    if (std::count(step.members.begin(), step.members.end(), name) > 0) out[name] = &one;
  }
  return out;
}

// A member whose GPUs were not tested: because of its own `answer`, or, if null, the members in `because`.
Check unrun_check(const MeasuredStep& step, const std::string& name, const Json* answer,
                  const std::string& because) {
  Check out;
  out.name = step.group + "/run";
  out.title = step.title.empty() ? step.group : step.title;
  out.mandatory = true;
  out.expected_text = "runs";
  out.derivation = "the test across all GPUs must run";
  if (!answer) {
    out.verdict = Verdict::degraded;
    out.reason = fmt::format(
        "the test did not run on this node's GPUs because of {}; after the repair, run `muster accept`",
        because);
    return out;
  }
  MeasuredStep own = step;
  own.result = *answer;
  const std::string error = text_of(field(*answer, "error"));
  out.verdict = Verdict::skipped;
  out.reason = fmt::format("{}; to fix it: {}", error.empty() ? "the node could not take part" : error,
                           remedy(own, name));
  return out;
}

// Adds the remedy for a failed program; the reason for a missing program contains its remedy already.
void add_remedy(std::vector<Check>& checks, const MeasuredStep& step) {
  if (outcome_of(step) == "unavailable" || step.result.is_null()) return;  // judged as not run, with remedy
  for (auto& check : checks)
    if (check.name == step.group + "/data" && check.verdict != Verdict::pass)
      check.reason += "; to fix it: " + remedy(step, step.node);
}

// Failures that are not the fault of the node that started the test. A node without a GPU in the test
// (`only_starts`) does not have to reach the test's limits either.
void hold_back(std::vector<Check>& checks, const MeasuredStep& step, bool named) {
  const bool starter = only_starts(step);
  for (auto& check : checks) {
    const bool open = check.verdict == Verdict::fail || check.verdict == Verdict::skipped;
    const bool data = check.name == step.group + "/data";
    if (!check.mandatory || !open || !check.name.starts_with(step.group + "/")) continue;
    if (data) check.verdict = Verdict::degraded;
    if (starter) check.mandatory = data && !named;
  }
}

// "libcublasLt.so.13" -> 13
int cuda_of_cublaslt(const std::string& name) {
  return std::atoi(name.c_str() + std::string(kCublaslt).size());
}

// Programs come from the machine on which the command runs; nothing of muster is installed on the host.
std::string remedy_of_running_host(const std::string& missing, const std::string& found,
                                   const std::string& node) {
  const std::string again = "repeat `muster accept --hosts`";
  const auto bring = [&](int cuda) { return fmt::format("{}; then {}", bring_gpu_program(cuda), again); };
  if (missing == kGpuProgram) return bring(0);
  if (missing.starts_with(kCublaslt) && found.starts_with(kCublaslt)) {
    const int there = cuda_of_cublaslt(found);
    if (there <= cuda_of_cublaslt(missing)) return bring(there);
    // The program was chosen by the driver, so a newer one may not run.
    const int driver = oldest_driver_for(there);
    if (driver == 0) return fmt::format("install {} on {}; then {}", missing, node, again);
    return fmt::format("install {} on {}; or, if its driver is {} or newer, {}", missing, node, driver,
                       bring(there));
  }
  if (missing.starts_with("lib"))
    return fmt::format("name the folder on {} that has {} with `--libs FOLDER`, or install it there; then {}",
                       node, missing, again);
  if (missing == "driver") return fmt::format("run `ssh {} nvidia-smi` to see why; then {}", node, again);
  if (!missing.empty())
    return fmt::format("install the package `muster` again where the command runs: it contains {}; then {}",
                       missing, again);
  return fmt::format("correct the reported problem, then {}", again);
}

enum class Gpus { none, played, real };

Gpus gpus_of(const HardwareFacts* facts) {
  if (facts && facts->gpus.empty()) return Gpus::none;
  return facts && has_simulated_gpus(*facts) ? Gpus::played : Gpus::real;
}

Gpus gpus_of(const MeasuredStep& step, const GpuHosts& hosts) {
  if (step.members.empty()) return gpus_of(hosts.facts(step.node));
  Gpus most = Gpus::none;
  for (auto name = step.members.begin(); name != step.members.end() && most != Gpus::real; ++name)
    most = std::max(most, gpus_of(hosts.facts(*name)));
  return most;
}

}  // namespace

void mark_gpu_steps(const std::vector<wire::Step>& planned, const GpuHosts& hosts,
                    std::vector<MeasuredStep>& steps) {
  std::map<std::string, const Json*> about;
  for (const auto& step : planned)
    if (is_about_gpus(step.params)) about[step.id] = &step.params;
  for (auto& step : steps) {
    const auto params = about.find(step.id);
    if (params == about.end()) continue;
    Gpus gpus = gpus_of(step, hosts);
    // The step was planned when the node had GPUs: if it has none now, the check must not be waived.
    if (gpus == Gpus::none && is_of_own_gpus(*params->second)) gpus = Gpus::real;
    // Steps that only read counters of the simulated driver are judged as usual.
    if (gpus == Gpus::played && loads_gpus(*params->second)) mark_stand_in(hosts.lab, step);
    if (gpus != Gpus::real) continue;
    step.on_gpus = true;
    std::vector<std::string> nodes = step.members;
    if (nodes.empty()) nodes = {step.node};
    if (hosts.adopted)
      std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(step.adopted), hosts.adopted);
    if (hosts.running) step.running = hosts.running(step.node);
    const HardwareFacts* own = hosts.facts(step.node);
    add_unmeasured(*params->second, own ? own->gpus.size() : 0, step);
  }
}

bool checks_own_gpus(const Json& planned) {
  return std::any_of(planned.begin(), planned.end(), [](const Json& json) {
    const auto step = wire::step_from_json(json);
    return step.ok() && is_of_own_gpus(step->params) &&
           (step->mandatory || !field(step->expect, "blocks").empty());
  });
}

bool only_starts(const MeasuredStep& step) {
  return step.on_gpus && !step.members.empty() &&
         std::count(step.members.begin(), step.members.end(), step.node) == 0;
}

bool must_run(const MeasuredStep& step) {
  return step.on_gpus && step.status != kNotLookedAt && (step.mandatory || !step.blocks.empty());
}

bool has_run(const MeasuredStep& step) {
  const std::string outcome = outcome_of(step);
  if (outcome != "measured") return outcome == "corrupt";
  if (!step.expect.is_object() || step.expect.empty()) return true;
  for (const auto& [metric, limit] : step.expect.items())
    if (metric_value(step.result, metric)) return true;
  return false;
}

std::string unsupported(const MeasuredStep& step) {
  if (!step.on_gpus || outcome_of(step) != "unavailable") return "";
  return text_of(field(field(step.result, "detail"), "unsupported"));
}

std::string remedy(const MeasuredStep& step, const std::string& node) {
  const Json& detail = field(step.result, "detail");
  const std::string missing = text_of(field(detail, "missing")), found = text_of(field(detail, "found"));
  if (step.running) return remedy_of_running_host(missing, found, node);
  // A plan for that node alone does not include a test of several nodes.
  const bool together = !step.members.empty();
  const std::string again = together ? "`muster accept`" : fmt::format("`muster accept --limit {}`", node);
  const std::string reimage =
      fmt::format("`muster reimage {}`{}", node, together ? ", then `muster accept`" : "");
  const bool adopted = std::count(step.adopted.begin(), step.adopted.end(), node) > 0;
  const std::string package = fmt::format("`apt install ./build-packages/{}_*.deb`", kGpuProgram);
  const std::string install =
      adopted ? fmt::format("{} on {} itself (the package installs to /usr/lib/muster), then {}", package,
                            node, again)
              : fmt::format("{} on the controller host, then {}", package, reimage);
  if (missing == kGpuProgram)
    return fmt::format(
        "run `scripts/build-gpu-package.sh` (for a CUDA version other than 12, with `--here` on a machine "
        "that has that version), {}",
        install);
  if (missing.starts_with(kCublaslt) && found.starts_with(kCublaslt))
    return fmt::format(
        "run `scripts/build-gpu-package.sh --here` on a machine with CUDA {}, this node's version, {}",
        found.substr(std::string(kCublaslt).size()), install);
  const std::string bake =
      adopted
          ? fmt::format("install it on the node by hand (an adopted node has no muster image), then run {}",
                        again)
          : fmt::format(
                "add the playbook {}, which installs it, to `bake` of the node's image; run `muster up` with "
                "that spec, then {}",
                missing == "driver" ? gpu_driver_playbooks() : cuda_playbooks(), reimage);
  if (missing.starts_with("lib")) return bake;
  if (missing == "driver")
    return fmt::format("run `ssh {} nvidia-smi` to see why; if no driver is installed, {}", node, bake);
  if (!missing.empty() && adopted)
    return fmt::format("copy /usr/lib/muster/{} from the controller host to the same path on {}, then run {}",
                       missing, node, again);
  if (!missing.empty()) return fmt::format("run {}; the image contains {}", reimage, missing);
  return fmt::format("correct the reported problem, then run {}", again);
}

bool hold_unrun(std::map<std::string, std::vector<Check>>& checks, const MeasuredStep& step,
                const std::map<std::string, const HardwareFacts*>& facts) {
  if (step.members.empty() || !must_run(step) || has_run(step)) return false;
  if (!step.own_affair && ran_somewhere(step)) return false;
  const auto reasons = reasons_of(step);
  std::string because;
  for (const auto& [name, answer] : reasons) because += (because.empty() ? "" : ", ") + name;
  if (because.empty()) {
    because = step.node;
    add_remedy(checks[step.node], step);
  }
  if (!reasons.empty() || only_starts(step)) hold_back(checks[step.node], step, !reasons.empty());
  for (const auto& name : step.members) {
    const auto found = facts.find(name);
    if (found != facts.end() && found->second && has_simulated_gpus(*found->second)) continue;
    const auto reason = reasons.find(name);
    if (reason != reasons.end())
      checks[name].push_back(unrun_check(step, name, reason->second, because));
    else if (name != step.node)  // reported by that node's own data check
      checks[name].push_back(unrun_check(step, name, nullptr, because));
  }
  return true;
}

}  // namespace muster
