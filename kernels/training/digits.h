// The numbers of the training-shaped load, one source for the host's and the GPU's compiler: what an element
// of a weight, an input or a target is, where a part's element lies in the whole matrix, and the fold that
// stands for a network's non-linearity (block.h). Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define MUSTER_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define MUSTER_HOST_DEVICE inline
#endif

namespace muster::training {

enum Kind : uint64_t { kQkv, kOut, kUp, kDown, kInput, kTarget };

// `layer`: of inputs and targets the number of the sequence.
MUSTER_HOST_DEVICE uint64_t key(uint64_t layer, uint64_t kind, size_t row, size_t column) {
  return ((layer * 8 + kind) << 44) ^ (row << 22) ^ column;
}

// A third of all numbers each: -1, 0, 1. The same for the same place, on every machine (splitmix64's
// finalizer).
MUSTER_HOST_DEVICE float digit(uint64_t place) {
  place += 0x9e3779b97f4a7c15;
  place = (place ^ (place >> 30)) * 0xbf58476d1ce4e5b9;
  place = (place ^ (place >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>(static_cast<int>((place ^ (place >> 31)) % 3) - 1);
}

// The remainder of three that is nearest to zero. Exact for whole numbers below 2^20: the quotient is at
// least a third away from the next half, and its error is far smaller, whether the compiler rounds the
// product before the sum or not.
MUSTER_HOST_DEVICE float folded(float v) {
  constexpr float third = 1.0F / 3;
  constexpr float round =
      12582912;  // 1.5 x 2^23: adding it rounds to a whole number, without the SSE4.1 that rint() needs
  const float quotient = (v * third + round) - round;
  return v - 3 * quotient;
}

// A part's matrix inside the whole one: its columns are blocks of `width` (one block, unless it is QKV),
// `model` apart.
struct Placement {
  size_t rows = 0, columns = 0;  // of the part
  size_t first_row = 0, first_column = 0;
  size_t width = 0, model = 0;  // width 0: one block
};
struct Place {
  size_t row, column;
};
MUSTER_HOST_DEVICE Place place_of(const Placement& p, size_t row, size_t column) {
  if (p.width == 0) return {p.first_row + row, p.first_column + column};
  return {p.first_row + row, column / p.width * p.model + p.first_column + column % p.width};
}

}  // namespace muster::training
