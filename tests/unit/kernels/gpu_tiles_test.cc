// The index arithmetic of the own matrix products, walked on the host: a block's threads, one after the
// other, copy, load and multiply with the functions the kernels use, and the product is right. What the
// instructions do is written here from the PTX ISA.
#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "kernels/gpu/tiles.h"
#include "tests/catch.h"

using namespace muster::kernels::gpu;

namespace {

// K-innermost matrix of small integers, in bytes: bf16 or e4m3.
std::vector<uint8_t> operand(int rows, int row_bytes, bool fp8, uint64_t seed) {
  std::vector<uint8_t> out(static_cast<size_t>(rows * row_bytes));
  for (size_t i = 0; i < out.size() / (fp8 ? 1 : 2); ++i) {
    const auto value = static_cast<float>(integer_at(seed, i, 7));
    if (fp8) {
      out[i] = to_e4m3(value);
    } else {
      const uint16_t bits = to_bf16(value);
      std::memcpy(&out[2 * i], &bits, 2);
    }
  }
  return out;
}
float element(const uint8_t* at, bool fp8) {
  if (fp8) return from_e4m3(*at);
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return from_bf16(bits);
}

using Registers = std::array<std::array<std::array<uint8_t, 4>, 4>, 32>;  // [lane][register][byte]

// ldmatrix.x4: lane 8 m + r gives the address of row r of matrix m; lane l receives bytes 4 (l % 4) ... of
// row l / 4 of each.
Registers load_matrices(const std::vector<uint8_t>& shared, const std::array<int, 32>& addresses) {
  Registers out = {};
  for (int lane = 0; lane < 32; ++lane)
    for (int m = 0; m < 4; ++m)
      std::memcpy(out[lane][m].data(),
                  &shared[static_cast<size_t>(addresses[8 * m + lane / 4] + lane % 4 * 4)], 4);
  return out;
}

// The value at (row, byte of K) of an A fragment, and at (byte of K, column) of a B fragment, by the tables
// of mma.m16n8k16 (bf16) and mma.m16n8k32 (e4m3): in bytes both are the same.
const uint8_t* a_value(const Registers& a, int row, int byte) {
  const int lane = row % 8 * 4 + byte % 16 / 4, which = row / 8 + byte / 16 * 2;
  return &a[lane][which][byte % 4];
}
const uint8_t* b_value(const Registers& b, int first, int byte, int column) {
  const int lane = column * 4 + byte % 16 / 4;
  return &b[lane][first + byte / 16][byte % 4];
}

std::vector<uint8_t> stage_of(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, int row_bytes,
                              int k) {
  std::vector<uint8_t> shared(kMmaStageBytes, 0xee);
  for (int thread = 0; thread < kMmaThreads; ++thread)
    for (int i = 0; i < 4; ++i) {
      const Place at = copy_place(thread, i);
      const size_t from = static_cast<size_t>(at.row * row_bytes + k + at.column);
      std::memcpy(&shared[static_cast<size_t>(swizzled(at.row, at.column))], &a[from], kChunk);
      std::memcpy(&shared[static_cast<size_t>(kMmaTile * kRowBytes + swizzled(at.row, at.column))], &b[from],
                  kChunk);
    }
  return shared;
}

std::array<int, 32> addresses_of(bool second, int row, int step) {
  std::array<int, 32> out = {};
  for (int lane = 0; lane < 32; ++lane) {
    const Place at = second ? b_address(lane) : a_address(lane);
    out[static_cast<size_t>(lane)] =
        (second ? kMmaTile * kRowBytes : 0) + swizzled(row + at.row, step + at.column);
  }
  return out;
}

// One warp's share of one stage, added to the tile.
void multiply_stage(const std::vector<uint8_t>& shared, int warp, bool fp8, std::vector<float>& tile) {
  const Place origin = warp_origin(warp);
  const int size = fp8 ? 1 : 2;
  for (int step = 0; step < kRowBytes; step += kStepBytes)
    for (int i = 0; i < kRowBlocks; ++i) {
      const Registers a = load_matrices(shared, addresses_of(false, origin.row + i * 16, step));
      for (int j = 0; j < kColumnBlocks; ++j) {
        const Registers b = load_matrices(shared, addresses_of(true, origin.column + j / 2 * 16, step));
        for (int lane = 0; lane < 32; ++lane)
          for (int c = 0; c < 4; ++c) {
            const Place at = c_place(lane, c);
            float& sum = tile[static_cast<size_t>((origin.row + i * 16 + at.row) * kMmaTile + origin.column +
                                                  j * 8 + at.column)];
            for (int byte = 0; byte < kStepBytes; byte += size)
              sum += element(a_value(a, at.row, byte), fp8) *
                     element(b_value(b, j % 2 * 2, byte, at.column), fp8);
          }
      }
    }
}

}  // namespace

TEST_CASE("gpu tiles: the walk of the mma.sync kernel makes the right product, bf16 and fp8", "[gpu]") {
  for (const bool fp8 : {false, true}) {
    constexpr int kBytes = 2 * kRowBytes;  // two stages
    const auto a = operand(kMmaTile, kBytes, fp8, 1), b = operand(kMmaTile, kBytes, fp8, 2);
    std::vector<float> tile(kMmaTile * kMmaTile);
    for (int k = 0; k < kBytes; k += kRowBytes) {
      const auto shared = stage_of(a, b, kBytes, k);
      REQUIRE(std::count(shared.begin(), shared.end(), 0xee) ==
              0);  // 0xee is no bf16 or e4m3 byte of a small integer
      for (int warp = 0; warp < kMmaThreads / 32; ++warp) multiply_stage(shared, warp, fp8, tile);
    }
    size_t wrong = 0;
    const int size = fp8 ? 1 : 2;
    for (int i = 0; i < kMmaTile; ++i)
      for (int j = 0; j < kMmaTile; ++j) {
        float right = 0;
        for (int byte = 0; byte < kBytes; byte += size)
          right += element(&a[static_cast<size_t>(i * kBytes + byte)], fp8) *
                   element(&b[static_cast<size_t>(j * kBytes + byte)], fp8);
        wrong += tile[static_cast<size_t>(i * kMmaTile + j)] != right;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("gpu tiles: eight rows of an ldmatrix lie in eight different bank groups", "[gpu]") {
  for (int step = 0; step < kRowBytes; step += kStepBytes)
    for (const bool second : {false, true}) {
      const auto addresses = addresses_of(second, 16, step);
      for (int m = 0; m < 4; ++m) {
        std::set<int> banks;
        for (int row = 0; row < 8; ++row) {
          CHECK(addresses[static_cast<size_t>(8 * m + row)] % 16 == 0);
          banks.insert(addresses[static_cast<size_t>(8 * m + row)] % 128 / 16);
        }
        CHECK(banks.size() == 8);
      }
    }
}

TEST_CASE("gpu tiles: every sum of a wgmma block has one thread, and neighbours are neighbours", "[gpu]") {
  for (const int columns : {128, 256}) {
    std::set<std::pair<int, int>> seen;
    for (int thread = 0; thread < 128; ++thread)
      for (int i = 0; i < columns / 2; ++i) {
        const Place at = wgmma_place(thread, i);
        CHECK(at.row / 16 == thread / 32);  // a warp has its own sixteen rows
        if (i % 2 == 1)
          CHECK((at.row == wgmma_place(thread, i - 1).row &&
                 at.column == wgmma_place(thread, i - 1).column + 1));
        seen.insert({at.row, at.column});
      }
    CHECK(seen.size() == static_cast<size_t>(64 * columns));
    CHECK(seen.rbegin()->first == 63);
    CHECK(seen.rbegin()->second == columns - 1);
  }
  // The first warp's first sums, as the PTX ISA draws them.
  CHECK((wgmma_place(0, 2).row == 8 && wgmma_place(0, 2).column == 0));
  CHECK((wgmma_place(5, 4).row == 1 && wgmma_place(5, 4).column == 10));
}

TEST_CASE("gpu tiles: the descriptor of a swizzled operand", "[gpu]") {
  const uint64_t d = wgmma_descriptor(0x2400);
  CHECK((d & 0x3fff) == 0x240);
  CHECK(((d >> 32) & 0x3fff) == 64);
  CHECK((d >> 62) == 1);
  CHECK((wgmma_descriptor(0x2400 + kStepBytes) & 0x3fff) == 0x242);
  CHECK(wgmma_descriptor(227 * 1024) >> 62 ==
        1);  // the last address a block can have does not reach other fields
}

TEST_CASE("gpu tiles: every tile is made once, whatever the rotation", "[gpu]") {
  for (const auto& [rows, columns] : {std::pair{64, 32}, {5, 3}, {8, 1}, {1, 7}, {19, 4}})
    for (const int rotation : {0, 1, 13, 1000}) {
      std::set<std::pair<int, int>> seen;
      for (int i = 0; i < rows * columns; ++i) {
        const Place at = tile_place(i, rows, columns, rotation);
        CHECK((at.row >= 0 && at.row < rows && at.column >= 0 && at.column < columns));
        seen.insert({at.row, at.column});
      }
      CHECK(seen.size() == static_cast<size_t>(rows * columns));
    }
  const Place first = tile_place(0, 64, 32, 0), rotated = tile_place(0, 64, 32, 13);
  CHECK((first.row != rotated.row || first.column != rotated.column));
}

TEST_CASE("gpu tiles: the canary's digest is that of its product, and notices one wrong sum", "[gpu]") {
  const CanaryDigest right = canary_digest(5);
  CHECK(right.sum != canary_digest(6).sum);
  std::set<uint64_t> positions;
  for (int warp = 0; warp < kCanaryWarps; ++warp)
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i)
        positions.insert(canary_position(warp, c_place(lane, i).row, c_place(lane, i).column));
  CHECK(positions.size() == kCanaryWarps * 16 * 8);  // what the threads hold is all of it
  // Exact in the tensor core: every partial sum is an integer far below 2^24.
  CHECK(kCanaryDepth * kCanaryMost * kCanaryMost < 1 << 24);
}
