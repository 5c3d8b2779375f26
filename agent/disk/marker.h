// Marker: what muster noted on the OS disk about its own work there. One checksummed block between the
// partition table and the first partition; survives a power cut, where the RAM system's journal does not.
//
// Written before the disk is touched (stage "writing") and after the loader entry is installed ("done").
// Thread: plain functions over a BlockDevice.
#pragma once

#include <string>

#include "agent/disk/block_device.h"
#include "base/result.h"

namespace muster {

inline constexpr uint64_t kMarkerOffset = 512 << 10;
inline constexpr size_t kMarkerSize = 4096;

struct ImageMarker {
  std::string node;          // host name the disk belongs to
  std::string stage;         // writing | done
  std::string digest;        // image being written or written last
  std::string slot;          // a | b: where it goes or went
  std::string current;       // slot the loader starts; empty before the first image is complete
  std::string approved;      // content hash the work was approved for: what was on the disk before it began
  bool fresh = false;        // layout made by this work: ESP and state have no file systems yet
  std::string cluster = {};  // of that node; empty: written by a version that did not note it
  std::string authority =
      {};  // fingerprint of the CA of the controller that had it written; empty as above. Names can be equal
  std::string order = {};  // whose work it is: the order's id without the attempt; empty as above
};

// not_found: none, or not intact.
Result<ImageMarker> read_marker(const BlockDevice& disk);
Status write_marker(const BlockDevice& disk, const ImageMarker& marker);  // and syncs

}  // namespace muster
