// Evaluates what the GPUs' own counters recorded between two readings of NVML (kernels/counters/nvml.h).
// Thread safety: stateless functions.
#pragma once

#include "kernels/common/kernels.h"
#include "kernels/counters/nvml.h"

namespace muster::kernels {

// nvmlDeviceGpuRecoveryAction_t, also in Xid 154: up to here the GPU's (reset, node reboot, drain P2P, drain
// and reset). 5 recovers the IMEX domain, a service over several nodes; the meaning of higher numbers changed
// between drivers.
inline constexpr uint64_t kLastOfGpu = 4;

// Adds these metrics to `out`, which may contain metrics of other counters as well:
//   nvlink_replay, nvlink_recovery, nvlink_crc_flit, nvlink_crc_data   rise since `before`, over all links
//   nvlink_recovery_events, nvlink_recovery_failed, nvlink_symbol_errors, nvlink_effective_errors   the same,
//       of NVLink 5
//   nvlink_inactive   links that are down but should be up: they were up in `before`, or are up on most GPUs
//                     of that model if there are at least three (cards that no bridge connects have their
//                     links down), or the GPU is on an SXM board of four or more, which uses every link
//   nvlink_active     links that are up, on the GPU with the fewest
//   gpu_hw_slowdown, gpu_hw_thermal, gpu_power_brake, gpu_sw_thermal   GPUs that were slowed down by
//       their hardware, or by the driver because of the temperature: at the time of either reading, or
//       between them according to the duration counters
//   gpu_ecc_off       GPUs whose ECC is off, of models with HBM or of which another GPU here has it on
//   gpu_recovery      GPUs that the driver reports to need a reset, a drain or a restart of the node
//   gpu_repair        GPUs of which a memory channel or a TPC waits for a reset to be repaired
//   gpu_sram          GPUs with more uncorrectable errors of SRAM than NVIDIA tolerates
//   gpus_lost         GPUs that were present in `before` and no longer are
// A metric that some GPU or link does not report is left out, unless the others already show errors;
// detail.absent gives the reason, and the metric's bare name where these GPUs have no such thing.
// detail.moved names the parts whose counters increased.
void add_gpu_counters(const NvmlReading& now, const NvmlCounts& before, Measurement& out);

}  // namespace muster::kernels
