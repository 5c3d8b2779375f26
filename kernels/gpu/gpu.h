// Acceptance kernels for GPUs: matrix products, silent data corruption, memory, copies, collectives.
// muster-accept-gpu (kernels/gpu/main.cc) runs one per process and prints its Measurement
// (kernels/common/kernels.h) as JSON, one part per GPU.
//
// Linking and calling these functions does not require a GPU: without driver, GPU or library the outcome is
// `unavailable` with the reason, never a pass. This header uses no CUDA types. Threads: each function blocks
// its caller and joins every thread that it started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/common/kernels.h"
#include "kernels/training/block.h"

namespace muster::kernels::gpu {

struct Selection {
  std::vector<int> devices = {};  // empty: all
  int expect = 0;                 // this many must be present; 0: at least one
};

// How the processes of several nodes rendezvous (nccl.h).
struct Meeting {
  int nodes = 1, node = 0;     // one process per node, the same number of GPUs in each
  std::string root = {};       // several nodes: "address:port" that node 0 listens on, numeric
  std::string algorithm = {};  // NCCL_ALGO; "Ring" to measure a link; empty: NCCL's choice
};

// --- gemm.cc
struct GemmOptions {
  Selection gpus = {};
  double seconds = 5;
  size_t n = 8192;              // matrix edge; for muster's own kernels a multiple of 256
  std::string format = "bf16";  // formats() of kernels/gpu/logic/gpu_logic.h
  std::string maker = "auto";   // own, cublaslt, or auto: cuBLASLt
  bool compare = false;         // also measures the other implementation and the cost of the register digest
};
// Metrics: tflops (median of the samples; TOP/s for int8), slowest_ratio, drift. With compare: own_tflops,
// cublaslt_tflops, own_over_cublaslt, digest_percent. All GPUs at once. Verified: every product of the run
// has the same bits as the first, and no NaN.
Measurement run_gemm(const GemmOptions& options);

// --- sdc.cc
struct GpuSdcOptions {
  Selection gpus = {};
  double seconds = 5;
  size_t n = 4096;
  std::string format = "bf16";
  std::string maker = "auto";
  uint64_t seed = 1;  // of the first product's inputs; each further product uses the next number
  size_t inputs = 2;
  std::optional<Flip> flip = {};  // part: number of sdc::Site
  bool flip_once = false;         // only in the first product, like a transient fault
};
// Metrics: products, multiprocessors (number that ran the canary). Blame: "GPU uuid", "multiprocessor 17 of
// GPU uuid".
Measurement run_gpu_sdc(const GpuSdcOptions& options);

// --- memory.cc
struct GpuMemoryOptions {
  Selection gpus = {};
  double seconds = 5;      // for the pattern test; at least one round of all patterns unless `rounds` is less
  int rounds = 0;          // number of patterns; 0: until the time is up
  uint64_t max_bytes = 0;  // memory to test with patterns; 0: all free memory
  std::optional<Flip> flip = {};  // index: 64-bit word
};
// Metrics: read_gbps, write_gbps, copy_gbps, triad_gbps (10^9 bytes), tested_gib, and from nvidia-smi:
// ecc_corrected, ecc_uncorrected (rise during the test), remap_pending, remap_failed.
Measurement run_gpu_memory(const GpuMemoryOptions& options);

// --- copies.cc
struct CopiesOptions {
  Selection gpus = {};
  uint64_t bytes = 512 << 20;
  int samples = 5;
  std::optional<Flip> flip = {};  // index: byte
};
// Metrics per GPU: h2d_gbps, d2h_gbps (best NUMA node), plain_h2d_gbps, plain_d2h_gbps (cudaMemcpy of
// pageable memory), slowest_peer_gbps if there are peers. Detail: per NUMA node, per peer.
Measurement run_copies(const CopiesOptions& options);

// --- collectives.cc
struct CollectiveOptions {
  Selection gpus = {};
  uint64_t bytes = 256 << 20;  // largest message of a rank
  int repeats = 10;            // at most
  double seconds = 60;         // in total; sizes skipped for lack of time are listed in detail.left_out
  Meeting meeting = {};
  std::optional<Flip> flip = {};
};
// Metrics: ranks, and for each collective NAME_busbw_gbps at the largest size (0 if no data crosses a link).
// With several nodes each process reports what its own ranks received.
Measurement run_collectives(const CollectiveOptions& options);

// --- training.cc
struct GpuTrainingOptions {
  Selection gpus = {};
  Meeting meeting = {};
  training::Shape shape = {4096, 32, 2048, 4};
  size_t sequences = 1;         // per GPU and step, for weak scaling
  size_t strong_sequences = 0;  // per step, over all GPUs; 0: no measurement of strong scaling
  double seconds = 5;           // for each partition's timed steps, at least three
  std::optional<Flip> flip = {};
};
// Metrics: ranks; tflops_per_gpu (a single GPU, median), mfu; for each partition that is possible with these
// GPUs (weak, strong, tensor, pipeline) NAME_seconds and NAME_tflops, per GPU. Blame: GPUs whose gradients
// differ from those of most others, or from their own in the first step.
Measurement run_gpu_training(const GpuTrainingOptions& options);

}  // namespace muster::kernels::gpu
