// The numbers of the training-shaped load on the GPU: weights and inputs made in place, sums folded back into
// them, results compared.
//
// How to run:  muster-accept-gpu training (kernels/gpu/training.cc)
// Reference:   kernels/training/digits.h, the same source for the host's compiler; kernels/training/block.cc
//              runs the whole load on a CPU.
// Structure:   an element per thread and step, grid-stride; bound by memory, and small compared with the
//              products.
// Ran on:      one H200, one H100 (bench/results).
#include "kernels/gpu/device.h"

namespace muster::kernels::gpu {
namespace {

using training::Placement;

constexpr int kThreads = 256;

int blocks_for(size_t items) {
  const size_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks > 65536 ? 65536 : blocks);
}
__device__ size_t first_item() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ size_t stride() { return static_cast<size_t>(gridDim.x) * blockDim.x; }

__global__ void digits_kernel(uint16_t* to, const uint16_t* of, Placement at, uint64_t layer, uint64_t kind) {
  for (size_t i = first_item(); i < at.rows * at.columns; i += stride()) {
    const training::Place place = training::place_of(at, i / at.columns, i % at.columns);
    float value = training::digit(training::key(layer, kind, place.row, place.column));
    if (of) value = training::folded(value + from_bf16(of[i]));
    to[i] = to_bf16(value);
  }
}

__global__ void fold_kernel(uint16_t* to, const float* from, Folding what) {
  const size_t each = what.rows * what.columns;
  for (size_t i = first_item(); i < what.batches * each; i += stride()) {
    const size_t inside = i % each;
    to[i / each * what.to_step + inside / what.columns * what.to_row + inside % what.columns] =
        to_bf16(training::folded(from[i]));
  }
}

__global__ void fold_sum_kernel(uint16_t* to, const uint16_t* a, const float* b, size_t count) {
  for (size_t i = first_item(); i < count; i += stride())
    to[i] = to_bf16(training::folded(from_bf16(a[i]) + b[i]));
}

__global__ void count_wrong_kernel(const float* got, Placement at, const float* whole, size_t whole_columns,
                                   float factor, unsigned long long* wrong) {
  unsigned long long here = 0;
  for (size_t i = first_item(); i < at.rows * at.columns; i += stride()) {
    const training::Place place = training::place_of(at, i / at.columns, i % at.columns);
    here +=
        __float_as_uint(got[i]) != __float_as_uint(factor * whole[place.row * whole_columns + place.column]);
  }
  if (here > 0) atomicAdd(wrong, here);
}

}  // namespace

cudaError_t write_digits(void* to, const void* of, const Placement& at, uint64_t layer, uint64_t kind,
                         cudaStream_t stream) {
  digits_kernel<<<blocks_for(at.rows * at.columns), kThreads, 0, stream>>>(
      static_cast<uint16_t*>(to), static_cast<const uint16_t*>(of), at, layer, kind);
  return cudaGetLastError();
}

cudaError_t fold(void* to, const float* from, const Folding& what, cudaStream_t stream) {
  fold_kernel<<<blocks_for(what.batches * what.rows * what.columns), kThreads, 0, stream>>>(
      static_cast<uint16_t*>(to), from, what);
  return cudaGetLastError();
}

cudaError_t fold_sum(void* to, const void* a, const float* b, size_t count, cudaStream_t stream) {
  fold_sum_kernel<<<blocks_for(count), kThreads, 0, stream>>>(static_cast<uint16_t*>(to),
                                                              static_cast<const uint16_t*>(a), b, count);
  return cudaGetLastError();
}

cudaError_t count_wrong(const float* got, const Placement& at, const float* whole, size_t whole_columns,
                        float factor, unsigned long long* wrong, cudaStream_t stream) {
  count_wrong_kernel<<<blocks_for(at.rows * at.columns), kThreads, 0, stream>>>(got, at, whole, whole_columns,
                                                                                factor, wrong);
  return cudaGetLastError();
}

}  // namespace muster::kernels::gpu
