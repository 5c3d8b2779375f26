// Measurements of processors and memory, and what they should reach. Contract: kernels/common/kernels.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/common/kernels.h"

namespace muster::kernels {

// --- dgemm.cc
struct DgemmOptions {
  double seconds = 1.0;
  size_t n = 0;              // matrix edge, up to 1024; 0 = sized by a probe
  size_t threads = 0;        // 0 = one per processor this process may use
  std::string variant = {};  // one of dgemm_variants(); empty = the best
  std::optional<Flip> flip = {};
  Files files = Files();  // root of /proc and /sys for processor data
};
std::vector<std::string> dgemm_variants();  // those that this processor supports, best first
// Metrics: gflops (sum over cores), slowest_core_ratio (slowest core / median core).
Measurement run_dgemm(const DgemmOptions& options);

// --- stream.cc
struct StreamOptions {
  double seconds = 1.0;
  size_t max_bytes = 0;  // for the three arrays together; 0 = a quarter of the available memory
  size_t threads = 0;
  std::optional<Flip> flip = {};
  Files files = Files();  // root of /proc and /sys for memory data
};
// Metrics: copy_mbps, scale_mbps, add_mbps, triad_mbps (best round; 1 MB = 10^6 bytes).
Measurement run_stream(const StreamOptions& options);

// --- expected_machine.cc
struct Machine {                                 // 0: not known
  size_t physical_cores = 0, machine_cores = 0;  // cores of the selected CPUs; all online cores
  double cpu_mhz = 0;
  bool base_clock = false;  // true: all cores sustain cpu_mhz under load; false: it is one core's maximum
  int units_512 = 0;        // 512-bit multiply-add units per core; 0 for unknown models
  unsigned dimms = 0, dimm_mt_s = 0, channels = 0;
  bool dimms_denied = false;  // the SMBIOS table is readable by root only
};
// Reads the machine's properties; with `cpus`, physical_cores counts only the cores of these CPUs.
Machine look_at_machine(const Files& files, const std::vector<int>& cpus = {});
// Returns the double precision operations per core and cycle for a variant of dgemm or the training load
// (single precision: twice as many). AVX-512 on an unknown model: the rate that all such processors reach.
int flops_per_cycle(const std::string& variant, const Machine& machine);

}  // namespace muster::kernels
