// The data layout of muster's own matrix products: which tile a block computes, where its bytes are in shared
// memory, which thread holds which element. C = A B with A row-major [M][K] and B stored transposed [N][K]:
// both with K innermost, so bf16 and fp8 differ only in the number of bytes per element, and all offsets
// along K below are in bytes.
//
// The kernels and the tests (tests/unit/kernels/gpu_tiles_test.cc computes a whole product on the host) use
// these functions. Source of the fragment layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16",
// "mma.m16n8k32" and "Register Fragments and Shared Memory Matrix Layouts for wgmma". Stateless functions.
#pragma once

#include "kernels/cpu/exact.h"

namespace muster::kernels::gpu {

constexpr int kRowBytes = 128;  // row of a tile in shared memory, along K: 64 bf16 or 128 fp8 elements
constexpr int kChunk = 16;      // bytes per cp.async, and per row of an ldmatrix 8x8 matrix
constexpr int kStepBytes = 32;  // bytes along K per tensor core instruction: 16 bf16 or 32 fp8 elements

// Returns the swizzled offset in a tile with rows of 128 bytes: chunk numbers are xored with the row number
// modulo 8, so that the same chunk of eight rows is in eight different bank groups. Equals the 128-byte
// swizzle of the tensor memory accelerator for tiles that begin at a multiple of 1024 bytes.
MUSTER_BOTH int swizzled(int row, int byte) {
  return row * kRowBytes + ((((byte / kChunk) ^ (row & 7)) * kChunk) | (byte % kChunk));
}

struct Place {
  int row = 0, column = 0;
};

// --- mma.sync: 128 x 128 tile, 8 warps as 2 x 4, each 64 x 32
constexpr int kMmaTile = 128, kMmaThreads = 256, kMmaStages = 3;
constexpr int kWarpRows = 64, kWarpColumns = 32;
constexpr int kRowBlocks = kWarpRows / 16, kColumnBlocks = kWarpColumns / 8;
constexpr int kMmaStageBytes = 2 * kMmaTile * kRowBytes;

MUSTER_BOTH Place warp_origin(int warp) { return {warp / 4 * kWarpRows, warp % 4 * kWarpColumns}; }
// The 16 bytes of a 128-row operand tile that a thread copies with copy `i` (0 ... 3); 8 threads copy a row.
MUSTER_BOTH Place copy_place(int thread, int i) {
  const int chunk = thread + i * kMmaThreads;
  return {chunk / 8, chunk % 8 * kChunk};  // column: byte
}
// Returns the row address that a lane passes to ldmatrix.x4, within a 16-row block of A: matrices 0 and 1 are
// the upper and lower eight rows of the first 16 bytes, 2 and 3 those of the second, in the order a0 ... a3.
MUSTER_BOTH Place a_address(int lane) { return {lane % 16, lane / 16 * kChunk}; }
// Likewise for two adjacent 8-column blocks of B: registers b0, b1 of the first, then of the second block.
MUSTER_BOTH Place b_address(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2 * kChunk}; }
// Returns the place of a lane's accumulator `i` (0 ... 3) in a 16 x 8 block.
MUSTER_BOTH Place c_place(int lane, int i) { return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2}; }

// --- wgmma: 128 x N tile, two consumer warpgroups of 64 rows each
constexpr int kHopperRows = 128;
constexpr int kHopperThreads = 384;  // warpgroup 0 loads, 1 and 2 multiply
// Place of accumulator `i` (0 ... N/2 - 1) of thread `t` (0 ... 127) in a consumer warpgroup's 64 x N block.
MUSTER_BOTH Place wgmma_place(int t, int i) {
  return {t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, i / 4 * 8 + t % 4 * 2 + i % 2};
}
// Shared memory matrix descriptor of a K-major operand with 128-byte swizzle: address / 16 in bits 0-13,
// leading offset (unused with this swizzle) in 16-29, offset between groups of eight rows (1024 bytes) in
// 32-45, swizzle mode 1 in 62-63.
MUSTER_BOTH uint64_t wgmma_descriptor(uint32_t shared_address) {
  return ((shared_address & 0x3ffffu) >> 4) | (uint64_t{1} << 16) | (uint64_t{1024 >> 4} << 32) |
         (uint64_t{1} << 62);
}

// --- order of the tiles
// Tiles are visited in groups of `kGroup` rows, column by column, so that blocks that run at the same time
// share operands in the L2 cache. `rotation` shifts which block gets which tile, so that the errors of a
// faulty multiprocessor move to other tiles.
constexpr int kGroup = 8;
MUSTER_BOTH Place tile_place(int index, int rows, int columns, int rotation) {
  const int all = rows * columns;
  index = (index + rotation % all) % all;
  const int per_group = kGroup * columns, group = index / per_group, inside = index % per_group;
  const int height = rows - group * kGroup < kGroup ? rows - group * kGroup : kGroup;
  return {group * kGroup + inside % height, inside / height};
}

// --- The canary: a small product that every multiprocessor computes with its tensor cores, and the correct
// digest. Integers, so that plain arithmetic on the host gives it. Eight warps compute a 16 x 8 block each,
// with K = 512; each element is a function of the seed and its place alone.
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
