// Error counters that the kernel keeps: memory, PCIe, network, RDMA ports, throttling; and errors in its log.
// On healthy hardware none of them increases under load, except on RDMA ports, where the rate is judged
// (port_errors.h).
//
// How to run:  muster-accept counters --save FILE    before the load: saves the counters
//              muster-accept counters --since FILE   after the load: reports their increase
// Reference:   the kernel's own counters. EDAC for memory, AER for PCIe, statistics of each physical port,
//              thermal throttling of each processor package; its log for GPUs, machine checks, drives
//              and network adapters
//              (kernel_log.cc). A counter that this machine lacks has no metric and is named in
//              detail.absent. If the log cannot be read, its metrics are missing but not named there, since
//              every kernel has a log. Users other than root may not be allowed to read it: then these
//              metrics are named in detail.not_looked_at. GPUs and their links: NVIDIA's driver
//              (gpu_counters.h); a counter that it does not report has no metric at all.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "kernels/counters/counters.h"
#include "base/json_dump.h"
#include "host/port_counters.h"
#include "host/processors.h"
#include "kernels/counters/gpu_counters.h"
#include "kernels/counters/moved.h"
#include "kernels/counters/nvml.h"
#include "kernels/counters/port_errors.h"

namespace muster::kernels {
namespace {

void add(const Files& files, const std::string& path, const std::string& part,
         std::map<std::string, uint64_t>& into) {
  if (const auto value = count_in(files, path)) into[part] += *value;
}

// "TOTAL_ERR_COR 3" ends the file aer_dev_correctable.
std::optional<uint64_t> aer_total(const Files& files, const std::string& path) {
  const auto text = files.read(path);
  if (!text.ok()) return {};
  const size_t at = text->find("TOTAL_ERR");
  const size_t space = at == std::string::npos ? at : text->find(' ', at);
  if (space == std::string::npos) return {};
  return std::strtoull(text->c_str() + space, nullptr, 10);
}

Counts read_counts(const Files& files) {
  Counts out;
  for (const auto& mc : files.list("/sys/devices/system/edac/mc")) {
    if (!mc.starts_with("mc")) continue;
    const std::string folder = "/sys/devices/system/edac/mc/" + mc;
    add(files, folder + "/ce_count", "memory controller " + mc, out["memory_corrected"]);
    add(files, folder + "/ue_count", "memory controller " + mc, out["memory_uncorrected"]);
  }
  for (const auto& device : files.list("/sys/bus/pci/devices")) {
    const std::string folder = "/sys/bus/pci/devices/" + device;
    if (const auto n = aer_total(files, folder + "/aer_dev_correctable"))
      out["pcie_corrected"]["PCIe " + device] = *n;
    for (const char* kind : {"/aer_dev_fatal", "/aer_dev_nonfatal"})
      if (const auto n = aer_total(files, folder + kind)) out["pcie_uncorrected"]["PCIe " + device] += *n;
  }
  for (const auto& cpu : files.list("/sys/devices/system/cpu")) {
    const std::string folder = "/sys/devices/system/cpu/" + cpu;
    const auto count = count_in(files, folder + "/thermal_throttle/package_throttle_count");
    if (!count) continue;
    // All processors of a package report the same number.
    const std::string id = package_of(files, cpu);
    uint64_t& package = out["cpu_throttled"]["processor package " + (id.empty() ? "0" : id)];
    package = std::max(package, *count);
  }
  return out;
}

// Metrics from counters, then those from the log.
constexpr const char* kMetrics[] = {"memory_corrected", "memory_uncorrected", "pcie_corrected",
                                    "pcie_uncorrected", "cpu_throttled"};
constexpr const char* kLogMetrics[] = {"gpu_xids", "machine_checks", "drive_errors", "nic_errors"};
// Keys in the saved file: the next record of the kernel log, and the boot that it belongs to.
constexpr const char* kLogNext = "kernel_log_next";
// Key in the saved file: the time of saving, on the clock that starts at boot.
constexpr const char* kSavedAt = "saved_at_seconds";
constexpr size_t kLinesShown = 20;

// Identifies the boot: after a reboot the log starts empty, and all of it is new.
std::string boot_of(const Files& files) { return files.read_line("/proc/sys/kernel/random/boot_id", "?"); }

uint64_t uptime(const Files& files) {
  return std::strtoull(files.read_line("/proc/uptime", "0").c_str(), nullptr, 10);
}

// Since the counters were saved; after a restart, since then.
double hours_since(const Files& files, const Counts& before) {
  const uint64_t saved = count_of(before, kSavedAt, boot_of(files)), seconds = uptime(files);
  return static_cast<double>(seconds > saved ? seconds - saved : 1) / 3600;
}

void add_log(const Files& files, const Counts& before, Measurement& out, Moved& moved) {
  const KernelLog log = read_kernel_log(files, count_of(before, kLogNext, boot_of(files)));
  if (!log.readable) moved.absent.push_back("kernel log");
  if (log.denied)
    for (const char* metric : kLogMetrics)
      out.detail["not_looked_at"][metric] = "needs root: other users may not read /dev/kmsg";
  if (!log.readable) return;
  std::map<std::string, uint64_t> sums;
  Json shown = Json::array();
  for (const auto& line : log.lines) {
    ++sums[line.metric];
    Json& count = moved.parts[line.part][line.metric];
    count = count.is_number() ? count.get<uint64_t>() + 1 : 1;
    if (shown.size() < kLinesShown) shown.push_back(line.text);
  }
  for (const char* metric : kLogMetrics) out.metrics[metric] = {static_cast<double>(sums[metric]), "lines"};
  if (!shown.empty()) out.detail["kernel_log"] = shown;
  Json noted = Json::object();
  for (const auto& note : log.noted)
    if (Json& texts = noted[note.group]; texts.size() < kLinesShown) texts.push_back(note.text);
  if (!noted.empty()) out.detail["kernel_log_noted"] = noted;
}

// The driver's counters are saved with the others, by name.
void save_gpus(const CountersOptions& options, Counts& now) {
  if (!options.query_nvml) return;
  const auto reading = options.query_nvml();
  if (!reading.ok()) return;
  for (const auto& [metric, parts] : reading->counts) now[metric] = parts;
}

// "" if there is a result for the GPUs; else why not.
std::string add_gpus(const CountersOptions& options, const Counts& before, Measurement& out) {
  if (!options.query_nvml) return "NVIDIA's driver was not queried";
  const auto reading = options.query_nvml();
  if (!reading.ok()) {
    if (options.gpus)  // the controller has a remedy for either
      out.detail["missing"] = reading.error().code == Code::not_found ? kNvmlProgram : "driver";
    return reading.error().message;
  }
  if (!before.count("gpu_present")) return "NVIDIA's driver reported nothing before the load";
  add_gpu_counters(*reading, before, out);
  return "";
}

std::string named_parts(const Json& moved) {
  std::string out;
  for (const auto& [name, by] : moved.items()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

Measurement only_gpus(const CountersOptions& options, const Counts& before) {
  Measurement out;
  out.check = "counters";
  out.error = add_gpus(options, before, out);
  if (!out.error.empty())
    out.outcome = Outcome::unavailable;
  else
    out.detail["part"] = named_parts(out.detail["moved"]);
  return out;
}

}  // namespace

Measurement run_counters(const Files& files, const CountersOptions& options) {
  Measurement out;
  out.check = "counters";
  Counts now = read_counts(files);
  Counts before;
  if (options.since.empty()) {
    read_port_errors(files, options.query_statistics, now);
    save_gpus(options, now);
    now[kLogNext][boot_of(files)] = read_kernel_log(files, 0).next;
    now[kSavedAt][boot_of(files)] = uptime(files);
    if (const auto saved = files.write(options.save, dump_json(Json(now))); !saved.ok()) {
      out.outcome = Outcome::unavailable;
      out.error = saved.error().message;
    }
    return out;
  }
  const auto text = files.read(options.since);
  const auto json = text.ok() ? parse_json(*text) : Result<Json>(text.error());
  bool readable = json.ok();
  if (readable) try {
      json->get_to(before);
    } catch (const Json::exception&) {
      readable = false;
    }
  if (!readable) {
    out.outcome = Outcome::unavailable;
    out.error = "the counters from before the load were not saved in " + options.since;
    return out;
  }
  if (options.gpus) return only_gpus(options, before);
  Moved moved;
  for (const char* metric : kMetrics) {
    moved.add(metric, now, before);
    if (moved.sums.count(metric)) out.metrics[metric] = {static_cast<double>(moved.sums[metric]), ""};
  }
  add_port_errors(files, options.query_statistics, {before, hours_since(files, before)}, out, moved);
  add_log(files, before, out, moved);
  if (options.query_smart) add_smart(files, options.query_smart, out, moved);
  out.detail["absent"] = moved.absent;
  out.detail["moved"] = moved.parts;
  if (const std::string why = add_gpus(options, before, out); options.query_nvml && !why.empty())
    out.detail["absent"].push_back("GPU counters: " + why);
  out.detail["part"] = named_parts(out.detail["moved"]);
  return out;
}

}  // namespace muster::kernels
