// What the expected values of processors and memory are derived from.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "kernels/kernels.h"

namespace muster::kernels {
namespace {

unsigned word_at(const std::string& table, size_t at) {
  if (table.size() < at + 2) return 0;
  return static_cast<unsigned char>(table[at]) |
         static_cast<unsigned>(static_cast<unsigned char>(table[at + 1])) << 8;
}

}  // namespace

Machine look_at_machine(const Files& files, const std::vector<int>& cpus) {
  Machine out;
  std::set<std::string> cores, counted;
  for (const int cpu : cpus) counted.insert("cpu" + std::to_string(cpu));
  for (const auto& name : files.list("/sys/devices/system/cpu")) {
    if (!counted.empty() && counted.count(name) == 0) continue;
    const std::string topology = "/sys/devices/system/cpu/" + name + "/topology/";
    const std::string core = files.read_line(topology + "core_id");
    if (!core.empty()) cores.insert(files.read_line(topology + "physical_package_id") + "/" + core);
  }
  out.physical_cores = cores.size();
  // The clock that is promised under full load when the driver tells it, else the highest.
  for (const char* file : {"base_frequency", "cpuinfo_max_freq"}) {
    const std::string khz = files.read_line(std::string("/sys/devices/system/cpu/cpu0/cpufreq/") + file);
    if (out.cpu_mhz == 0 && !khz.empty()) out.cpu_mhz = std::strtod(khz.c_str(), nullptr) / 1000;
  }
  // SMBIOS memory devices (type 17): size at 0x0c (0: empty slot), configured speed at 0x20, maximum at 0x15.
  for (const auto& entry : files.list("/sys/firmware/dmi/entries")) {
    if (entry.rfind("17-", 0) != 0) continue;
    const auto table = files.read("/sys/firmware/dmi/entries/" + entry + "/raw");
    if (!table.ok() || word_at(*table, 0x0c) == 0) continue;
    const unsigned configured = word_at(*table, 0x20),
                   speed = configured ? configured : word_at(*table, 0x15);
    ++out.dimms;
    // The slowest module sets the pace; one that does not tell makes the sum unknown.
    out.dimm_mt_s = out.dimms == 1 ? speed : std::min(out.dimm_mt_s, speed);
  }
  return out;
}

// Two fused multiply-adds a cycle on vectors of eight or four numbers (Intel and AMD optimisation manuals);
// plain SSE2 has one multiply and one add of two.
int flops_per_cycle(const std::string& variant) {
  if (variant == "avx512f") return 32;
  return variant == "avx2+fma" ? 16 : 4;
}

}  // namespace muster::kernels
