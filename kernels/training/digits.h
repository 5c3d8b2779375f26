// The numbers in the training load, one source for the host and the GPU compiler: the elements of weights,
// inputs and targets, the place of a part's element within the whole matrix, and the fold that replaces a
// network's non-linearity (block.h). Thread safety: stateless functions.
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

// Returns the key of an element for digit(). `layer`: for inputs and targets, the number of the sequence.
MUSTER_HOST_DEVICE uint64_t key(uint64_t layer, uint64_t kind, size_t row, size_t column) {
  return ((layer * 8 + kind) << 44) ^ (row << 22) ^ column;
}

// -1, 0 or 1 with equal probability, from `place` alone: equal on every machine (splitmix64's finalizer).
MUSTER_HOST_DEVICE float digit(uint64_t place) {
  place += 0x9e3779b97f4a7c15;
  place = (place ^ (place >> 30)) * 0xbf58476d1ce4e5b9;
  place = (place ^ (place >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>(static_cast<int>((place ^ (place >> 31)) % 3) - 1);
}

// Returns v modulo 3 as -1, 0 or 1. Exact for whole numbers below 2^20: the quotient is at least a sixth away
// from a rounding boundary, and its error is far smaller, whether the compiler rounds the product before the
// sum or not.
MUSTER_HOST_DEVICE float folded(float v) {
  constexpr float third = 1.0F / 3;
  // 1.5 x 2^23: adding it rounds to an integer; rint() would need SSE4.1.
  constexpr float round = 12582912;
  const float quotient = (v * third + round) - round;
  return v - 3 * quotient;
}

// The place of a part's matrix within the whole one: its columns are blocks of `width` columns, `model` apart
// (several blocks for QKV only).
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
