// Memory of the GPU: bandwidth by reading, writing, copying and triad; a pattern test; inputs and checks of
// collectives.
//
// How to run:  muster-accept-gpu memory (kernels/gpu/memory.cc)
// Reference:   pattern_at() and rank_value() of exact.h, which the tests call on the host.
// Structure:   16 bytes per access, four independent accesses in flight per thread, grid-stride.
// Expected:    reading 93-95 % of the data sheet's bandwidth, copy and triad 84-87 % (sources:
//              docs/acceptance-gpu.md).
// Ran on:      one H200, one H100 (bench/results).
#include "kernels/gpu/device.h"

namespace muster::kernels::gpu {
namespace {

constexpr int kThreads = 512, kInFlight = 4;

unsigned blocks_for(size_t items, size_t per_block) {
  const size_t blocks = (items + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > (1u << 30) ? (1u << 30) : blocks);
}

__device__ size_t first_item() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ size_t stride() { return static_cast<size_t>(gridDim.x) * blockDim.x; }

__device__ float4 triad(float4 a, float4 b) {
  return make_float4(a.x + 3.0f * b.x, a.y + 3.0f * b.y, a.z + 3.0f * b.z, a.w + 3.0f * b.w);
}

// Each block owns kThreads * kInFlight words; a thread's four are a block's width apart: contiguous per warp.
template <Stream What>
__global__ void __launch_bounds__(kThreads)
    stream_kernel(float4* c, const float4* a, const float4* b, size_t words, unsigned long long* sink) {
  const size_t first = static_cast<size_t>(blockIdx.x) * (kThreads * kInFlight) + threadIdx.x;
  float4 x[kInFlight], y[kInFlight];
#pragma unroll
  for (int j = 0; j < kInFlight; ++j) {
    const size_t at = first + static_cast<size_t>(j) * kThreads;
    x[j] = y[j] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (What != Stream::write && at < words) x[j] = __ldcs(&a[at]);
    if (What == Stream::triad && at < words) y[j] = __ldcs(&b[at]);
  }
  unsigned folded = 0;
#pragma unroll
  for (int j = 0; j < kInFlight; ++j) {
    const size_t at = first + static_cast<size_t>(j) * kThreads;
    if (What == Stream::read)
      folded ^= __float_as_uint(x[j].x) ^ __float_as_uint(x[j].y) ^ __float_as_uint(x[j].z) ^
                __float_as_uint(x[j].w);
    else if (at < words)
      __stcs(&c[at], What == Stream::triad ? triad(x[j], y[j]) : x[j]);
  }
  // Arrays of equal floats fold to zero; the compiler cannot know that, so it must read them.
  if (What == Stream::read && folded != 0) atomicAdd(sink, 1ull);
}

__global__ void write_pattern_kernel(ulonglong2* data, size_t pairs, int round, uint64_t first,
                                     uint64_t seed) {
  for (size_t i = first_item(); i < pairs; i += stride())
    __stcs(&data[i], make_ulonglong2(pattern_at(round, first + 2 * i, seed),
                                     pattern_at(round, first + 2 * i + 1, seed)));
}

__device__ void note(Wrong* wrong, uint64_t index, unsigned long long found) {
  atomicAdd(&wrong->count, 1ull);
  if (atomicMin(&wrong->first, static_cast<unsigned long long>(index)) > index) wrong->found = found;
}
__global__ void check_pattern_kernel(const ulonglong2* data, size_t pairs, int round, uint64_t first,
                                     uint64_t seed, Wrong* wrong) {
  for (size_t i = first_item(); i < pairs; i += stride()) {
    const ulonglong2 two = __ldcs(&data[i]);
    if (two.x != pattern_at(round, first + 2 * i, seed)) note(wrong, first + 2 * i, two.x);
    if (two.y != pattern_at(round, first + 2 * i + 1, seed)) note(wrong, first + 2 * i + 1, two.y);
  }
}

__global__ void write_ranks_kernel(float* data, size_t count, uint64_t seed, int rank, uint64_t first) {
  for (size_t i = first_item(); i < count; i += stride()) data[i] = rank_value(seed, rank, first + i);
}
// Compares bits: a NaN is not equal to anything.
__global__ void check_ranks_kernel(const float* data, size_t count, uint64_t seed, int rank, int ranks,
                                   uint64_t first, unsigned long long* wrong) {
  unsigned long long here = 0;
  for (size_t i = first_item(); i < count; i += stride()) {
    float right = 0;
    for (int r = rank; r < rank + ranks; ++r) right += rank_value(seed, r, first + i);
    here += __float_as_uint(right) != __float_as_uint(data[i]);
  }
  if (here > 0) atomicAdd(wrong, here);
}

}  // namespace

cudaError_t run_stream(Stream what, void* c, const void* a, const void* b, size_t words,
                       unsigned long long* sink, cudaStream_t stream) {
  const unsigned blocks = blocks_for(words, kThreads * kInFlight);
  auto* to = static_cast<float4*>(c);
  const auto *x = static_cast<const float4*>(a), *y = static_cast<const float4*>(b);
  switch (what) {
    case Stream::read:
      stream_kernel<Stream::read><<<blocks, kThreads, 0, stream>>>(to, x, y, words, sink);
      break;
    case Stream::write:
      stream_kernel<Stream::write><<<blocks, kThreads, 0, stream>>>(to, x, y, words, sink);
      break;
    case Stream::copy:
      stream_kernel<Stream::copy><<<blocks, kThreads, 0, stream>>>(to, x, y, words, sink);
      break;
    case Stream::triad:
      stream_kernel<Stream::triad><<<blocks, kThreads, 0, stream>>>(to, x, y, words, sink);
      break;
  }
  return cudaGetLastError();
}

cudaError_t write_pattern(void* data, size_t words64, int round, uint64_t first, uint64_t seed,
                          cudaStream_t stream) {
  const size_t pairs = words64 / 2;
  write_pattern_kernel<<<blocks_for(pairs, kThreads * 16), kThreads, 0, stream>>>(
      static_cast<ulonglong2*>(data), pairs, round, first, seed);
  return cudaGetLastError();
}

cudaError_t check_pattern(const void* data, size_t words64, int round, uint64_t first, uint64_t seed,
                          Wrong* wrong, cudaStream_t stream) {
  const size_t pairs = words64 / 2;
  check_pattern_kernel<<<blocks_for(pairs, kThreads * 16), kThreads, 0, stream>>>(
      static_cast<const ulonglong2*>(data), pairs, round, first, seed, wrong);
  return cudaGetLastError();
}

cudaError_t write_ranks(float* data, size_t count, uint64_t seed, int rank, uint64_t first,
                        cudaStream_t stream) {
  write_ranks_kernel<<<blocks_for(count, kThreads * 16), kThreads, 0, stream>>>(data, count, seed, rank,
                                                                                first);
  return cudaGetLastError();
}

cudaError_t check_ranks(const float* data, size_t count, uint64_t seed, int rank, int ranks, uint64_t first,
                        unsigned long long* wrong, cudaStream_t stream) {
  check_ranks_kernel<<<blocks_for(count, kThreads * 16), kThreads, 0, stream>>>(data, count, seed, rank,
                                                                                ranks, first, wrong);
  return cudaGetLastError();
}

}  // namespace muster::kernels::gpu
