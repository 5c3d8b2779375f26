// Reads the properties of processors and memory from which their expected performance is derived.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "host/processors.h"
#include "kernels/common/kernels.h"
#include "kernels/cpu/cpu.h"

namespace muster::kernels {
namespace {

// A field of the fixed part of an SMBIOS structure, whose length is in its second byte: older versions have
// fewer fields, and the texts follow directly.
unsigned byte_at(const std::string& table, size_t at) {
  if (table.size() < 2 || at >= std::min<size_t>(table.size(), static_cast<unsigned char>(table[1])))
    return 0;
  return static_cast<unsigned char>(table[at]);
}

unsigned word_at(const std::string& table, size_t at) {
  return byte_at(table, at) | byte_at(table, at + 1) << 8;
}

// `index` counts from 1; strings follow the fixed part of a structure.
std::string text_at(const std::string& table, unsigned index) {
  size_t begin = byte_at(table, 1);
  for (unsigned i = 1; index > 0 && begin < table.size(); ++i) {
    const size_t end = std::min(table.find('\0', begin), table.size());
    if (i == index) return table.substr(begin, end - begin);
    begin = end + 1;
  }
  return "";
}

std::string cpuinfo(const std::string& text, const std::string& name) {
  size_t at = text.find(name + "\t");
  while (at != std::string::npos && at > 0 && text[at - 1] != '\n') at = text.find(name + "\t", at + 1);
  const size_t colon = at == std::string::npos ? at : text.find(": ", at);
  return colon == std::string::npos ? "" : text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

// Intel's product pages ("# of AVX-512 FMA Units") and optimisation manual: two in all Xeons of the third
// generation and later; before that in Platinum, Gold 6000, Gold 5122 and 5222, and W. AMD's optimisation
// guides: family 19h does 512 bits in two steps, servers of family 1Ah in one.
int units_512(const Files& files) {
  const std::string text = files.read("/proc/cpuinfo").value_or("");
  const std::string vendor = cpuinfo(text, "vendor_id"), name = cpuinfo(text, "model name");
  const int family = std::atoi(cpuinfo(text, "cpu family").c_str()),
            model = std::atoi(cpuinfo(text, "model").c_str());
  if (vendor == "AuthenticAMD" && family == 0x19) return 1;
  if (vendor == "AuthenticAMD" && family == 0x1a) return model < 0x20 ? 2 : 0;
  if (vendor != "GenuineIntel" || family != 6) return 0;
  if (model == 85) {
    for (const char* two : {"Platinum", "Gold 6", "Gold 5122", "Gold 5222", "Xeon(R) W-"})
      if (name.find(two) != std::string::npos) return 2;
    return 1;
  }
  return model == 106 || model == 143 || model == 173 || model == 207 ? 2 : 0;
}

// "P0_Node0_Channel2_Dimm1" -> "P0_NODE0_CHANNEL2"; "" if the locator names no channel.
std::string channel_in(std::string locator) {
  std::transform(locator.begin(), locator.end(), locator.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const size_t at = locator.find("CHANNEL");
  if (at == std::string::npos || locator.substr(0, at).find("DIMM") != std::string::npos) return "";
  const size_t begin = locator.find_first_not_of(" _-:", at + 7);
  if (begin == std::string::npos) return "";
  size_t end = begin;
  while (end < locator.size() && std::isalnum(static_cast<unsigned char>(locator[end]))) ++end;
  return locator.substr(0, end);
}

// System memory: not firmware flash, and not persistent memory, which shares a channel with DRAM.
bool is_dram(const std::string& table) {
  const unsigned type = byte_at(table, 0x12), technology = byte_at(table, 0x28);
  constexpr unsigned kRom = 0x08, kEprom = 0x0c, kNonVolatile = 0x1f, kNvdimmN = 0x04;
  return (type < kRom || type > kEprom) && type != kNonVolatile && technology < kNvdimmN;
}

// SMBIOS memory devices (type 17): size at 0x0c (0: empty slot), configured speed at 0x20, maximum at 0x15.
void look_at_memory(const Files& files, Machine& out) {
  std::set<std::string> channels;
  bool all_reported = true;
  for (const auto& entry : files.list("/sys/firmware/dmi/entries")) {
    if (!entry.starts_with("17-")) continue;
    const auto table = files.read("/sys/firmware/dmi/entries/" + entry + "/raw");
    if (!table.ok()) out.dimms_denied = table.error().code == Code::denied && ::geteuid() != 0;
    if (!table.ok() || word_at(*table, 0x0c) == 0 || !is_dram(*table)) continue;
    const unsigned configured = word_at(*table, 0x20),
                   speed = configured ? configured : word_at(*table, 0x15);
    ++out.dimms;
    // All modules run at the speed of the slowest; an unreported speed makes the total unknown.
    out.dimm_mt_s = out.dimms == 1 ? speed : std::min(out.dimm_mt_s, speed);
    std::string channel = channel_in(text_at(*table, byte_at(*table, 0x11)));
    if (channel.empty()) channel = channel_in(text_at(*table, byte_at(*table, 0x10)));
    all_reported = all_reported && !channel.empty();
    channels.insert(channel);
  }
  out.channels = all_reported ? static_cast<unsigned>(channels.size()) : 0;
}

}  // namespace

Machine look_at_machine(const Files& files, const std::vector<int>& cpus) {
  Machine out;
  std::set<std::string> cores, all, counted;
  for (const int cpu : cpus) counted.insert("cpu" + std::to_string(cpu));
  for (const auto& name : files.list("/sys/devices/system/cpu")) {
    const std::string core = core_of(files, name);
    if (core.empty()) continue;
    all.insert(core);
    if (counted.empty() || counted.count(name)) cores.insert(core);
  }
  out.physical_cores = cores.size();
  out.machine_cores = all.size();
  // The guaranteed clock under full load if the driver reports it, else the maximum clock.
  for (const char* file : {"base_frequency", "cpuinfo_max_freq"}) {
    const std::string khz = files.read_line(std::string("/sys/devices/system/cpu/cpu0/cpufreq/") + file);
    if (out.cpu_mhz > 0 || khz.empty()) continue;
    out.cpu_mhz = std::strtod(khz.c_str(), nullptr) / 1000;
    out.base_clock = std::string(file) == "base_frequency";
  }
  out.units_512 = units_512(files);
  look_at_memory(files, out);
  return out;
}

// Two fused multiply-adds per cycle on vectors of 4 doubles, or of 8 with two 512-bit units (Intel and AMD
// optimisation manuals); plain SSE2 has one multiply and one add on vectors of 2.
int flops_per_cycle(const std::string& variant, const Machine& machine) {
  if (variant == "avx512f") return machine.units_512 == 2 ? 32 : 16;
  return variant == "avx2+fma" ? 16 : 4;
}

}  // namespace muster::kernels
