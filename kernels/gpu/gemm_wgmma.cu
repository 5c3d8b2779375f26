// Matrix product for Hopper (compute capability 9.0): wgmma on operands that the tensor memory
// accelerator loads, bf16 and fp8.
//
// How to run:  muster-accept-gpu gemm --kernel own; muster-accept-gpu sdc --kernel own
// Reference:   golden_product() (kernels/gpu/logic/gpu_logic.h); the layouts are tested on the host
//              (tests/unit/kernels/gpu_tiles_test.cc).
// Structure:   persistent blocks of three warpgroups, one block per multiprocessor. One thread of warpgroup
//              0 loads operand tiles of 128 bytes of K, swizzled, into a ring guarded by mbarriers;
//              warpgroups 1 and 2 multiply 64 rows each and keep every sum in registers until the end of K.
//              The digest is taken there, before C is stored. While they store, the next tile's operands are
//              loaded. Order of tiles: tile_place(). v1, without clusters: tiles of 128 x 256. fp8's exact
//              product takes 128 x 128, because its sums over 128 bytes of K are added in fp32 (the tensor
//              core keeps fewer bits of an fp8 sum) and need a second set of registers.
// Expected:    85-95 % of cuBLASLt, which others reached with this structure (docs/acceptance-gpu.md). Not
//              measured.
// Ran on:      one H200, one H100 (bench/results). Code for other GPUs is empty.
#include <cuda.h>

#pragma nv_diag_suppress 177  // names that only code for 9.0 uses

#include "kernels/gpu/ptx.cuh"
#include "kernels/gpu/tiles.h"

namespace muster::kernels::gpu {
namespace {

template <bool Fp8, bool Exact>
struct Shape {
  static constexpr int kColumns = Fp8 && Exact ? 128 : 256;
  static constexpr bool kPromote = Fp8 && Exact;
  static constexpr int kSums = kColumns / 2;
  static constexpr int kABytes = kHopperRows * kRowBytes, kBBytes = kColumns * kRowBytes,
                       kStageBytes = kABytes + kBBytes;
  static constexpr int kStages = 4;
  static constexpr int kSharedBytes = kStages * kStageBytes + 1024;  // the tiles begin at a multiple of 1024
};

constexpr int kConsumerWarps = 8;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// --- instructions

__device__ __forceinline__ void barrier_init(uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap* map, int byte, int row,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(byte), "r"(row)
      : "memory");
}

__device__ __forceinline__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// The tensor core owns the sums until wgmma_wait(): the compiler must not move any use of them before this.
template <int Sums>
__device__ __forceinline__ void settled(float (&sums)[Sums]) {
#pragma unroll
  for (int i = 0; i < Sums; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// d = a b + (keep ? d : 0), 32 bytes of K. The 64 x N sums are spread over 128 threads: N / 2 each.
#define MUSTER_SUMS_8(d, i)                                                                   \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define MUSTER_SUMS_32(d, i) \
  MUSTER_SUMS_8(d, i), MUSTER_SUMS_8(d, i + 8), MUSTER_SUMS_8(d, i + 16), MUSTER_SUMS_8(d, i + 24)
#define MUSTER_SUMS_64(d) MUSTER_SUMS_32(d, 0), MUSTER_SUMS_32(d, 32)
#define MUSTER_SUMS_128(d) MUSTER_SUMS_64(d), MUSTER_SUMS_32(d, 64), MUSTER_SUMS_32(d, 96)

__device__ __forceinline__ void wgmma_bf16(float (&d)[128], uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}\n"
      : MUSTER_SUMS_128(d)
      : "l"(a), "l"(b), "r"(keep));
}
__device__ __forceinline__ void wgmma_fp8(float (&d)[128], uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1;\n}\n"
      : MUSTER_SUMS_128(d)
      : "l"(a), "l"(b), "r"(keep));
}
__device__ __forceinline__ void wgmma_fp8(float (&d)[64], uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1;\n}\n"
      : MUSTER_SUMS_64(d)
      : "l"(a), "l"(b), "r"(keep));
}

// Four instructions take a stage's 128 bytes of K; the first may start new sums.
template <bool Fp8, int Keep, int Sums>
__device__ __forceinline__ void multiply_stage(float (&sums)[Sums], uint32_t a, uint32_t b) {
  wgmma_begin();
#pragma unroll
  for (int step = 0; step < kRowBytes; step += kStepBytes) {
    if constexpr (Fp8)
      wgmma_fp8(sums, wgmma_descriptor(a + step), wgmma_descriptor(b + step), step > 0 ? 1 : Keep);
    else
      wgmma_bf16(sums, wgmma_descriptor(a + step), wgmma_descriptor(b + step), step > 0 ? 1 : Keep);
  }
  wgmma_commit();
}

// --- the kernel

// A position in the ring: its stage, and a parity that tells this round's barriers from the last round's.
template <int Stages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    if (++stage == Stages) stage = 0, parity ^= 1;
  }
};

struct Shared {
  uint32_t tiles, full, empty;  // shared memory addresses; barriers are 8 bytes apart
};

template <typename S>
__device__ void produce(const CUtensorMap* a, const CUtensorMap* b, const Product& p, Shared shared,
                        int steps) {
  Ring<S::kStages> ring;
  const int rows = p.m / kHopperRows, columns = p.n / S::kColumns;
  for (int t = static_cast<int>(blockIdx.x); t < rows * columns; t += static_cast<int>(gridDim.x)) {
    const Place tile = tile_place(t, rows, columns, p.rotation);
    for (int s = 0; s < steps; ++s, ring.advance()) {
      const uint32_t to = shared.tiles + ring.stage * S::kStageBytes, full = shared.full + 8 * ring.stage;
      barrier_wait(shared.empty + 8 * ring.stage, ring.parity ^ 1);  // returns at once in the first round
      barrier_expect(full, S::kStageBytes);
      load_tile(to, a, s * kRowBytes, tile.row * kHopperRows, full);
      load_tile(to + S::kABytes, b, s * kRowBytes, tile.column * S::kColumns, full);
    }
  }
}

// Computes one tile's sums. A stage is released one step late, when the product that reads it is finished.
template <bool Fp8, bool Exact, typename S>
__device__ __forceinline__ void multiply_tile(float (&sums)[S::kSums], Ring<S::kStages>& ring, Shared shared,
                                              int half, int steps) {
  const bool speaks = threadIdx.x % 32 == 0;
  [[maybe_unused]] float part[S::kPromote ? S::kSums : 1];
  if constexpr (S::kPromote) {
#pragma unroll
    for (int i = 0; i < S::kSums; ++i) sums[i] = 0;
  }
  int before = 0;
  if constexpr (!S::kPromote) {  // the first stage starts the sums: outside the loop, or the compiler would
                                 // serialize the rest
    barrier_wait(shared.full + 8 * ring.stage, ring.parity);
    multiply_stage<Fp8, 0>(sums, shared.tiles + ring.stage * S::kStageBytes + half * 64 * kRowBytes,
                           shared.tiles + ring.stage * S::kStageBytes + S::kABytes);
    before = ring.stage;
    ring.advance();
  }
#pragma unroll 1
  for (int s = S::kPromote ? 0 : 1; s < steps; ++s, ring.advance()) {
    barrier_wait(shared.full + 8 * ring.stage, ring.parity);
    const uint32_t a = shared.tiles + ring.stage * S::kStageBytes + half * 64 * kRowBytes;
    const uint32_t b = shared.tiles + ring.stage * S::kStageBytes + S::kABytes;
    if constexpr (S::kPromote) {
      multiply_stage<Fp8, 0>(part, a, b);
      wgmma_wait<0>();
      settled(part);
      if (speaks) barrier_arrive(shared.empty + 8 * ring.stage);
#pragma unroll
      for (int i = 0; i < S::kSums; ++i) sums[i] += part[i];
    } else {
      multiply_stage<Fp8, 1>(sums, a, b);
      wgmma_wait<1>();
      if (speaks) barrier_arrive(shared.empty + 8 * before);
      before = ring.stage;
    }
  }
  if constexpr (!S::kPromote) {
    wgmma_wait<0>();
    settled(sums);
    if (speaks) barrier_arrive(shared.empty + 8 * before);
  }
}

template <bool Exact, bool Digested, int Sums>
__device__ __forceinline__ void store_tile(float (&sums)[Sums], const Product& p, int row, int column,
                                           DigestPart& part) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
#pragma unroll
  for (int i = 0; i < Sums; i += 2) {
    const Place at = wgmma_place(thread, i);
    const unsigned long long element =
        static_cast<unsigned long long>(row + at.row) * p.n + column + at.column;
    if constexpr (Exact) {
      if (p.fault != Product::Fault::none) {
        if (element == p.element) sums[i] = __uint_as_float(__float_as_uint(sums[i]) ^ (1u << p.bit % 32));
        if (element + 1 == p.element)
          sums[i + 1] = __uint_as_float(__float_as_uint(sums[i + 1]) ^ (1u << p.bit % 32));
      }
      part.add(element, __float_as_uint(sums[i]));
      part.add(element + 1, __float_as_uint(sums[i + 1]));
      *reinterpret_cast<float2*>(static_cast<float*>(p.c) + element) = make_float2(sums[i], sums[i + 1]);
    } else {
      const uint32_t both =
          static_cast<uint32_t>(to_bf16(sums[i])) | static_cast<uint32_t>(to_bf16(sums[i + 1])) << 16;
      if constexpr (Digested) part.add(element / 2, both);
      static_cast<uint32_t*>(p.c)[element / 2] = both;
    }
  }
}

template <bool Fp8, bool Exact, bool Digested, typename S>
__device__ __forceinline__ void consume(const Product& p, Shared shared, int half, int steps) {
  Ring<S::kStages> ring;
  DigestPart part;
  const int rows = p.m / kHopperRows, columns = p.n / S::kColumns;
  for (int t = static_cast<int>(blockIdx.x); t < rows * columns; t += static_cast<int>(gridDim.x)) {
    const Place tile = tile_place(t, rows, columns, p.rotation);
    float sums[S::kSums];
    multiply_tile<Fp8, Exact, S>(sums, ring, shared, half, steps);
    store_tile<Exact, Digested>(sums, p, tile.row * kHopperRows + half * 64, tile.column * S::kColumns, part);
  }
  if constexpr (Digested) part.flush(p.digest);
}

#endif

template <bool Fp8, bool Exact, bool Digested>
__global__ void __launch_bounds__(kHopperThreads, 1)
    hopper_kernel(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                  const __grid_constant__ Product p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using S = Shape<Fp8, Exact>;
  extern __shared__ uint8_t raw[];
  __shared__ __align__(8) uint64_t barriers[2 * S::kStages];
  Shared shared;
  shared.tiles = (shared_address(raw) + 1023u) & ~1023u;
  shared.full = shared_address(barriers);
  shared.empty = shared.full + 8 * S::kStages;
  const int group = static_cast<int>(threadIdx.x) / 128, steps = p.k * (Fp8 ? 1 : 2) / kRowBytes;
  if (threadIdx.x == 0) {
    for (int s = 0; s < S::kStages; ++s) {
      barrier_init(shared.full + 8 * s, 1);
      barrier_init(shared.empty + 8 * s, kConsumerWarps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (group == 0) {
    // 40 + 2 x 232 registers for 128 threads each: as many as 168 for each of the 384.
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce<S>(&a, &b, p, shared, steps);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume<Fp8, Exact, Digested, S>(p, shared, group - 1, steps);
  }
#endif
}

// --- launch

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                                 CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

// Looks the function up in the driver by name: this program is not linked with the driver.
cudaError_t find_encoder(EncodeTiled& out) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const auto error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
#else
  const auto error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status);
#endif
  if (error != cudaSuccess) return error;
  if (status != cudaDriverEntryPointSuccess || !found) return cudaErrorSymbolNotFound;
  out = reinterpret_cast<EncodeTiled>(found);
  return cudaSuccess;
}

// A matrix of bytes with K innermost, loaded in boxes of 128 bytes x `box_rows`.
cudaError_t describe(EncodeTiled encode, CUtensorMap& map, const void* data, size_t rows, size_t row_bytes,
                     unsigned box_rows) {
  const cuuint64_t size[2] = {row_bytes, rows}, row_stride[1] = {row_bytes};
  const cuuint32_t box[2] = {kRowBytes, box_rows}, element_strides[2] = {1, 1};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(data), size, row_stride, box,
             element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

template <bool Fp8, bool Exact, bool Digested>
cudaError_t launch(const Product& p, cudaStream_t stream) {
  using S = Shape<Fp8, Exact>;
  const auto kernel = hopper_kernel<Fp8, Exact, Digested>;
  int device = 0, processors = 0;
  EncodeTiled encode = nullptr;
  CUtensorMap a, b;
  const size_t row_bytes = static_cast<size_t>(p.k) * (Fp8 ? 1 : 2);
  if (const auto error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (const auto error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      error != cudaSuccess)
    return error;
  if (const auto error = find_encoder(encode); error != cudaSuccess) return error;
  if (const auto error = describe(encode, a, p.a, p.m, row_bytes, kHopperRows); error != cudaSuccess)
    return error;
  if (const auto error = describe(encode, b, p.b, p.n, row_bytes, S::kColumns); error != cudaSuccess)
    return error;
  if (const auto error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
      error != cudaSuccess)
    return error;
  const int tiles = p.m / kHopperRows * (p.n / S::kColumns);
  kernel<<<static_cast<unsigned>(tiles < processors ? tiles : processors), kHopperThreads, S::kSharedBytes,
           stream>>>(a, b, p);
  return cudaGetLastError();
}

template <bool Fp8>
cudaError_t choose(const Product& p, cudaStream_t stream) {
  if (p.exact) return launch<Fp8, true, true>(p, stream);
  return p.digest ? launch<Fp8, false, true>(p, stream) : launch<Fp8, false, false>(p, stream);
}

}  // namespace

cudaError_t multiply_hopper(const Product& p, cudaStream_t stream) {
  if (p.m % 256 || p.n % 256 || p.k % 256 || p.m <= 0 || p.n <= 0 || p.k <= 0 || (p.exact && !p.digest))
    return cudaErrorInvalidValue;
  if (p.format == Format::bf16) return choose<false>(p, stream);
  return p.format == Format::fp8 ? choose<true>(p, stream) : cudaErrorInvalidValue;
}

}  // namespace muster::kernels::gpu
