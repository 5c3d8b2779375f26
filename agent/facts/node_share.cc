#include "agent/facts/node_share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "agent/facts/collect_facts.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr const char* kCgroups = "/sys/fs/cgroup";
constexpr int kMostCpus = 65536;
constexpr double kWholeMemory = 0.9;  // slurm.conf (RealMemory, MemSpecLimit) reserves some for the system
constexpr double kGiB = 1024.0 * 1024 * 1024;

std::optional<uint64_t> whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Returns the folders of a cgroup, from itself up to the mount point. The path may lead out of a namespace
// ("/../x"), or be a path of the host although the container's own cgroup is mounted; folders that do not
// exist have no files.
std::vector<std::string> levels(const std::string& mount, std::string path) {
  std::vector<std::string> out;
  if (path.find("/..") != std::string::npos) path.clear();
  while (!path.empty() && path != "/") {
    out.push_back(mount + path);
    path.erase(path.rfind('/'));
  }
  out.push_back(mount);
  return out;
}

struct Cgroup {
  std::vector<std::string> cpuset, cpu, memory;  // levels; empty: there is no such controller
  bool v2_cpuset = false, v2_cpu = false, v2_memory = false;
};

// Version 1 lists a cgroup per controller ("4:cpuset:/slurm/uid_1000/job_7/step_0"), version 2 only one
// ("0::/x"). Both may be present, each with its own controllers.
Cgroup own_cgroup(const Files& files) {
  std::string unified;
  bool has_unified = false;
  std::map<std::string, std::string> paths;
  for (const std::string& line : split(files.read("/proc/self/cgroup").value_or(""), '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (line.substr(0, first) == "0" && controllers.empty()) {
      has_unified = true;
      unified = path;
    }
    for (const std::string& one : split(controllers, ',')) paths[one] = path;
  }
  const std::string base = kCgroups;
  const bool alone = files.exists(base + "/cgroup.controllers");
  const auto v2 =
      has_unified ? levels(alone ? base : base + "/unified", unified) : std::vector<std::string>();
  const auto v1 = [&](const char* name) -> std::vector<std::string> {
    const auto found = paths.find(name);
    if (found == paths.end()) return {};
    const std::string own = base + "/" + name;
    return levels(files.is_directory(own) ? own : base + "/cpu,cpuacct", found->second);
  };
  Cgroup out{v1("cpuset"), v1("cpu"), v1("memory")};
  const auto otherwise = [&](std::vector<std::string>& place, bool& is_v2) {
    is_v2 = place.empty();
    if (is_v2) place = v2;
  };
  otherwise(out.cpuset, out.v2_cpuset);
  otherwise(out.cpu, out.v2_cpu);
  otherwise(out.memory, out.v2_memory);
  return out;
}

// Returns the value at the nearest level that has the controller.
std::set<int> cpuset_of(const Files& files, const Cgroup& cgroup) {
  const std::vector<std::string> names =
      cgroup.v2_cpuset ? std::vector<std::string>{"/cpuset.cpus.effective"}
                       : std::vector<std::string>{"/cpuset.effective_cpus", "/cpuset.cpus"};
  for (const std::string& level : cgroup.cpuset)
    for (const std::string& name : names)
      if (const auto cpus = cpu_list(files.read_line(level + name)); !cpus.empty()) return cpus;
  return {};
}

// Returns the lowest quota of all levels, in processors: each level limits those below it.
std::optional<double> quota_of(const Files& files, const Cgroup& cgroup) {
  std::optional<double> least;
  for (const std::string& level : cgroup.cpu) {
    std::string quota, period;
    if (cgroup.v2_cpu) {
      const auto words = split(files.read_line(level + "/cpu.max"), ' ');
      quota = words.size() == 2 ? words[0] : "";
      period = words.size() == 2 ? words[1] : "";
    } else {
      quota = files.read_line(level + "/cpu.cfs_quota_us");
      period = files.read_line(level + "/cpu.cfs_period_us");
    }
    const auto time = whole_number(quota), of = whole_number(period);  // "max" and "-1" are not numbers
    if (!time || !of || *of == 0) continue;
    const double cores = static_cast<double>(*time) / static_cast<double>(*of);
    least = std::min(cores, least.value_or(cores));
  }
  return least;
}

uint64_t memory_limit(const Files& files, const Cgroup& cgroup, uint64_t total) {
  uint64_t least = total;
  for (const std::string& level : cgroup.memory) {
    const char* name = cgroup.v2_memory ? "/memory.max" : "/memory.limit_in_bytes";
    if (const auto limit = whole_number(files.read_line(level + name))) least = std::min(least, *limit);
  }
  return least;
}

// Counts the online processors in `cpus`: a process's affinity may include some that are not plugged in.
size_t count_online(const std::set<int>& cpus, const std::set<int>& online) {
  if (online.empty()) return cpus.size();
  return static_cast<size_t>(
      std::count_if(cpus.begin(), cpus.end(), [&](int cpu) { return online.count(cpu) > 0; }));
}

std::set<int> affinity(const Files& files) {
  static const std::string key = "Cpus_allowed_list:";
  for (const std::string& line : split(files.read("/proc/self/status").value_or(""), '\n'))
    if (line.starts_with(key))
      return cpu_list(line.substr(std::min(line.find_first_not_of(" \t", key.size()), line.size())));
  return {};
}

}  // namespace

std::set<int> cpu_list(const std::string& text) {
  std::set<int> out;
  for (const std::string& part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = whole_number(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : whole_number(part.substr(dash + 1));
    if (!first || !last) return {};
    for (uint64_t cpu = *first; cpu <= *last && cpu < kMostCpus; ++cpu) out.insert(static_cast<int>(cpu));
  }
  return out;
}

std::set<int> online_cpus(const Files& files) {
  return cpu_list(files.read_line("/sys/devices/system/cpu/online"));
}

NodeShare node_share(const Files& files) {
  const std::set<int> online = online_cpus(files);
  NodeShare out;
  out.of_cores = online.empty() ? cpu_facts(files).count : static_cast<int>(online.size());
  out.of_memory_bytes = usable_memory(files);
  out.cores = out.of_cores;
  const Cgroup cgroup = own_cgroup(files);
  const auto narrow = [&](double cores, const char* by) {
    if (cores <= 0 || cores >= out.cores) return;
    out.cores = cores;
    out.cores_by = by;
  };
  narrow(static_cast<double>(count_online(cpuset_of(files, cgroup), online)), "cpuset");
  narrow(static_cast<double>(count_online(affinity(files), online)), "affinity");
  narrow(quota_of(files, cgroup).value_or(0), "cpu.max");
  out.memory_bytes = memory_limit(files, cgroup, out.of_memory_bytes);
  return out;
}

std::vector<std::string> share_words(const NodeShare& share) {
  std::vector<std::string> out;
  if (share.cores > 0 && share.cores < share.of_cores)
    out.push_back(fmt::format("{:.4g} of {} cores{}", share.cores, share.of_cores,
                              share.cores_by.empty() ? "" : fmt::format(" ({})", share.cores_by)));
  const auto memory = static_cast<double>(share.memory_bytes);
  const auto of_memory = static_cast<double>(share.of_memory_bytes);
  if (memory > 0 && memory < kWholeMemory * of_memory)
    out.push_back(fmt::format("{:.4g} of {:.4g} GiB of memory", memory / kGiB, of_memory / kGiB));
  if (share.gpus && share.of_gpus && *share.gpus < *share.of_gpus)
    out.push_back(fmt::format("{} of {} GPUs", *share.gpus, *share.of_gpus));
  return out;
}

std::string share_like(const NodeShare& share) {
  return fmt::format("{}", fmt::join(share_words(share), ", "));
}

Json to_json(const NodeShare& share) {
  Json out = {{"cores", share.cores},
              {"of_cores", share.of_cores},
              {"memory_bytes", share.memory_bytes},
              {"of_memory_bytes", share.of_memory_bytes},
              {"words", share_words(share)}};
  if (!share.cores_by.empty()) out["cores_by"] = share.cores_by;
  if (share.gpus) out["gpus"] = *share.gpus;
  if (share.of_gpus) out["of_gpus"] = *share.of_gpus;
  return out;
}

}  // namespace muster
