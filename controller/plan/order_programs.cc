#include <charconv>
#include <set>

#include "controller/plan/passes.h"

#include "base/cuda_driver.h"
#include "base/json_at.h"
#include "base/perftest_files.h"
#include "base/ports.h"

namespace muster {
namespace {

constexpr const char* kAccept = "muster-accept";
constexpr const char* kNvml = "muster-accept-nvml";
constexpr const char* kGpu = "muster-accept-gpu";
constexpr const char* kMpi = "muster-mpi-check";

bool loads_gpus_together(const Json& params) {
  const std::string load = text_at(params, "load");
  return load == "nccl" || load == "gpu-training";
}

bool may_have_gpus(const Planning& p, const Draft& d) {
  const auto machine = p.machines.find(d.spec->name);
  return machine == p.machines.end() || !machine->second->gpus.empty();
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// ".../cuda12/muster-accept-gpu" -> 12; 0: a program that is the only one of its name.
int cuda_of(const std::string& path) {
  static const std::string folder = "/cuda";
  const size_t at = path.rfind(folder);
  int cuda = 0;
  if (at != std::string::npos)
    std::from_chars(path.data() + at + folder.size(), path.data() + path.size(), cuda);
  return cuda;
}

// Which of several programs for GPUs the machine runs. If its driver runs none, the oldest: its result then
// names the driver.
int wanted_cuda(const Planning& p, const Draft& d) {
  std::set<int> offered;
  for (const auto& program : p.in.programs)
    if (const int cuda = cuda_of(program.path); cuda > 0) offered.insert(cuda);
  if (offered.empty()) return 0;
  const auto machine = p.machines.find(d.spec->name);
  const int best = machine == p.machines.end() ? 0 : cuda_for(*machine->second, offered);
  return best > 0 ? best : *offered.begin();
}

}  // namespace

std::set<std::string> programs_of(const wire::Step& step) {
  if (step.module == "accept") {
    const std::string kernel = text_at(step.params, "kernel");
    if (kernel.starts_with("gpu-")) return {kGpu};
    if (kernel == "counters") return {kAccept, kNvml};
    return {kAccept};
  }
  if (step.module == "accept_links") return {kAccept};
  if (step.module == "accept_rdma") {
    std::set<std::string> used(std::begin(kPerftestFiles), std::end(kPerftestFiles));
    used.insert(kAccept);
    return used;
  }
  std::set<std::string> together;
  if (step.module == "accept_group" || step.module == "accept_group_serve") together = {kAccept};
  if (step.module == "accept_mpi") together = {kMpi};
  if (!together.empty() && loads_gpus_together(step.params)) together.insert(kGpu);
  return together;
}

void find_started_programs(Planning& p) {
  for (const auto& leader : p.drafts)
    for (const auto& s : leader.accept_cluster) {
      if (s.step().module != "accept_mpi" || !s.about) continue;
      for (auto& d : p.drafts)
        if (d.spec->adopt.declared() && s.about->has(*d.spec)) d.started_for.merge(programs_of(s.step()));
    }
}

void name_programs(const Planning& p, const Draft& d, const std::vector<PlannedStep>& steps, bool first,
                   ActionParams& params) {
  if (!d.spec->adopt.declared()) return;
  std::set<std::string> used;
  if (first) used = d.started_for;
  for (const auto& s : steps) used.merge(programs_of(s.step()));
  if (!may_have_gpus(p, d)) used.erase(kNvml);
  Json named = Json::array();
  const int wanted = wanted_cuda(p, d);
  for (const auto& program : p.in.programs) {
    const std::string name = file_name(program.path);
    const int cuda = cuda_of(program.path);
    if (!used.count(name) || (cuda > 0 && cuda != wanted)) continue;
    const std::string sha256 = program.sha256.substr(program.sha256.find(':') + 1);
    named.push_back({{"name", name}, {"sha256", sha256}, {"size", program.size}});
  }
  if (named.empty()) return;
  params.set_own("programs", std::move(named));
  if (!p.address.empty()) params.set_own("base_url", boot_url(p.address));
}

}  // namespace muster
