// The close look: what is read of a region before it counts as blank, which leftovers are recognized there,
// and what muster zeroes so that they are not found again. All three use one list of places, so that a region
// wiped by muster counts as blank.
//
// The places: both ends, 34 MiB each (data of a first partition whose table is gone, a RAID controller's
// metadata, a stripe without metadata), and the positions where file systems keep copies of their superblock,
// both for the region itself and for a first partition at 1 MiB in it: ext2/3/4 in block groups 1, 3 and 5,
// btrfs at 64 MiB and 256 GiB, XFS in its second allocation group. Data elsewhere is not found. Thread
// safety: stateless functions.
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
// The places of the region that begins at `start`: ordered, disjoint, inside the region.
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

// Zeroes every place of looked_at(), the beginning of the region last, so that an interrupted wipe still
// shows the approved content. Writes only where there is data, in pieces, and syncs.
Status wipe_looked_at(const BlockDevice& disk, uint64_t start, uint64_t size);

}  // namespace muster
