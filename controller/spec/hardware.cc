#include "controller/spec/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/disk_identity.h"

namespace muster {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMemoryShare = 0.015;
constexpr double kMemoryFixed = 128.0 * 1024 * 1024;

}  // namespace

bool is_named(const GpuFacts& gpu) { return !gpu.model.empty() && !gpu.model.starts_with("10de:"); }

double least_memory(int64_t declared) {
  const double wanted = static_cast<double>(declared);
  return wanted - wanted * kMemoryShare - kMemoryFixed;
}

int counted_gpus(const HardwareSpec& declared, const HardwareFacts& found) {
  const bool any = declared.gpus.value_or(0) > 0 || !declared.gpu_model.empty();
  return static_cast<int>(any ? found.gpus.size() : compute_gpus(found));
}

std::vector<std::string> unlike_hardware(const HardwareSpec& declared, const HardwareFacts& found,
                                         bool simulated) {
  std::vector<std::string> out;
  if (declared.cpus && found.cpus.count > 0 && found.cpus.count != *declared.cpus)
    out.push_back(fmt::format("{} processors declared, {} found", *declared.cpus, found.cpus.count));
  if (!declared.cpu_model.empty() && !found.cpus.model.empty() &&
      !glob_match(declared.cpu_model, found.cpus.model))
    out.push_back(
        fmt::format("processors are {}, but the spec declares {}", found.cpus.model, declared.cpu_model));
  if (declared.memory_bytes_min > 0 && found.memory_bytes > 0 &&
      static_cast<double>(found.memory_bytes) < least_memory(declared.memory_bytes_min))
    out.push_back(fmt::format("{:.2f} GiB of memory declared, {:.2f} GiB found",
                              static_cast<double>(declared.memory_bytes_min) / kGiB,
                              static_cast<double>(found.memory_bytes) / kGiB));
  int ports = 0;
  for (const auto& [kind, count] : declared.nics) ports += count;
  if (const auto seen = static_cast<int>(found.nics.size()); seen > 0 && seen < ports)
    out.push_back(fmt::format("{} network ports declared, {} found", ports, seen));
  if (simulated) return out;
  const int gpus = counted_gpus(declared, found);
  if (declared.gpus && gpus != *declared.gpus)
    out.push_back(fmt::format("{} GPUs declared, {} found", *declared.gpus, gpus));
  if (!declared.gpu_model.empty())
    for (const GpuFacts& gpu : found.gpus)
      if (is_named(gpu) && !glob_match(declared.gpu_model, gpu.model))
        out.push_back(
            fmt::format("GPU {} is {}, but the spec declares {}", gpu.pci, gpu.model, declared.gpu_model));
  return out;
}

bool disk_matches(const DiskMatch& match, const DiskFacts& disk) {
  if (!is_local_transport(disk.transport)) return false;
  // The spec's reader rejects empty text and bare wildcards; if one arrives nevertheless, it selects no disk.
  const auto fits = [](const std::optional<std::string>& wanted, const std::string& found, bool glob) {
    if (!wanted) return true;
    if (wanted->find_first_not_of("*? \t") == std::string::npos) return false;
    return glob ? glob_match(*wanted, found) : *wanted == found;
  };
  if (!match.serial && !match.wwid && !match.model && !match.transport && !match.size_bytes &&
      match.serials.empty())
    return false;
  if (!fits(match.transport, disk.transport, false) || !fits(match.serial, disk.serial, true) ||
      !fits(match.wwid, disk.wwid, false) || !fits(match.model, disk.model, true))
    return false;
  const auto listed = [&](const std::string& serial) { return fits(serial, disk.serial, false); };
  if (!match.serials.empty() && std::none_of(match.serials.begin(), match.serials.end(), listed))
    return false;
  if (!match.size_bytes) return true;
  const double wanted = static_cast<double>(*match.size_bytes), found = static_cast<double>(disk.size_bytes);
  return wanted > 0 && found >= wanted * (1 - kSizeTolerance) && found <= wanted * (1 + kSizeTolerance);
}

}  // namespace muster
