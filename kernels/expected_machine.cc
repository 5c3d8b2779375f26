// What the expected values of processors and memory are derived from.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>

#include "kernels/kernels.h"

namespace muster::kernels {
namespace {

unsigned word_at(const std::string& table, size_t at) {
  if (table.size() < at + 2) return 0;
  return static_cast<unsigned char>(table[at]) |
         static_cast<unsigned>(static_cast<unsigned char>(table[at + 1])) << 8;
}

// A text of an SMBIOS structure: those behind its formatted part, counted from 1.
std::string text_at(const std::string& table, size_t field) {
  if (table.size() <= field || table.empty()) return "";
  size_t begin = static_cast<unsigned char>(table[1]);
  for (unsigned number = static_cast<unsigned char>(table[field]); number > 0 && begin < table.size();
       --number) {
    const size_t end = table.find('\0', begin);
    if (number == 1) return table.substr(begin, end == std::string::npos ? end : end - begin);
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return "";
}

// The channel that a module's locators name, with what stands before it (processor, node): "P0 CHANNEL A" of
// AMD's firmware, "P0_Node1_Channel2_Dimm0" of AMI's. Other makers count slots, which says nothing of
// channels. Where two processors' channels have one name, too few are counted, and the bound is only lower.
std::optional<std::string> channel_of(const std::string& table) {
  for (const size_t field : {size_t{0x11}, size_t{0x10}}) {  // bank locator, device locator
    std::string text = text_at(table, field);
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const size_t word = text.find("CHANNEL");
    if (word == std::string::npos) continue;
    size_t end = word + 7;
    while (end < text.size() && !std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
    if (end == text.size()) continue;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
    return text.substr(0, end);
  }
  return std::nullopt;
}

// Modules of which a processor's stores reach DRAM: no logical non-volatile device (memory type 1Fh) and no
// persistent one (technology 5 to 7; SMBIOS 3.2, 7.18.2 and 7.18.6).
bool is_memory_module(const std::string& table) {
  if (word_at(table, 0x0c) == 0) return false;  // an empty slot
  if (table.size() > 0x12 && table[0x12] == 0x1f) return false;
  const bool told = table.size() > 0x28 && static_cast<unsigned char>(table[1]) > 0x28;
  return !told || table[0x28] < 5 || table[0x28] > 7;
}

void look_at_processor(const Files& files, Machine& out) {
  const std::string info = files.read("/proc/cpuinfo").value_or("");
  const auto value = [&](const std::string& key) {
    for (size_t at = 0; at < info.size(); at = info.find('\n', at) + 1) {
      const size_t end = std::min(info.find('\n', at), info.size()), colon = info.find(':', at);
      if (info.compare(at, key.size(), key) == 0 && colon < end &&
          info.find_first_not_of(" \t", at + key.size()) == colon)
        return colon + 2 <= end ? info.substr(colon + 2, end - colon - 2) : std::string();
      if (end == info.size()) break;
    }
    return std::string();
  };
  out.cpu_vendor = value("vendor_id");
  out.cpu_name = value("model name");
  out.cpu_family = std::atoi(value("cpu family").c_str());
  out.cpu_model = std::atoi(value("model").c_str());
}

void look_at_modules(const Files& files, Machine& out) {
  std::set<std::string> channels;
  bool all_told = true;
  for (const auto& entry : files.list("/sys/firmware/dmi/entries")) {
    if (entry.rfind("17-", 0) != 0) continue;
    const auto table = files.read("/sys/firmware/dmi/entries/" + entry + "/raw");
    if (!table.ok() || !is_memory_module(*table)) continue;
    // Configured speed, else the highest.
    const unsigned configured = word_at(*table, 0x20),
                   speed = configured ? configured : word_at(*table, 0x15);
    ++out.dimms;
    // The slowest module sets the pace; one that does not tell makes the sum unknown.
    out.dimm_mt_s = out.dimms == 1 ? speed : std::min(out.dimm_mt_s, speed);
    const auto channel = channel_of(*table);
    all_told = all_told && channel;
    if (channel) channels.insert(*channel);
  }
  if (all_told) out.channels = static_cast<unsigned>(channels.size());
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
  look_at_processor(files, out);
  look_at_modules(files, out);
  return out;
}

namespace {

// Vectors of 512 bits: two units of them per core in these, one (or two of half the width) in all others. Intel:
// the first two generations by name (ark.intel.com, "# of AVX-512 FMA Units"), all of the third and later;
// AMD: two halves in Zen 4, whole ones in Zen 5 (optimisation manuals of family 19h and 1Ah).
bool has_two_wide_units(const Machine& machine) {
  if (machine.cpu_vendor == "AuthenticAMD") return machine.cpu_family >= 0x1a;
  if (machine.cpu_vendor != "GenuineIntel" || machine.cpu_family != 6) return false;
  const int model = machine.cpu_model;
  if (model == 106 || model == 143 || model == 173 || model == 207) return true;
  if (model != 85) return false;
  for (const char* name : {"Platinum", "Gold 6", "Gold 5122", "Gold 5222", "Xeon(R) W-"})
    if (machine.cpu_name.find(name) != std::string::npos) return true;
  return false;
}

}  // namespace

// Two fused multiply-adds a cycle on vectors of four numbers (Intel and AMD optimisation manuals), of eight
// where the processor has two units of that width; plain SSE2 has one multiply and one add of two. With 512
// bits Intel's first two generations fall to about half of their base clock: 1.0 of 2.1 GHz (Silver 4110), 1.7
// of 2.5 (Platinum 8180; Xeon Scalable specification update, "Intel AVX-512 base").
Pace sustained_pace(const std::string& variant, const Machine& machine) {
  if (variant == "avx2+fma") return {16, 1};
  if (variant != "avx512f") return {4, 1};
  const bool slows_down =
      machine.cpu_vendor != "AuthenticAMD" && (machine.cpu_family != 6 || machine.cpu_model <= 85);
  return {has_two_wide_units(machine) ? 32 : 16, slows_down ? 0.5 : 1};
}

}  // namespace muster::kernels
