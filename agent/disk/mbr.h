// Reads MBR partition tables without a tool: the four primary entries and the chain of logical partitions in
// an extended one. Muster does not write them; it must show the content of a disk, and detect changes. Thread
// safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/disk/block_device.h"
#include "base/result.h"

namespace muster {

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

}  // namespace muster
