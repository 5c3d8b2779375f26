// Finds what is on a disk (partition tables, file systems, RAID, LVM, ZFS, Ceph, ...) by its magic bytes.
//
// Reads, never writes. A disk with any finding is not blank; bytes that match no known format count as well
// ("unknown data"), because a wipe cannot be undone.
// The hash covers partition tables, types, labels, UUIDs and positions, not the changing parts of a
// superblock: it stays the same while a file system is merely used, and changes when something is made,
// removed or replaced. For unknown data it covers the bytes themselves: the first and last mebibyte of a
// partition, and of a disk all places listed in look.h. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/disk/block_device.h"
#include "agent/disk/gpt.h"
#include "agent/disk/marker.h"
#include "base/result.h"

namespace muster {

// Reads MBR partition tables without a tool: the four primary entries and the chain of logical partitions in
// an extended one. Muster does not write them; it must show the content of a disk, and detect changes. Thread
// safety: stateless functions.

struct MbrPartition {
  int number = 0;  // 1 to 4: primary; from 5 on: logical, in the order of the chain
  int type = 0;
  uint64_t start = 0;  // bytes
  uint64_t size = 0;   // bytes; cut off at the end of the disk, as the kernel does
};

struct MbrTable {
  std::string raw;                       // bytes 440 to 511: the disk's id, the raw entries, the signature
  std::vector<MbrPartition> partitions;  // without extended partitions, and without those outside the disk
  bool damaged = false;                  // the chain of logical partitions is broken, circular, or too long
};

// not_found: there is no table, or its only entry is a GPT's protective one. failed: a part of the table
// cannot be read. At most 60 links of the chain are followed.
Result<MbrTable> read_mbr(const BlockDevice& disk);

// The type of a signature for unknown bytes.
inline constexpr char kUnknownData[] = "unknown data";

// Prefix of the type of a leftover signature: one in a first partition that is no longer in a table, or in a
// second superblock. "remains of btrfs at 1 MiB". Never used for muster's own intact data.
inline constexpr char kRemains[] = "remains of ";
bool is_remains(const std::string& type);

struct Signature {
  // blkid's names: ext4, xfs, vfat, linux_raid_member, LVM2_member, zfs_member, ceph_bluestore ...
  std::string type;
  std::string label = {};
  std::string uuid = {};
  uint64_t start = 0;  // start of the region (whole disk or partition) in which it was found, bytes
  // Details of an array member, "level=raid0 devices=2"; not part of the hash.
  std::string detail = {};
  // For a file system on several devices (btrfs): the number of this device; not part of the hash.
  std::string device = {};
};

struct DiskContent {
  GptTable gpt = {};                       // empty without one
  std::optional<MbrTable> mbr = {};        // an MBR table with at least one entry; also next to a GPT
  std::optional<ImageMarker> marker = {};  // of a system that muster wrote
  std::vector<Signature> signatures = {};  // of the whole disk and of every partition
  bool blank = false;                      // no table, no signature, and nothing in the close look (look.h)
  std::string summary = {};                // one line of text
  std::string hash = {};                   // "sha256:<hex>"
};

// Code::failed if a relevant part cannot be read: an unreadable disk is not a blank one.
Result<DiskContent> probe_disk(const BlockDevice& disk);
// Returns the signatures of a region; kUnknownData, with a digest, if it has none and is not empty.
Result<std::vector<Signature>> probe_region(const BlockDevice& disk, uint64_t start, uint64_t size);
// True if the close look (look.h) finds nothing in the region.
Result<bool> is_blank(const BlockDevice& disk, uint64_t start, uint64_t size);

}  // namespace muster
