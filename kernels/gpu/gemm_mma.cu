// Matrix product with mma.sync: bf16 for compute capability 8.0 and later, fp8 (e4m3) for 8.9 and later.
//
// How to run:  muster-accept-gpu gemm --kernel own; muster-accept-gpu sdc --kernel own
// Reference:   golden_product() (kernels/gpu/logic/gpu_logic.h); tests/unit/kernels/gpu_tiles_test.cc runs
// the same
//              index functions on the host for all threads of a block, and compares with a plain product.
// Structure:   128 x 128 tile per block of eight warps, each 64 x 32. Operand tiles of 128 rows x 128 bytes
//              are copied by cp.async into three stages of swizzled shared memory, and by ldmatrix into
//              registers. Every sum stays in a register until the end of K, and the digest is taken there,
//              before C is stored. bf16 and fp8 differ in one instruction. Version 1. Every sum is made in
//              one fixed order: the same inputs give the same bits.
// Expected:    not known. It is meant for checking; on Hopper mma.sync cannot reach the speed of wgmma.
// Ran on:      no GPU yet, so it is used only when named.
#include "kernels/gpu/ptx.cuh"
#include "kernels/gpu/tiles.h"

namespace muster::kernels::gpu {
namespace {

constexpr int kSharedBytes = kMmaStages * kMmaStageBytes;

struct Sums {
  float at[kRowBlocks][kColumnBlocks][4];
};

// 128 bytes of K of 128 rows of A and of B.
__device__ __forceinline__ void load_stage(uint32_t stage, const uint8_t* a, const uint8_t* b,
                                           size_t row_bytes) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Place at = copy_place(static_cast<int>(threadIdx.x), i);
    const auto to = static_cast<uint32_t>(swizzled(at.row, at.column));
    const size_t from = static_cast<size_t>(at.row) * row_bytes + static_cast<size_t>(at.column);
    copy_16(stage + to, a + from);
    copy_16(stage + kMmaTile * kRowBytes + to, b + from);
  }
}

template <bool Fp8>
__device__ __forceinline__ void multiply_stage(uint32_t stage, Place warp, int lane, Sums& sums) {
  const Place a_at = a_address(lane), b_at = b_address(lane);
#pragma unroll
  for (int step = 0; step < kRowBytes; step += kStepBytes) {
    uint32_t a[kRowBlocks][4], b[kColumnBlocks / 2][4];
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
      load_matrices(
          a[i], stage + static_cast<uint32_t>(swizzled(warp.row + i * 16 + a_at.row, step + a_at.column)));
#pragma unroll
    for (int j = 0; j < kColumnBlocks / 2; ++j)
      load_matrices(b[j],
                    stage + kMmaTile * kRowBytes +
                        static_cast<uint32_t>(swizzled(warp.column + j * 16 + b_at.row, step + b_at.column)));
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int j = 0; j < kColumnBlocks; ++j) {
        if constexpr (Fp8)
          mma_fp8(sums.at[i][j], a[i], &b[j / 2][j % 2 * 2]);
        else
          mma_bf16(sums.at[i][j], a[i], &b[j / 2][j % 2 * 2]);
      }
  }
}

// Calls each(row, column, first sum, second sum) for each of a thread's pairs of adjacent sums.
template <typename Each>
__device__ __forceinline__ void for_pairs(Sums& sums, Place origin, int lane, Each each) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int j = 0; j < kColumnBlocks; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Place at = c_place(lane, half * 2);
        each(origin.row + i * 16 + at.row, origin.column + j * 8 + at.column, sums.at[i][j][half * 2],
             sums.at[i][j][half * 2 + 1]);
      }
}

__device__ __forceinline__ void flip(Sums& sums, Place origin, int lane, const Product& p) {
  for_pairs(sums, origin, lane, [&](int row, int column, float& x, float& y) {
    const unsigned long long at = static_cast<unsigned long long>(row) * p.n + column;
    if (at == p.element) x = __uint_as_float(__float_as_uint(x) ^ (1u << p.bit % 32));
    if (at + 1 == p.element) y = __uint_as_float(__float_as_uint(y) ^ (1u << p.bit % 32));
  });
}

template <bool Exact, bool Digested>
__device__ __forceinline__ void finish(Sums& sums, Place origin, int lane, const Product& p) {
  if (Exact && p.fault == Product::Fault::output_register) flip(sums, origin, lane, p);
  DigestPart part;
  for_pairs(sums, origin, lane, [&](int row, int column, float& x, float& y) {
    const unsigned long long at = static_cast<unsigned long long>(row) * p.n + column;
    if constexpr (Exact) {
      part.add(at, __float_as_uint(x));
      part.add(at + 1, __float_as_uint(y));
      *reinterpret_cast<float2*>(static_cast<float*>(p.c) + at) = make_float2(x, y);
    } else {
      const uint32_t both = static_cast<uint32_t>(to_bf16(x)) | static_cast<uint32_t>(to_bf16(y)) << 16;
      if constexpr (Digested) part.add(at / 2, both);
      static_cast<uint32_t*>(p.c)[at / 2] = both;
    }
  });
  if constexpr (Digested) part.flush(p.digest);
}

template <bool Fp8, bool Exact, bool Digested>
__global__ void __launch_bounds__(kMmaThreads) gemm_kernel(const Product p) {
  extern __shared__ __align__(128) uint8_t shared[];
  const uint32_t base = shared_address(shared);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const Place tile = tile_place(static_cast<int>(blockIdx.x), p.m / kMmaTile, p.n / kMmaTile, p.rotation);
  const Place inside = warp_origin(warp),
              origin = {tile.row * kMmaTile + inside.row, tile.column * kMmaTile + inside.column};
  const size_t row_bytes = static_cast<size_t>(p.k) * (Fp8 ? 1 : 2);
  const uint8_t* a = static_cast<const uint8_t*>(p.a) + static_cast<size_t>(tile.row) * kMmaTile * row_bytes;
  const uint8_t* b =
      static_cast<const uint8_t*>(p.b) + static_cast<size_t>(tile.column) * kMmaTile * row_bytes;
  const int steps = static_cast<int>(row_bytes / kRowBytes);
  Sums sums = {};
#pragma unroll
  for (int s = 0; s < kMmaStages - 1; ++s) {
    if (s < steps) load_stage(base + s * kMmaStageBytes, a + s * kRowBytes, b + s * kRowBytes, row_bytes);
    copies_commit();
  }
  for (int s = 0; s < steps; ++s) {
    copies_wait<kMmaStages - 2>();  // this thread's copies for stage s have landed
    __syncthreads();  // so have all other threads', and no thread is still reading the stage to load next
    if (const int next = s + kMmaStages - 1; next < steps)
      load_stage(base + next % kMmaStages * kMmaStageBytes, a + static_cast<size_t>(next) * kRowBytes,
                 b + static_cast<size_t>(next) * kRowBytes, row_bytes);
    copies_commit();  // even an empty group: copies_wait() counts groups
    multiply_stage<Fp8>(base + s % kMmaStages * kMmaStageBytes, inside, lane, sums);
    if (Exact && p.fault == Product::Fault::accumulator && s == steps / 2) flip(sums, origin, lane, p);
  }
  finish<Exact, Digested>(sums, origin, lane, p);
}

template <bool Fp8, bool Exact, bool Digested>
cudaError_t launch(const Product& p, cudaStream_t stream) {
  const auto kernel = gemm_kernel<Fp8, Exact, Digested>;
  if (const auto error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
      error != cudaSuccess)
    return error;
  kernel<<<static_cast<unsigned>(p.m / kMmaTile * (p.n / kMmaTile)), kMmaThreads, kSharedBytes, stream>>>(p);
  return cudaGetLastError();
}

template <bool Fp8>
cudaError_t choose(const Product& p, cudaStream_t stream) {
  if (p.exact) return launch<Fp8, true, true>(p, stream);
  return p.digest ? launch<Fp8, false, true>(p, stream) : launch<Fp8, false, false>(p, stream);
}

}  // namespace

cudaError_t multiply_mma(const Product& p, cudaStream_t stream) {
  if (p.m % 256 || p.n % 256 || p.k % 256 || p.m <= 0 || p.n <= 0 || p.k <= 0 || (p.exact && !p.digest))
    return cudaErrorInvalidValue;
  if (p.format == Format::bf16) return choose<false>(p, stream);
  return p.format == Format::fp8 ? choose<true>(p, stream) : cudaErrorInvalidValue;
}

}  // namespace muster::kernels::gpu
