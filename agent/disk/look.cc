#include "agent/disk/look.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "agent/disk/text.h"
#include "base/digest.h"

namespace muster {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30, kTiB = kGiB << 10;
constexpr uint64_t kPiece = kMiB;  // read at once
constexpr uint64_t kBlock = 512;   // superblocks begin at multiples of it

// Where second superblocks begin, relative to the beginning of the file system. A block group of ext4 has as
// many blocks as a block has bits: with blocks of 1 and 2 KiB, group 1 is within the first 34 MiB.
std::vector<uint64_t> copies(uint64_t size) {
  std::vector<uint64_t> out = {64 * kMiB,  256 * kGiB,  // btrfs
                               128 * kMiB, 384 * kMiB, 640 * kMiB,
                               96 * kMiB,  160 * kMiB, 32 * kGiB};  // ext: 4 KiB, 2 KiB, 64 KiB blocks
  // XFS: 4 allocation groups, or 8, 16, 32 with a stripe; of 1 TiB each if it is larger than 4 TiB.
  for (const uint64_t groups : {4, 8, 16, 32}) out.push_back(size / groups);
  out.push_back(kTiB);
  return out;
}

// Bytes read around each copy: also covers the copy in a partition that begins at 1 MiB, and rounded sizes.
constexpr uint64_t kBefore = 64 * kKiB, kAround = kMiB + 128 * kKiB;

bool is_uniform(const std::string& bytes, char byte) {
  return bytes.empty() ||
         (bytes[0] == byte && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

uint32_t number_at(std::string_view block, size_t at) {
  uint32_t n = 0;
  std::memcpy(&n, block.data() + at, sizeof n);
  return n;
}

// Recognizes a superblock at the start of `block`, which has 4 KiB unless the data ends earlier. Two magic
// bytes occur by chance in any file, so adjacent fields are checked as well.
bool identify(std::string_view block, Remains& out) {
  if (block.substr(0, 4) == "XFSB"sv && number_at(block, 4) != 0) {
    out = {"xfs", text_at(block, 0x6c, 12), uuid_at(block, 0x20)};
    return true;
  }
  if (block.size() >= 4096 && block.substr(0x40, 8) == "_BHRfS_M"sv) {
    out = {"btrfs", text_at(block, 0x12b, 64), uuid_at(block, 0x20)};
    return true;
  }
  if (block.substr(0x38, 2) == "\x53\xef"sv && number_at(block, 0x18) <= 6 && number_at(block, 0x4c) <= 1 &&
      number_at(block, 0) != 0 && number_at(block, 0x20) != 0) {
    out = {ext_type(block.substr(0x5c, 12)), text_at(block, 0x78, 16), uuid_at(block, 0x68)};
    return true;
  }
  return false;
}

void find_remains(const std::string& bytes, uint64_t start, std::vector<Remains>& out) {
  for (size_t at = 0; at + kBlock <= bytes.size(); at += kBlock) {
    Remains found;
    if (!identify(std::string_view(bytes).substr(at, 4096), found)) continue;
    found.at = start + at;
    if (std::none_of(out.begin(), out.end(), [&](const Remains& r) { return r.type == found.type; }))
      out.push_back(std::move(found));
  }
}

// Zeroes from end to beginning, in pieces: 256 MiB at once would exceed an emulated drive's timeout.
Status zero_extent(const BlockDevice& disk, const Extent& extent) {
  for (uint64_t left = extent.size; left > 0;) {
    const uint64_t size = std::min(kPiece, left), at = extent.start + left - size;
    left -= size;
    TRY(const std::string bytes, disk.read_at(at, size));
    if (!is_uniform(bytes, '\0')) TRY_(disk.zero(at, size));
  }
  return disk.sync();
}

}  // namespace

std::vector<Extent> looked_at(uint64_t start, uint64_t size) {
  const uint64_t ends = std::min(size, kLookEnds);
  std::vector<Extent> wanted = {{0, ends}, {size - ends, ends}};
  for (const uint64_t at : copies(size))
    if (at < size && at >= kBefore) wanted.push_back({at - kBefore, std::min(kAround, size - at + kBefore)});
  std::sort(wanted.begin(), wanted.end(), [](const Extent& a, const Extent& b) { return a.start < b.start; });
  std::vector<Extent> out;
  for (const Extent& e : wanted) {
    if (e.size == 0) continue;
    // Rounds to 4 KiB: whole blocks on every disk.
    const uint64_t from = e.start / 4096 * 4096, to = std::min(size, (e.start + e.size + 4095) / 4096 * 4096);
    const uint64_t end = out.empty() ? 0 : out.back().start + out.back().size;
    if (!out.empty() && from <= end)
      out.back().size = std::max(end, to) - out.back().start;
    else
      out.push_back({from, to - from});
  }
  for (Extent& e : out) e.start += start;
  return out;
}

Result<Look> look_closely(const BlockDevice& disk, uint64_t start, uint64_t size) {
  Look look;
  Sha256 digest;
  for (const Extent& extent : looked_at(start, size)) {
    TRY(const std::string first, disk.read_at(extent.start, 1));
    const bool may_be_quiet = first[0] == '\0' || first[0] == '\xff';
    for (uint64_t at = extent.start; at < extent.start + extent.size; at += kPiece) {
      TRY(const std::string bytes, disk.read_at(at, std::min(kPiece, extent.start + extent.size - at)));
      digest.update(fmt::format("{}:", at));
      if (may_be_quiet && is_uniform(bytes, first[0])) {
        digest.update(first);
        continue;
      }
      look.quiet = false;
      digest.update(bytes);
      find_remains(bytes, at, look.remains);
    }
  }
  if (!look.quiet) look.digest = digest.finish();
  return look;
}

Status wipe_looked_at(const BlockDevice& disk, uint64_t start, uint64_t size) {
  const auto places = looked_at(start, size);
  for (size_t i = places.size(); i-- > 0;) TRY_(zero_extent(disk, places[i]));
  return Ok{};
}

}  // namespace muster
