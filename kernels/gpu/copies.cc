// Speed of copies between host and GPU for every NUMA node, of a plain cudaMemcpy, and between all pairs of
// GPUs.
//
// How to run:  muster-accept-gpu copies [--mib 512] [--samples 5] [--inject-flip 0:BYTE:BIT]
// Reference:   the data, compared byte by byte after a round trip; between GPUs pattern_at().
// Structure:   one GPU after the other, so that no two tests share a link. Pinned memory is
//              first touched by a thread that runs on the NUMA node's processors.
// Expected:    the table of controller/report/expected.cc. One GPU at a quarter of the others: its link
//              trained at a lower rate.
// Ran on:      one H200, one H100 (bench/results); copies between GPUs only on the fakes of tests/gpu.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <thread>

#include "kernels/gpu/device.h"
#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {
namespace {

struct MemoryNode {
  int number = 0;
  std::vector<int> cpus = {};
};
std::vector<MemoryNode> memory_nodes() {
  const Files files;
  std::vector<MemoryNode> out;
  for (const auto& name : files.list("/sys/devices/system/node")) {
    if (!name.starts_with("node") || name.find_first_not_of("0123456789", 4) != std::string::npos) continue;
    auto cpus = parse_cpu_list(files.read_line("/sys/devices/system/node/" + name + "/cpulist"));
    if (!cpus.empty()) out.push_back({std::atoi(name.c_str() + 4), std::move(cpus)});
  }
  if (out.empty()) out.push_back({0, usable_cpus()});
  return out;
}

void run_on(const MemoryNode& node) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : node.cpus)
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  (void)sched_setaffinity(0, sizeof set,
                          &set);  // if this is not permitted, the figures of all NUMA nodes are simply equal
}

struct Unmap {
  size_t bytes = 0;
  void operator()(void* p) const { ::munmap(p, bytes); }
};
struct Unpin {
  void operator()(void* p) const { (void)cudaHostUnregister(p); }
};

// Memory on this thread's NUMA node, pinned for the GPU.
class PinnedMemory {
 public:
  static Result<PinnedMemory> open(size_t bytes) {
    PinnedMemory out;
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      return fail(Code::unavailable, fmt::format("{} MiB of memory could not be allocated", bytes >> 20));
    out.pages_ = std::unique_ptr<void, Unmap>(p, Unmap{bytes});
    std::memset(p, 0, bytes);
    TRY_(cuda(cudaHostRegister(p, bytes, cudaHostRegisterDefault), "cudaHostRegister"));
    out.pin_.reset(p);
    return out;
  }
  char* get() const { return static_cast<char*>(pages_.get()); }

 private:
  std::unique_ptr<void, Unmap> pages_;
  std::unique_ptr<void, Unpin> pin_;  // destroyed first
};

struct Rates {
  double up = 0, down = 0;  // to the GPU, from it; GB/s
  bool right = true;
};

// Times `copy`, after one untimed warm-up.
template <typename Copy>
Result<double> rate_of(size_t bytes, int samples, Copy copy) {
  std::vector<double> rates;
  for (int i = 0; i <= samples; ++i) {
    const double start = seconds_now();
    TRY_(copy());
    if (i > 0) rates.push_back(static_cast<double>(bytes) / std::max(seconds_now() - start, 1e-9) / 1e9);
  }
  return median(std::move(rates));
}

Result<Rates> through(char* from, char* back, void* device, const CudaStream& stream,
                      const CopiesOptions& options, bool plain) {
  const size_t bytes = options.bytes;
  SplitMix random(11);
  fill_random(random, from, bytes);
  const auto copy = [&](void* to, const void* source, cudaMemcpyKind kind) -> Status {
    if (plain) return cuda(cudaMemcpy(to, source, bytes, kind), "cudaMemcpy");
    TRY_(cuda(cudaMemcpyAsync(to, source, bytes, kind, stream.get()), "cudaMemcpyAsync"));
    return stream.wait();
  };
  Rates out;
  TRY(out.up, rate_of(bytes, options.samples, [&] { return copy(device, from, cudaMemcpyHostToDevice); }));
  if (options.flip) {
    TRY_(cuda(flip_bit(device, options.flip->index % bytes, options.flip->bit % 8, stream.get()), "flip"));
    TRY_(stream.wait());
  }
  TRY(out.down, rate_of(bytes, options.samples, [&] { return copy(back, device, cudaMemcpyDeviceToHost); }));
  out.right = std::memcmp(from, back, bytes) == 0;
  return out;
}

// Runs in a separate thread, with affinity to that NUMA node.
Result<Rates> from_node(const Gpu& gpu, const MemoryNode& node, const CopiesOptions& options) {
  Result<Rates> result = fail(Code::failed, "did not run");
  std::thread worker([&] {
    run_on(node);
    result = [&]() -> Result<Rates> {
      TRY_(cuda(cudaSetDevice(gpu.device), "cudaSetDevice"));
      TRY(const CudaStream stream, CudaStream::open());
      TRY(const DeviceMemory device, device_memory(options.bytes));
      TRY(const PinnedMemory from, PinnedMemory::open(options.bytes));
      TRY(const PinnedMemory back, PinnedMemory::open(options.bytes));
      return through(from.get(), back.get(), device.get(), stream, options, false);
    }();
  });
  worker.join();
  return result;
}

Result<Rates> plainly(const CopiesOptions& options) {
  TRY(const CudaStream stream, CudaStream::open());
  TRY(const DeviceMemory device, device_memory(options.bytes));
  std::vector<char> from(options.bytes), back(options.bytes);
  return through(from.data(), back.data(), device.get(), stream, options, true);
}

struct PeerRate {
  double gbps = 0;
  bool direct = false, right = true;
};
// Allocates memory on both GPUs, and frees it again.
Result<PeerRate> to_peer(const Gpu& gpu, const Gpu& peer, const CopiesOptions& options) {
  PeerRate out;
  int can = 0;
  TRY_(cuda(cudaDeviceCanAccessPeer(&can, gpu.device, peer.device), "cudaDeviceCanAccessPeer"));
  out.direct = can != 0;
  if (out.direct) {
    const auto error = cudaDeviceEnablePeerAccess(peer.device, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
      (void)cudaGetLastError();
    else
      TRY_(cuda(error, "cudaDeviceEnablePeerAccess"));
  }
  const size_t words = options.bytes / 16 * 2;
  TRY(const CudaStream stream, CudaStream::open());
  TRY(const DeviceMemory from, device_memory(options.bytes));
  TRY_(cuda(write_pattern(from.get(), words, 8, 0, 5, stream.get()), "write pattern"));
  TRY_(stream.wait());
  TRY_(cuda(cudaSetDevice(peer.device), "cudaSetDevice"));
  TRY(const CudaStream there, CudaStream::open());
  TRY(const DeviceMemory to, device_memory(options.bytes));
  TRY(const DeviceMemory memory, device_memory(sizeof(Wrong)));
  Wrong wrong;
  TRY_(cuda(cudaMemcpy(memory.get(), &wrong, sizeof wrong, cudaMemcpyHostToDevice), "cudaMemcpy"));
  TRY(out.gbps, rate_of(options.bytes, options.samples, [&]() -> Status {
        TRY_(cuda(
            cudaMemcpyPeerAsync(to.get(), peer.device, from.get(), gpu.device, options.bytes, stream.get()),
            "cudaMemcpyPeerAsync"));
        return stream.wait();
      }));
  TRY_(cuda(check_pattern(to.get(), words, 8, 0, 5, static_cast<Wrong*>(memory.get()), there.get()),
            "check pattern"));
  TRY_(there.wait());
  TRY_(cuda(cudaMemcpy(&wrong, memory.get(), sizeof wrong, cudaMemcpyDeviceToHost), "cudaMemcpy"));
  out.right = wrong.count == 0;
  return out;
}

void raise(Measurement& out, const std::string& path) {
  if (out.outcome == Outcome::measured) out.error = fmt::format("data changed while it was copied {}", path);
  out.outcome = Outcome::corrupt;
  out.faulty_parts.push_back("path " + path);
}

Status measure_peers(const Gpu& gpu, const std::vector<Gpu>& all, const CopiesOptions& options,
                     Measurement& out) {
  double slowest = 1e300;
  for (const auto& peer : all) {
    if (peer.device == gpu.device) continue;
    auto rate = to_peer(gpu, peer, options);
    TRY_(cuda(cudaSetDevice(gpu.device), "cudaSetDevice"));
    if (!rate) return rate.error();
    slowest = std::min(slowest, rate->gbps);
    out.detail["peers"].push_back(
        {{"to", peer.uuid}, {"gbps", rounded(rate->gbps)}, {"direct", rate->direct}});
    if (!rate->right) raise(out, fmt::format("from GPU {} to GPU {}", gpu.uuid, peer.uuid));
  }
  if (all.size() > 1) out.metrics["slowest_peer_gbps"] = {slowest, "GB/s"};
  return Ok{};
}

Result<Measurement> measure(const Gpu& gpu, const std::vector<Gpu>& all, const CopiesOptions& options) {
  Measurement out;
  out.detail["bytes"] = options.bytes;
  out.detail["verified"] = "every byte that went to the GPU and back, and between GPUs";
  double up = 0, down = 0;
  for (const auto& node : memory_nodes()) {
    TRY(const Rates rates, from_node(gpu, node, options));
    out.detail["memory_nodes"].push_back(
        {{"node", node.number}, {"h2d_gbps", rounded(rates.up)}, {"d2h_gbps", rounded(rates.down)}});
    up = std::max(up, rates.up), down = std::max(down, rates.down);
    if (!rates.right) raise(out, fmt::format("between NUMA node {} and GPU {}", node.number, gpu.uuid));
  }
  TRY(const Rates plain, plainly(options));
  if (!plain.right) raise(out, fmt::format("by cudaMemcpy to GPU {}", gpu.uuid));
  out.metrics["h2d_gbps"] = {up, "GB/s"};
  out.metrics["d2h_gbps"] = {down, "GB/s"};
  out.metrics["plain_h2d_gbps"] = {plain.up, "GB/s"};
  out.metrics["plain_d2h_gbps"] = {plain.down, "GB/s"};
  TRY_(measure_peers(gpu, all, options, out));
  return out;
}

}  // namespace

Measurement run_copies(const CopiesOptions& options) {
  if (options.bytes < 4096 || options.samples < 1)
    return not_measured("gpu-copies", fail(Code::invalid, "the size or the number of samples is too small"));
  const auto all = find_gpus(options.gpus);
  if (!all) return not_measured("gpu-copies", all.error());
  return measure_gpus("gpu-copies", options.gpus, Order::one_by_one,
                      [&](const Gpu& gpu, size_t) { return measure(gpu, *all, options); });
}

}  // namespace muster::kernels::gpu
