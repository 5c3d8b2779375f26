// Marker: muster's record on the OS disk of its own work there. A checksummed block between the partition
// table and the first partition, stored twice; unlike the RAM system's journal it survives a power cut.
//
// Written before a disk is touched (stage "writing") and after the loader entry is installed ("done"); also
// before and after a single root slot is written while the system runs. The second copy is written first,
// and each copy gets a higher number than all earlier ones: after any interruption, one copy is complete,
// with the old or the new content. Earlier versions use only the first copy: if it has no number, such a
// version wrote it without updating the second, so the first takes precedence. Thread safety: stateless
// functions.
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

// The content of one root slot.
inline constexpr const char* kSlotWriting = "writing";
inline constexpr const char* kSlotWritten = "written";
struct NotedFile {
  uint64_t size = 0;  // 0: an earlier version wrote the record
  std::string sha256 = {};
};
struct SlotNote {
  std::string image = {}, digest = {};
  std::string stage = {};    // writing | written
  std::string address = {};  // of the node configured in it, "10.20.0.11/24"
  std::string order = {};    // the order that wrote it, without the attempt
  bool trial = false;        // ImageManifest::trial; false also if an earlier version wrote the record
  NotedFile kernel = {}, initrd = {};  // as written to the ESP
};

struct ImageMarker {
  std::string node;            // host name the disk belongs to
  std::string stage;           // writing | done
  std::string digest;          // image being written or written last
  std::string slot;            // a | b: its slot
  std::string current;         // slot the loader starts; empty before the first image is complete
  std::string approved;        // approved content hash: of the disk before the work began
  bool fresh = false;          // this work made the layout: ESP and state have no file systems yet
  std::string cluster = {};    // cluster of that node; empty: written by a version that did not record it
  std::string authority = {};  // fingerprint of the CA of the controller that wrote it; empty as above
  std::string order = {};      // the order's id without the attempt; empty as above
  std::map<std::string, SlotNote> slots = {};  // "a", "b": the written ones
  uint64_t serial = 0;                         // higher in the later copy; write_marker() adds 1
};

// The later intact copy. not_found: neither is intact.
Result<ImageMarker> read_marker(const BlockDevice& disk);
Status write_marker(const BlockDevice& disk, const ImageMarker& marker);  // syncs after each of the copies

}  // namespace muster
