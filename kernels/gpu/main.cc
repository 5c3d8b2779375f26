// muster-accept-gpu: runs one acceptance kernel on the node's GPUs and prints its measurement as JSON. Exit
// status: 0 measured, 1 wrong data or a failing part, 2 bad usage, 3 refused or could not run.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/common/program.h"
#include "kernels/gpu/gpu.h"
#include "kernels/gpu/logic/gpu_logic.h"

namespace muster::kernels::gpu {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// "@(#)muster-accept-gpu cuda 12.4\n": which CUDA this program was built with, in the form that what(1)
// finds. `muster accept --hosts` reads it from the file, because it carries the program to hosts whose driver
// fits (controller/hosts/gpu_programs.h), and cannot always run it: it may be another distribution's.
constexpr std::array<char, 40> cuda_mark() {
  std::array<char, 40> out{};
  constexpr std::string_view words = "@(#)muster-accept-gpu cuda ";
  char* at = std::copy(words.begin(), words.end(), out.begin());
  const auto digits = [&at](int number) {
    if (number >= 10) *at++ = static_cast<char>('0' + number / 10 % 10);
    *at++ = static_cast<char>('0' + number % 10);
  };
  digits(CUDART_VERSION / 1000);
  *at++ = '.';
  digits(CUDART_VERSION % 1000 / 10);
  *at = '\n';
  return out;
}
[[gnu::used]] constexpr std::array<char, 40> kCudaMark = cuda_mark();

struct Arguments {
  Selection gpus;
  GemmOptions gemm;
  GpuSdcOptions sdc;
  GpuMemoryOptions memory;
  CopiesOptions copies;
  CollectiveOptions nccl;
  GpuTrainingOptions training;
  uint64_t memory_mib = 0, copies_mib = 512, nccl_mib = 256;
  std::string flip;
};

std::string format_names() {
  std::string out;
  for (const auto& info : formats()) out += (out.empty() ? "" : ", ") + std::string(info.name);
  return out;
}

Verb& add(Verb& app, Arguments& a, const char* name, const char* help) {
  auto& sub = app.add_verb(name, help);
  sub.add_option("--gpus", &a.gpus.devices, "GPU numbers, separated by commas (default: all)")
      .separated_by(',');
  sub.add_option("--expect-gpus", &a.gpus.expect, "fail unless this many GPUs answer; 0: at least one");
  return sub;
}
void add_product(Verb& sub, std::string& format, std::string& maker, size_t& n, double& seconds) {
  sub.add_option("--format", &format, "number format: " + format_names());
  sub.add_option("--kernel", &maker,
                 "kernel to use: own, cublaslt or auto (for sdc, auto is own where proven, else cublaslt)");
  sub.add_option("--n", &n, "matrix edge: a multiple of 16, or of 256 for muster's own kernels");
  sub.add_option("--seconds", &seconds, "time budget");
}

void add_meeting(Verb& sub, Meeting& meeting) {
  sub.add_option("--nodes", &meeting.nodes,
                 "number of nodes, with one process each; 1: only this node's GPUs");
  sub.add_option("--node", &meeting.node, "number of this node, from 0");
  sub.add_option("--root", &meeting.root, "ADDRESS:PORT that node 0 listens on");
  sub.add_option("--algorithm", &meeting.algorithm, "value of NCCL_ALGO; use Ring to measure a link");
}

void declare(Verb& app, Arguments& a) {
  auto& gemm = add(app, a, "gemm", "measure the speed of matrix products, as a time series per GPU");
  add_product(gemm, a.gemm.format, a.gemm.maker, a.gemm.n, a.gemm.seconds);
  gemm.add_flag("--compare", &a.gemm.compare,
                "also measure the other kernel, and what computing the digest in registers costs");
  auto& sdc =
      add(app, a, "sdc", "detect silent data corruption with products that must be right to the last bit");
  add_product(sdc, a.sdc.format, a.sdc.maker, a.sdc.n, a.sdc.seconds);
  sdc.add_option("--seed", &a.sdc.seed, "seed of the first product's inputs");
  sdc.add_option("--inputs", &a.sdc.inputs, "number of different products");
  sdc.add_flag("--flip-once", &a.sdc.flip_once,
               "flip the bit only in the first product, like a transient fault");
  add_flip(sdc, a.flip);
  auto& memory = add(app, a, "memory",
                     "measure memory bandwidth, test all free memory with patterns, read error counters");
  memory.add_option("--seconds", &a.memory.seconds, "time budget for the patterns");
  memory.add_option("--rounds", &a.memory.rounds,
                    "number of patterns; 0: all of them, repeated until the time is up");
  memory.add_option("--max-mib", &a.memory_mib, "memory to test with patterns, in MiB; 0: all free memory");
  add_flip(memory, a.flip);
  auto& copies = add(app, a, "copies", "measure copies between host and GPU per NUMA node, and between GPUs");
  copies.add_option("--mib", &a.copies_mib, "size of a copy, in MiB");
  copies.add_option("--samples", &a.copies.samples, "copies per path");
  add_flip(copies, a.flip);
  auto& nccl = add(app, a, "nccl", "measure NCCL's collectives, and check every element");
  nccl.add_option("--mib", &a.nccl_mib, "size of the largest message, in MiB");
  nccl.add_option("--repeats", &a.nccl.repeats, "maximum number of timed calls");
  nccl.add_option("--seconds", &a.nccl.seconds,
                  "total time budget; sizes for which no time is left are skipped");
  add_meeting(nccl, a.nccl.meeting);
  add_flip(nccl, a.flip);
  auto& training = add(app, a, "training",
                       "run a training load on all GPUs, and compare every gradient with a single GPU's");
  add_meeting(training, a.training.meeting);
  training.add_option("--model", &a.training.shape.model, "width of the model");
  training.add_option("--heads", &a.training.shape.heads, "number of attention heads");
  training.add_option("--sequence", &a.training.shape.sequence, "tokens per sequence");
  training.add_option("--layers", &a.training.shape.layers, "number of transformer blocks");
  training.add_option("--sequences", &a.training.sequences, "sequences per GPU and step");
  training.add_option("--strong-sequences", &a.training.strong_sequences,
                      "sequences per step of all GPUs together; 0: not measured");
  training.add_option("--seconds", &a.training.seconds, "time budget for each partition");
  add_flip(training, a.flip);
}

Measurement run(const std::string& kernel, Arguments& a, const std::optional<Flip>& flip) {
  a.gemm.gpus = a.sdc.gpus = a.memory.gpus = a.copies.gpus = a.nccl.gpus = a.training.gpus = a.gpus;
  a.sdc.flip = a.memory.flip = a.copies.flip = a.nccl.flip = a.training.flip = flip;
  a.memory.max_bytes = a.memory_mib * kMiB;
  a.copies.bytes = a.copies_mib * kMiB;
  a.nccl.bytes = a.nccl_mib * kMiB;
  if (kernel == "gemm") return run_gemm(a.gemm);
  if (kernel == "sdc") return run_gpu_sdc(a.sdc);
  if (kernel == "memory") return run_gpu_memory(a.memory);
  if (kernel == "copies") return run_copies(a.copies);
  return kernel == "nccl" ? run_collectives(a.nccl) : run_gpu_training(a.training);
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  Verb app("muster-accept-gpu: acceptance kernels for one node's GPUs");
  declare(app, arguments);
  return run_program(app, argc, argv, arguments.flip,
                     [&](const std::string& kernel, const std::optional<Flip>& flip) {
                       return run(kernel, arguments, flip);
                     });
}

}  // namespace
}  // namespace muster::kernels::gpu

int main(int argc, char** argv) { return muster::kernels::gpu::main_with(argc, argv); }
