// PTX instructions that CUDA C++ cannot express, with the compute capability that each requires, and a
// thread's share of a digest. Device code only.
#pragma once

#include "kernels/gpu/device.h"

namespace muster::kernels::gpu {

// A thread's share of a digest. flush(): all threads of a warp must call it together.
struct DigestPart {
  unsigned long long sum = 0, mixed = 0;
  __device__ __forceinline__ void add(unsigned long long position, uint32_t bits) {
    const uint64_t h = word_hash(position, bits);
    sum += h;
    mixed ^= word_mixed(h);
  }
  __device__ __forceinline__ void flush(Counts* out) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, offset);
      mixed ^= __shfl_xor_sync(0xffffffffu, mixed, offset);
    }
    if (threadIdx.x % 32 != 0) return;
    atomicAdd(&out->sum, sum);
    atomicXor(&out->mixed, mixed);
  }
};

__device__ __forceinline__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// sm_80: copies 16 bytes from global to shared memory, bypassing the L1 cache.
__device__ __forceinline__ void copy_16(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// sm_75: four 8 x 8 matrices of 16-bit elements; lane 8 i + r passes the address of row r of matrix i.
__device__ __forceinline__ void load_matrices(uint32_t (&out)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}

// sm_80.
__device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// sm_89.
__device__ __forceinline__ void mma_fp8(float (&c)[4], const uint32_t (&a)[4], const uint32_t* b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  (void)c, (void)a, (void)b;
  __trap();  // the host never launches it on older GPUs
#endif
}

}  // namespace muster::kernels::gpu
