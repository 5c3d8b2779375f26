#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/split.h"
#include "base/words.h"
#include "kernels/common/kernels.h"

namespace muster::kernels {

constexpr Words<Outcome, 5> kOutcomes = {{{Outcome::measured, "measured"},
                                          {Outcome::corrupt, "corrupt"},
                                          {Outcome::failed, "failed"},
                                          {Outcome::refused, "refused"},
                                          {Outcome::unavailable, "unavailable"}}};

std::string_view to_string(Outcome outcome) { return word_of(kOutcomes, outcome); }

Json to_json(const Measurement& m) {
  Json metrics = Json::object();
  for (const auto& [name, metric] : m.metrics)
    metrics[name] = {{"value", rounded(metric.value)}, {"unit", metric.unit}};
  Json out = {{"check", m.check},
              {"version", 1},
              {"outcome", to_string(m.outcome)},
              {"error", m.error},
              {"blame", m.faulty_parts},
              {"metrics", metrics},
              {"detail", m.detail}};
  if (!m.parts.is_null()) out["parts"] = m.parts;
  return out;
}

int exit_status(Outcome outcome) {
  if (outcome == Outcome::measured) return 0;
  return outcome == Outcome::corrupt || outcome == Outcome::failed ? 1 : 3;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> out;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  if (out.empty()) out.push_back(0);
  return out;
}

void pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);  // the calling thread only
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = p * static_cast<double>(values.size() - 1);
  const size_t low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (at - static_cast<double>(low));
}

namespace {

uint64_t mem_available(const Files& files) {
  for (const std::string& line : split(files.read("/proc/meminfo").value_or(""), '\n'))
    if (line.starts_with("MemAvailable:")) return std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  return static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Returns what a cgroup and those above it leave free: a process that takes more is killed. Without a limit,
// version 2 has "max" instead of a number, and version 1 a number that no machine reaches.
uint64_t least_room(const Files& files, const std::string& mount, std::string path, const char* limit,
                    const char* used) {
  uint64_t least = UINT64_MAX;
  for (;; path.erase(std::min(path.rfind('/'), path.size() - 1))) {
    const std::string most = files.read_line(mount + path + limit);
    if (!most.empty() && most.find_first_not_of("0123456789") == std::string::npos) {
      const uint64_t all = std::strtoull(most.c_str(), nullptr, 10),
                     taken = std::strtoull(files.read_line(mount + path + used, "0").c_str(), nullptr, 10);
      least = std::min(least, all > taken ? all - taken : 0);
    }
    if (path.empty()) return least;
  }
}

uint64_t cgroup_room(const Files& files) {
  uint64_t least = UINT64_MAX;
  for (const std::string& line : split(files.read("/proc/self/cgroup").value_or(""), '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/" || path.find("/..") != std::string::npos) path.clear();
    if (controllers.empty())
      least = std::min(least, least_room(files, "/sys/fs/cgroup", path, "/memory.max", "/memory.current"));
    else if (controllers == "memory")
      least = std::min(least, least_room(files, "/sys/fs/cgroup/memory", path, "/memory.limit_in_bytes",
                                         "/memory.usage_in_bytes"));
  }
  return least;
}

}  // namespace

uint64_t available_memory(const Files& files) { return std::min(mem_available(files), cgroup_room(files)); }

void fill_random(SplitMix& random, char* out, size_t bytes) {
  while (bytes > 0) {
    const uint64_t word = random.next();
    const size_t take = std::min(bytes, sizeof word);
    std::memcpy(out, &word, take);
    out += take;
    bytes -= take;
  }
}

}  // namespace muster::kernels
