// Error counters, the kernel log and PCIe links. Contract: kernels/common/kernels.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/common/kernels.h"

namespace muster::kernels {

struct NvmlReading;  // kernels/counters/nvml.h

// --- counters.cc
struct CountersOptions {
  std::string save = {};   // save the counters to this file
  std::string since = {};  // or report the increase since this file was saved
  // Queries NVIDIA's driver (kernels/counters/nvml.h); empty: the driver is not queried.
  std::function<Result<NvmlReading>()> query_nvml = {};
  bool gpus = false;  // read only the GPU driver's counters; `unavailable` without a driver
};
// Metrics with `since`: memory_corrected, memory_uncorrected, pcie_corrected, pcie_uncorrected,
// network_errors, link_down, cpu_throttled; from lines in the kernel log: gpu_xids, machine_checks,
// drive_errors (detail.kernel_log; Xids that do not indicate broken hardware: detail.kernel_log_noted, by
// class); with a GPU driver, those of kernels/counters/gpu_counters.h. With RDMA ports also, as rates per
// hour since the saved counters: rdma_symbol_errors, rdma_receive_errors, rdma_link_recoveries,
// rdma_link_downs, rdma_overruns, rdma_rnr_errors, rdma_retransmissions. A counter that cannot be read has no
// metric; one that only root may read is listed with the reason in detail.not_looked_at: {METRIC: "needs
// root: ..."}.
Measurement run_counters(const Files& files, const CountersOptions& options);

// --- kernel_log.cc
struct KernelLog {
  struct Line {
    std::string metric = {}, part = {}, text = {};
  };
  struct Note {
    std::string group = {}, part = {}, text = {};  // "application", "event", "unknown", "fatal", "nonfatal"
  };
  bool readable = false;
  bool denied = false;           // if not readable: true if permission is missing, false if there is no log
  uint64_t next = 0;             // sequence number that the next new record will have
  std::vector<Line> lines = {};  // about broken hardware
  std::vector<Note> noted = {};  // Xids and SXids of any other class in hardware/xids.yaml
};
// Reads the kernel log from record `since` on; records that the kernel has overwritten are lost.
KernelLog read_kernel_log(const Files& files, uint64_t since);

// --- pcie.cc
// One part per link of a GPU, NIC, storage controller or switch, by PCI address. Metrics: width (lanes),
// speed (GT/s), and ratio: width times speed (GPUs: width only) relative to the maximum of both ends.
Measurement run_pcie(const Files& files);

}  // namespace muster::kernels
