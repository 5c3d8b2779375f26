// The close look: what is read of a region before it counts as blank, which leftovers are recognized in it,
// and what muster zeroes so that they are not found again. One list of places for all three, so that a region
// wiped by muster counts as blank.
//
// The places: both ends, 34 MiB each (a first partition's data after its table is gone, a RAID controller's
// metadata, a stripe without metadata), and where file systems keep copies of their superblock, of the region
// itself and of a first partition at 1 MiB in it: ext2/3/4 in block groups 1, 3 and 5, btrfs at 64 MiB and
// 256 GiB, XFS in its second allocation group. Data elsewhere is not found. Thread: plain functions over a
// BlockDevice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/disk/block_device.h"
#include "base/result.h"

namespace muster {

inline constexpr uint64_t kLookEnds = 34 << 20;

struct Extent {
  uint64_t start = 0, size = 0;  // bytes
};
// Of the region from `start` on: in order, apart from each other, inside it.
std::vector<Extent> looked_at(uint64_t start, uint64_t size);

// A superblock whose file system can no longer be found at its usual place.
struct Remains {
  std::string type, label, uuid;
  uint64_t at = 0;  // of the superblock, bytes from the beginning of the disk
};
struct Look {
  bool quiet = true;                  // each place contains only zeros, or only ones
  std::vector<Remains> remains = {};  // the first of each type
  std::string digest = {};            // of all that was read; empty when quiet
};
Result<Look> look_closely(const BlockDevice& disk, uint64_t start, uint64_t size);

// Zeroes every place of looked_at(), the beginning of the region last: as long as that is there, an
// interrupted wipe still shows what was approved. Writes only where data is, in pieces, and syncs.
Status wipe_looked_at(const BlockDevice& disk, uint64_t start, uint64_t size);

}  // namespace muster
