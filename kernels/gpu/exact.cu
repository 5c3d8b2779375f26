// Inputs, digests and the checks around a product on the GPU.
//
// How to run:  muster-accept-gpu sdc (kernels/gpu/gpu_sdc.cc)
// Reference:   exact.h on the host: the same generator and digest; golden_product() and canary_digest() in
//              integer arithmetic.
// Structure:   grid-stride loops; sums and xors over all threads, so the order does not matter.
// Expected:    the read-back digest reads C once: about 2.4 % of an 8192 cubed bf16 product on an H200
//              (derived, not measured).
// Ran on:      one H200, one H100 (bench/results); compiles for the architectures in cmake/gpu.cmake.
#include <cuda_fp16.h>

#include "kernels/gpu/tiles.h"
#include "kernels/gpu/device.h"
#include "kernels/gpu/ptx.cuh"

namespace muster::kernels::gpu {
namespace {

constexpr int kThreads = 256;

int blocks_for(size_t items) {
  const size_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks > 65536 ? 65536 : blocks);
}

__device__ size_t first_item() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ size_t stride() { return static_cast<size_t>(gridDim.x) * blockDim.x; }

template <Format F>
__device__ void store(void* out, size_t at, float value) {
  if constexpr (F == Format::bf16) static_cast<uint16_t*>(out)[at] = to_bf16(value);
  if constexpr (F == Format::fp16) static_cast<uint16_t*>(out)[at] = to_fp16(value);
  if constexpr (F == Format::tf32) static_cast<float*>(out)[at] = value;
  if constexpr (F == Format::fp8) static_cast<uint8_t*>(out)[at] = to_e4m3(value);
  if constexpr (F == Format::int8) static_cast<int8_t*>(out)[at] = static_cast<int8_t>(value);
  if constexpr (F == Format::fp64) static_cast<double*>(out)[at] = static_cast<double>(value);
}

template <Format F>
__global__ void fill_kernel(void* out, Fill what) {
  const size_t count = what.rows * what.depth;
  for (size_t at = first_item(); at < count; at += stride()) {
    const size_t row = at / what.depth, d = at % what.depth;
    const uint64_t number = what.first + (what.transposed ? d * what.rows + row : at);
    const float value = what.most > 0 ? static_cast<float>(integer_at(what.seed, number, what.most))
                                      : uniform_at(what.seed, number) * (F == Format::int8 ? 127.0f : 1.0f);
    store<F>(out, at, value);
  }
}

template <Words Kind>
__device__ unsigned bad_parts(uint32_t bits, bool odd_word) {
  if constexpr (Kind == Words::f32) return not_finite_f32(bits);
  if constexpr (Kind == Words::bf16)
    return not_finite_bf16(static_cast<uint16_t>(bits)) + not_finite_bf16(static_cast<uint16_t>(bits >> 16));
  if constexpr (Kind == Words::fp16)
    return not_finite_fp16(static_cast<uint16_t>(bits)) + not_finite_fp16(static_cast<uint16_t>(bits >> 16));
  if constexpr (Kind == Words::f64) return odd_word && not_finite_f64(static_cast<uint64_t>(bits) << 32);
  return 0;
}

template <Words Kind>
__global__ void digest_kernel(const uint4* data, size_t words, Counts* out) {
  DigestPart part;
  unsigned bad = 0;
  for (size_t i = first_item(); i < words / 4; i += stride()) {
    const uint4 four = __ldcg(&data[i]);  // bypasses the L1 cache, to check what is in memory or in L2
    const uint32_t bits[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      part.add(4 * i + j, bits[j]);
      bad += bad_parts<Kind>(bits[j], j % 2);
    }
  }
  const auto* rest = reinterpret_cast<const uint32_t*>(data);
  for (size_t i = words / 4 * 4 + first_item(); i < words; i += stride()) {
    part.add(i, rest[i]);
    bad += bad_parts<Kind>(rest[i], i % 2);
  }
  part.flush(out);
  if (bad > 0) atomicAdd(&out->not_finite, static_cast<unsigned long long>(bad));
}

__global__ void flip_kernel(uint8_t* data, size_t byte, unsigned bit) {
  data[byte] ^= static_cast<uint8_t>(1u << bit % 8);
}

// Returns an element as an integer; any other value is counted in `odd` and returned as 0.
__device__ long long integer_of(double value, unsigned& odd) {
  const bool right = value == value && value >= -1e12 && value <= 1e12 && value == trunc(value);
  odd += !right;
  return right ? static_cast<long long>(value) : 0;
}
template <Reading R>
__device__ long long element(const void* m, size_t at, unsigned& odd) {
  if constexpr (R == Reading::bf16) return integer_of(from_bf16(static_cast<const uint16_t*>(m)[at]), odd);
  if constexpr (R == Reading::fp16)
    return integer_of(__half2float(__ushort_as_half(static_cast<const uint16_t*>(m)[at])), odd);
  if constexpr (R == Reading::f32) return integer_of(static_cast<const float*>(m)[at], odd);
  if constexpr (R == Reading::fp8) return integer_of(from_e4m3(static_cast<const uint8_t*>(m)[at]), odd);
  if constexpr (R == Reading::int8) return static_cast<const int8_t*>(m)[at];
  if constexpr (R == Reading::int32) return static_cast<const int32_t*>(m)[at];
  if constexpr (R == Reading::f64) return integer_of(static_cast<const double*>(m)[at], odd);
  return 0;
}
__device__ long long sign_at(uint64_t seed, size_t index) { return random_at(seed, index) & 1 ? 1 : -1; }

// One block per row.
template <Reading R>
__global__ void times_vector_kernel(const void* m, size_t columns, const long long* x, uint64_t seed,
                                    long long* out, unsigned long long* odd) {
  __shared__ unsigned long long total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  long long sum = 0;
  unsigned odd_here = 0;
  for (size_t j = threadIdx.x; j < columns; j += blockDim.x)
    sum += element<R>(m, blockIdx.x * columns + j, odd_here) * (x ? x[j] : sign_at(seed, j));
  atomicAdd(&total, static_cast<unsigned long long>(sum));  // wraps: equal sums stay equal
  if (odd_here > 0) atomicAdd(odd, static_cast<unsigned long long>(odd_here));
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<long long>(total);
}

constexpr size_t kRowsPerBlock = 64;

// One thread per column, over blocks of 64 rows: adjacent threads read adjacent elements (coalesced loads).
template <Reading R>
__global__ void transposed_kernel(const void* m, size_t rows, size_t columns, uint64_t seed, long long* out,
                                  unsigned long long* odd) {
  const size_t column = first_item();
  if (column >= columns) return;
  const size_t first = blockIdx.y * kRowsPerBlock,
               last = first + kRowsPerBlock < rows ? first + kRowsPerBlock : rows;
  long long sum = 0;
  unsigned odd_here = 0;
  for (size_t row = first; row < last; ++row)
    sum += element<R>(m, row * columns + column, odd_here) * sign_at(seed, row);
  atomicAdd(reinterpret_cast<unsigned long long*>(&out[column]), static_cast<unsigned long long>(sum));
  if (odd_here > 0) atomicAdd(odd, static_cast<unsigned long long>(odd_here));
}

__global__ void compare_kernel(const unsigned long long* a, const unsigned long long* b, size_t words,
                               unsigned long long* count, unsigned long long* first) {
  unsigned long long here = 0, lowest = ~0ull;
  for (size_t i = first_item(); i < words; i += stride())
    if (a[i] != b[i]) ++here, lowest = lowest < i ? lowest : i;
  if (here > 0) {
    atomicAdd(count, here);
    atomicMin(first, lowest);
  }
}

// One 16 x 8 block per warp, K = 512, all in registers: errors are those of the tensor core or the registers.
__device__ void canary_round(uint64_t seed, int warp, int lane, DigestPart& part) {
  float c[4] = {};
  for (int step = 0; step < kCanaryDepth; step += 16) {
    uint32_t a[4], b[2];
    const int row = lane / 4, k = step + lane % 4 * 2;
    const auto pair = [](int low, int high) {
      return static_cast<uint32_t>(to_bf16(static_cast<float>(low))) |
             static_cast<uint32_t>(to_bf16(static_cast<float>(high))) << 16;
    };
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = row + i % 2 * 8, at = k + i / 2 * 8;
      a[i] = pair(canary_a(seed, warp, r, at), canary_a(seed, warp, r, at + 1));
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      b[i] = pair(canary_b(seed, warp, row, k + i * 8), canary_b(seed, warp, row, k + i * 8 + 1));
    mma_bf16(c, a, b);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Place at = c_place(lane, i);
    part.add(canary_position(warp, at.row, at.column), bits_of_float(c[i]));
  }
}

__global__ void canary_kernel(Canary* out, int rounds, uint64_t seed, unsigned long long right_sum) {
  __shared__ Counts counts;
  unsigned wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0) counts = Counts{};
    __syncthreads();
    DigestPart part;
    canary_round(seed, static_cast<int>(threadIdx.x) / 32, static_cast<int>(threadIdx.x) % 32, part);
    part.flush(&counts);
    __syncthreads();
    wrong += counts.sum != right_sum;
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  unsigned where;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(where));
  out[blockIdx.x] = {where, wrong, counts.sum, counts.mixed};
}

template <Reading R>
cudaError_t launch_times(const void* m, size_t rows, size_t columns, const long long* x, uint64_t seed,
                         long long* out, unsigned long long* odd, cudaStream_t stream) {
  times_vector_kernel<R><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(m, columns, x, seed, out, odd);
  return cudaGetLastError();
}
template <Reading R>
cudaError_t launch_transposed(const void* m, size_t rows, size_t columns, uint64_t seed, long long* out,
                              unsigned long long* odd, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((columns + kThreads - 1) / kThreads),
                  static_cast<unsigned>((rows + kRowsPerBlock - 1) / kRowsPerBlock));
  transposed_kernel<R><<<grid, kThreads, 0, stream>>>(m, rows, columns, seed, out, odd);
  return cudaGetLastError();
}

}  // namespace

cudaError_t fill(void* out, const Fill& what, cudaStream_t stream) {
  const int blocks = blocks_for(what.rows * what.depth);
  switch (what.format) {
    case Format::bf16:
      fill_kernel<Format::bf16><<<blocks, kThreads, 0, stream>>>(out, what);
      break;
    case Format::fp16:
      fill_kernel<Format::fp16><<<blocks, kThreads, 0, stream>>>(out, what);
      break;
    case Format::tf32:
      fill_kernel<Format::tf32><<<blocks, kThreads, 0, stream>>>(out, what);
      break;
    case Format::fp8:
      fill_kernel<Format::fp8><<<blocks, kThreads, 0, stream>>>(out, what);
      break;
    case Format::int8:
      fill_kernel<Format::int8><<<blocks, kThreads, 0, stream>>>(out, what);
      break;
    case Format::fp64:
      fill_kernel<Format::fp64><<<blocks, kThreads, 0, stream>>>(out, what);
      break;
  }
  return cudaGetLastError();
}

cudaError_t digest(const void* data, size_t words, Words kind, Counts* out, cudaStream_t stream) {
  const auto* from = static_cast<const uint4*>(data);
  const int blocks = blocks_for(words / 16 + 1);
  switch (kind) {
    case Words::integer:
      digest_kernel<Words::integer><<<blocks, kThreads, 0, stream>>>(from, words, out);
      break;
    case Words::f32:
      digest_kernel<Words::f32><<<blocks, kThreads, 0, stream>>>(from, words, out);
      break;
    case Words::bf16:
      digest_kernel<Words::bf16><<<blocks, kThreads, 0, stream>>>(from, words, out);
      break;
    case Words::fp16:
      digest_kernel<Words::fp16><<<blocks, kThreads, 0, stream>>>(from, words, out);
      break;
    case Words::f64:
      digest_kernel<Words::f64><<<blocks, kThreads, 0, stream>>>(from, words, out);
      break;
  }
  return cudaGetLastError();
}

cudaError_t flip_bit(void* data, size_t byte, unsigned bit, cudaStream_t stream) {
  flip_kernel<<<1, 1, 0, stream>>>(static_cast<uint8_t*>(data), byte, bit);
  return cudaGetLastError();
}

cudaError_t times_vector(const void* m, Reading as, size_t rows, size_t columns, const long long* x,
                         uint64_t seed, long long* out, unsigned long long* odd, cudaStream_t stream) {
  switch (as) {
    case Reading::bf16:
      return launch_times<Reading::bf16>(m, rows, columns, x, seed, out, odd, stream);
    case Reading::fp16:
      return launch_times<Reading::fp16>(m, rows, columns, x, seed, out, odd, stream);
    case Reading::f32:
      return launch_times<Reading::f32>(m, rows, columns, x, seed, out, odd, stream);
    case Reading::fp8:
      return launch_times<Reading::fp8>(m, rows, columns, x, seed, out, odd, stream);
    case Reading::int8:
      return launch_times<Reading::int8>(m, rows, columns, x, seed, out, odd, stream);
    case Reading::int32:
      return launch_times<Reading::int32>(m, rows, columns, x, seed, out, odd, stream);
    case Reading::f64:
      return launch_times<Reading::f64>(m, rows, columns, x, seed, out, odd, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t transposed_times_signs(const void* m, Reading as, size_t rows, size_t columns, uint64_t seed,
                                   long long* out, unsigned long long* odd, cudaStream_t stream) {
  switch (as) {
    case Reading::bf16:
      return launch_transposed<Reading::bf16>(m, rows, columns, seed, out, odd, stream);
    case Reading::fp16:
      return launch_transposed<Reading::fp16>(m, rows, columns, seed, out, odd, stream);
    case Reading::f32:
      return launch_transposed<Reading::f32>(m, rows, columns, seed, out, odd, stream);
    case Reading::fp8:
      return launch_transposed<Reading::fp8>(m, rows, columns, seed, out, odd, stream);
    case Reading::int8:
      return launch_transposed<Reading::int8>(m, rows, columns, seed, out, odd, stream);
    case Reading::f64:
      return launch_transposed<Reading::f64>(m, rows, columns, seed, out, odd, stream);
    case Reading::int32:
      break;  // no input has this format
  }
  return cudaErrorInvalidValue;
}

cudaError_t compare(const void* a, const void* b, size_t words, unsigned long long* count,
                    unsigned long long* first, cudaStream_t stream) {
  compare_kernel<<<blocks_for(words / 4 + 1), kThreads, 0, stream>>>(
      static_cast<const unsigned long long*>(a), static_cast<const unsigned long long*>(b), words, count,
      first);
  return cudaGetLastError();
}

cudaError_t canary(Canary* out, int blocks, int rounds, uint64_t seed, unsigned long long right_sum,
                   cudaStream_t stream) {
  // Requests the maximum shared memory per block, so that no two blocks fit on one multiprocessor.
  int device = 0, most = 0;
  cudaFuncAttributes own = {};
  if (const auto error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (const auto error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      error != cudaSuccess)
    return error;
  if (const auto error = cudaFuncGetAttributes(&own, canary_kernel); error != cudaSuccess) return error;
  const int bytes = (most - static_cast<int>(own.sharedSizeBytes)) / 128 * 128;
  if (const auto error =
          cudaFuncSetAttribute(canary_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      error != cudaSuccess)
    return error;
  canary_kernel<<<blocks, kCanaryWarps * 32, static_cast<size_t>(bytes), stream>>>(out, rounds, seed,
                                                                                   right_sum);
  return cudaGetLastError();
}

}  // namespace muster::kernels::gpu
