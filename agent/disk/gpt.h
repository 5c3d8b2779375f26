// Reads and writes GUID partition tables without a tool or a delay, on a disk or on a plain file in a test.
// Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/disk/block_device.h"
#include "base/result.h"

namespace muster {

// Type GUIDs as text, lower case.
inline constexpr const char* kTypeEsp = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b";
inline constexpr const char* kTypeLinux = "0fc63daf-8483-4772-8e79-3d69d8477de4";
inline constexpr const char* kTypeRootX86 = "4f68bce3-e8cd-4db1-96e7-fbcaf984b709";

struct GptPartition {
  int number = 0;      // 1-based
  std::string type;    // GUID text
  std::string guid;    // PARTUUID
  std::string name;    // UTF-8
  uint64_t start = 0;  // bytes
  uint64_t size = 0;   // bytes
};

struct GptTable {
  std::string disk_guid;
  std::vector<GptPartition> partitions;
  bool from_backup = false;  // the primary table is missing or broken
  const GptPartition* named(const std::string& name) const;
};

// Returns the table; not_found: neither copy is valid. Both copies are checked by CRC.
Result<GptTable> read_gpt(const BlockDevice& disk);
// Writes the backup copy, then the primary one with the protective MBR, and syncs. Sizes must be multiples of
// the logical block size.
Status write_gpt(const BlockDevice& disk, const GptTable& table);
std::string random_guid();
uint32_t crc32(const std::string& bytes);

}  // namespace muster
