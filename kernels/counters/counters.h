// Error counters, the kernel log and PCIe links. Contract: kernels/common/kernels.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/common/kernels.h"
#include "kernels/counters/lossless.h"
#include "kernels/counters/smart.h"

namespace muster::kernels {

struct NvmlReading;  // kernels/counters/nvml.h

// --- counters.cc
struct CountersOptions {
  std::string save = {};   // save the counters to this file
  std::string since = {};  // or report the increase since this file was saved
  // Queries NVIDIA's driver (kernels/counters/nvml.h); empty: the driver is not queried.
  std::function<Result<NvmlReading>()> query_nvml = {};
  bool gpus = false;  // read only the GPU driver's counters; `unavailable` without a driver
  // Reads the SMART log of an NVMe drive (kernels/counters/smart.h); empty: drives are not queried.
  QuerySmart query_smart = {};
  // Reads the statistics of a port's driver (kernels/counters/lossless.h); empty: they are not read.
  QueryStatistics query_statistics = {};
};
// Metrics with `since`: memory_corrected, memory_uncorrected, pcie_corrected, pcie_uncorrected,
// cpu_throttled; those of network and RDMA ports (kernels/counters/port_errors.h); from lines in the kernel
// log: gpu_xids, machine_checks, drive_errors, nic_errors (detail.kernel_log; Xids that do not indicate
// broken hardware: detail.kernel_log_noted, by class); of NVMe drives, those of kernels/counters/smart.h;
// with a GPU driver, those of kernels/counters/gpu_counters.h. A counter that cannot be read has no metric;
// one that only root may read is listed with the reason in detail.not_looked_at: {METRIC: "needs root: ..."}.
Measurement run_counters(const Files& files, const CountersOptions& options);

// --- kernel_log.cc
struct KernelLog {
  struct Line {
    std::string metric = {}, part = {}, text = {};
  };
  struct Note {
    // "application", "event", "fabric domain", "unknown", "fatal", "nonfatal"
    std::string group = {}, part = {}, text = {};
  };
  bool readable = false;
  bool denied = false;           // if not readable: true if permission is missing, false if there is no log
  uint64_t next = 0;             // sequence number that the next new record will have
  std::vector<Line> lines = {};  // about broken hardware
  std::vector<Note> noted = {};  // Xids and SXids of other classes (hardware/xids.yaml), events of adapters
};
// Reads the kernel log from record `since` on; records that the kernel has overwritten are lost.
KernelLog read_kernel_log(const Files& files, uint64_t since);

// --- pcie.cc
// One part per link of a GPU, NIC, storage controller or switch, by PCI address. Metrics: width (lanes),
// speed (GT/s), and ratio: width times speed (GPUs: width only) relative to the maximum of both ends.
Measurement run_pcie(const Files& files);

}  // namespace muster::kernels
