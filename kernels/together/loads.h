// Loads of several nodes together, over any Group: all-reduce, the training load, and both on GPUs. A pair of
// nodes is measured by the same loads with two members.
//
// Every member makes the call. The measurement counts on rank 0; the others report that they took part
// (detail.rank), or why the load could not be run. Data that was wrong on any member is `corrupt` on rank 0,
// and `blame` says where. When a member is lost the load ends on all members: `failed`, or `unavailable`
// where one never came; `blame` names those that are lost ("rank 3 on node4") and detail.lost says how.
// Thread: blocks its caller; the training load computes on threads of its own, which it joins.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/together/group.h"
#include "kernels/training/block.h"

namespace muster::together {

struct LoadOptions {
  double seconds = 1.0;          // budget of the whole load
  size_t max_bytes = 256 << 10;  // all-reduce: largest message
  training::Shape shape = {};    // training
  size_t threads = 0;            // training: per member; 0: as many as the process may use
  std::string root = {};  // training: a folder to use as each node's /sys (RANK below it where that is there)
  int flip_rank = -1;     // flips one bit there, to show that it is detected
  int gpus = 0;           // loads of GPUs: of every node
  std::string algorithm = {};  // loads of GPUs: NCCL_ALGO; empty: NCCL's choice
  // Seconds for one call, in addition to what the others may compute in the meantime.
  double patience = 60;
};

// Metrics: ranks, busbw_mbps (best size; 1 MB = 10^6 bytes), latency_ms (of 8 bytes). detail.sizes.
kernels::Measurement run_allreduce(Group& group, const LoadOptions& options);
// Metrics: ranks, gflops_per_node, weak_efficiency, strong_efficiency, tensor_efficiency,
// pipeline_efficiency (as far as there are enough members), mfu, gflop_per_joule where they can be
// determined. detail.scaling.
kernels::Measurement run_training(Group& group, const LoadOptions& options);

// What each node has of its own for loads of GPUs, which muster-accept-gpu carries out.
struct GpuHere {
  std::string program = "/usr/lib/muster/muster-accept-gpu";
  // A folder with NCCL, cuBLASLt and network plug-ins; empty: the system's usual folders.
  std::string libs = {};
  // "address:port" at which this member's GPUs can be met; an error says why there is none. Called on the
  // first member of those that work together.
  std::function<Result<std::string>()> root = {};
};
// NCCL's collectives over all GPUs at once. Metrics: ranks (members), gpus, of each collective
// NAME_busbw_gbps, of the slowest node. detail.nodes, detail.rails.
kernels::Measurement run_nccl(Group& group, const LoadOptions& options, const GpuHere& here);
// Transformer blocks on the GPUs of 1, 2, 4 ... and all members. detail.scaling.
kernels::Measurement run_gpu_training(Group& group, const LoadOptions& options, const GpuHere& here);

// The one of this name: allreduce, training, nccl, gpu-training. `refused` for any other name.
kernels::Measurement run_load(const std::string& load, Group& group, const LoadOptions& options,
                              const GpuHere& here);

// --- shared by the loads
// Why a group could not continue, or was not formed.
kernels::Measurement lost_measurement(const char* check, const std::vector<Lost>& lost, const Error& error);
// The measurement without its own metrics, on rank 0; on others that they took part. `wrong`: how many wrong
// numbers this member had; `words` with {} for that. All members make the call.
Result<kernels::Measurement> envelope(Group& group, const char* check, uint64_t wrong, const char* words);
std::vector<std::string> names(const Group& group);
// As kernels::to_json() wrote it, from another process or node; `failed` with a reason for anything else.
kernels::Measurement measurement_from_json(const Json& json);

}  // namespace muster::together
