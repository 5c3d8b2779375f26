// The canary: a small product that every multiprocessor computes with its tensor cores, and the digest that
// the result must have. Integers, so that plain arithmetic on the host gives the correct result.
//
// Eight warps compute a 16 x 8 block each, with K = 512; each element is a function of the seed and its place
// alone. Thread safety: stateless functions.
#pragma once

#include "kernels/gpu/tiles.h"

namespace muster::kernels::gpu {

constexpr int kCanaryWarps = 8, kCanaryDepth = 512, kCanaryMost = 7;

MUSTER_BOTH int canary_a(uint64_t seed, int warp, int row, int k) {
  return integer_at(seed, static_cast<uint64_t>((warp * 16 + row) * kCanaryDepth + k), kCanaryMost);
}
MUSTER_BOTH int canary_b(uint64_t seed, int warp, int column, int k) {
  return integer_at(~seed, static_cast<uint64_t>((warp * 8 + column) * kCanaryDepth + k), kCanaryMost);
}
MUSTER_BOTH uint64_t canary_position(int warp, int row, int column) {
  return static_cast<uint64_t>((warp * 16 + row) * 8 + column);
}

struct CanaryDigest {
  uint64_t sum = 0, mixed = 0;
};
inline CanaryDigest canary_digest(uint64_t seed) {
  CanaryDigest out;
  for (int warp = 0; warp < kCanaryWarps; ++warp)
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) {
        int sum = 0;
        for (int k = 0; k < kCanaryDepth; ++k)
          sum += canary_a(seed, warp, row, k) * canary_b(seed, warp, column, k);
        const uint64_t h =
            word_hash(canary_position(warp, row, column), bits_of_float(static_cast<float>(sum)));
        out.sum += h;
        out.mixed ^= word_mixed(h);
      }
  return out;
}

}  // namespace muster::kernels::gpu
