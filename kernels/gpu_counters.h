// What the GPUs' own counters show for the time between two readings of NVML (kernels/nvml.h).
// Thread: pure functions.
#pragma once

#include "kernels/kernels.h"
#include "kernels/nvml.h"

namespace muster::kernels {

// Adds to `out`, which measures other counters too:
//   nvlink_replay, nvlink_recovery, nvlink_crc_flit, nvlink_crc_data   how far they moved, over all links
//   nvlink_inactive   links that are down and should not be: they were up in `before`, or are up on most
//                     GPUs of that model (of three or more: cards with a bridge between some of them leave
//                     the others' links down), or are of a board of four or more that uses every link (SXM)
//   nvlink_active     links that are up, on the GPU with the fewest
//   gpu_hw_slowdown, gpu_hw_thermal, gpu_power_brake   GPUs that were slowed down by their hardware: seen at
//       either reading, or timed between
//   gpus_lost         GPUs that were there in `before`
// A metric that some GPU or link does not report is left out, unless the others already show errors;
// detail.absent says why, and has the bare name where these GPUs have no NVLink at all. detail.moved names
// the parts.
void add_gpu_counters(const NvmlReading& now, const NvmlCounts& before, Measurement& out);

}  // namespace muster::kernels
