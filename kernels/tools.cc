#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>

#include "kernels/kernels.h"

namespace muster::kernels {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::measured:
      return "measured";
    case Outcome::corrupt:
      return "corrupt";
    case Outcome::failed:
      return "failed";
    case Outcome::refused:
      return "refused";
    case Outcome::unavailable:
      return "unavailable";
  }
  return "unavailable";
}

Json to_json(const Measurement& m) {
  Json metrics = Json::object();
  for (const auto& [name, metric] : m.metrics)
    metrics[name] = {{"value", rounded(metric.value)}, {"unit", metric.unit}};
  Json out = {{"check", m.check},  {"version", 1},     {"outcome", to_string(m.outcome)},
              {"error", m.error},  {"blame", m.blame}, {"metrics", metrics},
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

uint64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  uint64_t kib = 0;
  while (in >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(in, unit);
  }
  return static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

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
