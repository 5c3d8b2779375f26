// Marker: what muster noted on the OS disk about its own work there. A checksummed block between the
// partition table and the first partition, twice; survives a power cut, where the RAM system's journal does
// not.
//
// Written before a disk is touched (stage "writing") and after the loader entry is installed ("done"); for
// each root slot also before and after it alone is written, beside the running system. The second copy is
// written first, each with a higher number than any before: whatever is cut off, one of them is whole, and
// it is what was there before or what was to be. The first is the one that earlier versions know; one
// without a number was written by such a version, knows of nothing that the second copy holds, and counts.
// Thread: plain functions over a BlockDevice.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/disk/block_device.h"
#include "base/result.h"

namespace muster {

inline constexpr uint64_t kMarkerOffset = 512 << 10;
inline constexpr size_t kMarkerSize = 4096;  // of one copy
inline constexpr uint64_t kSecondMarkerOffset = kMarkerOffset + kMarkerSize;
inline constexpr uint64_t kMarkersEnd = kSecondMarkerOffset + kMarkerSize;

// What lies in one root slot.
inline constexpr const char* kSlotWriting = "writing";
inline constexpr const char* kSlotWritten = "written";
struct SlotNote {
  std::string image = {}, digest = {};
  std::string stage = {};    // writing | written
  std::string address = {};  // of the node in it, "10.20.0.11/24"
  std::string order = {};    // whose work it is, without the attempt
  bool trial = false;        // ImageManifest::trial; false also where an earlier version wrote the note
};

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
  std::map<std::string, SlotNote> slots = {};  // "a", "b": those that were written
  uint64_t serial = 0;                         // which of two is the later; write_marker() counts on
};

// The later of those copies that are intact. not_found: none is.
Result<ImageMarker> read_marker(const BlockDevice& disk);
Status write_marker(const BlockDevice& disk, const ImageMarker& marker);  // and syncs, between the copies too

}  // namespace muster
