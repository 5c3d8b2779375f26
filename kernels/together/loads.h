// Loads that run on several nodes at once, over any Group: all-reduce, the training load, and both on GPUs. A
// pair of nodes is measured by the same loads with two members.
//
// Every member must make the call. Rank 0 returns the measurement; the others report that they took part
// (detail.rank), or why the load could not run. Wrong data on any member makes rank 0's outcome `corrupt`;
// `faulty_parts` names the member. If a member is lost, the load ends on all members: `failed`, or
// `unavailable` if it never connected; `faulty_parts` names lost members ("rank 3 on node4"), detail.lost how
// they were lost.
// Threads: each function blocks its caller; the training load starts threads, which it joins.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/common/kernels.h"
#include "kernels/together/group.h"
#include "kernels/training/block.h"

namespace muster::together {

struct LoadOptions {
  double seconds = 1.0;          // time budget of the whole load
  size_t max_bytes = 256 << 10;  // all-reduce: largest message
  training::Shape shape = {};    // training
  size_t threads = 0;            // training: per member; 0: one per CPU that the process may use
  std::string root = {};  // training: folder to read instead of /sys (its subfolder RANK, if that exists)
  int flip_rank = -1;     // rank on which to flip one bit, to show that it is detected; -1: none
  int gpus = 0;           // GPU loads: number of GPUs per node
  std::string algorithm = {};  // GPU loads: NCCL_ALGO; empty: NCCL's choice
  // Timeout of one call in seconds, in addition to the time that other members may compute before it.
  double patience = 60;
};

// Metrics: ranks, busbw_mbps (best size; 1 MB = 10^6 bytes), latency_ms (of 8 bytes). detail.sizes.
kernels::Measurement run_allreduce(Group& group, const LoadOptions& options);
// Metrics: ranks, gflops_per_node, weak_efficiency, strong_efficiency, tensor_efficiency,
// pipeline_efficiency (those for which there are enough members); mfu and gflop_per_joule if they can be
// determined. detail.scaling.
kernels::Measurement run_training(Group& group, const LoadOptions& options);

// The settings of the local node for GPU loads, which muster-accept-gpu runs.
struct GpuHere {
  std::string program = "/usr/lib/muster/muster-accept-gpu";
  // A folder with NCCL, cuBLASLt and network plug-ins; empty: the system's library folders.
  std::string libs = {};
  // The "address:port" at which NCCL ranks meet this member, or why there is none; on a load's first member.
  std::function<Result<std::string>()> root = {};
};
// NCCL's collectives on all GPUs at once. Metrics: ranks (members), gpus, and NAME_busbw_gbps for each
// collective, as measured on the slowest node. detail.nodes, detail.rails.
kernels::Measurement run_nccl(Group& group, const LoadOptions& options, const GpuHere& here);
// Transformer blocks on the GPUs of 1, 2, 4 ... and all members. detail.scaling.
kernels::Measurement run_gpu_training(Group& group, const LoadOptions& options, const GpuHere& here);

// Runs the load of this name: allreduce, training, nccl, gpu-training. `refused` for any other name.
kernels::Measurement run_load(const std::string& load, Group& group, const LoadOptions& options,
                              const GpuHere& here);

// --- shared by the loads
// Returns a measurement that reports why a group could not continue or was not formed.
kernels::Measurement lost_measurement(const char* check, const std::vector<Lost>& lost, const Error& error);
// On rank 0, returns the load's measurement without its own metrics; on others, a note that they took part.
// `wrong`: number of wrong values on this member; `words`: error with {} for it. All members must call it.
Result<kernels::Measurement> envelope(Group& group, const char* check, uint64_t wrong, const char* words);
std::vector<std::string> names(const Group& group);
// Parses kernels::to_json()'s output from another process or node; `failed` with a reason if it is invalid.
kernels::Measurement measurement_from_json(const Json& json);

}  // namespace muster::together
