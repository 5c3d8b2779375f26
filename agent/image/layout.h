// The partitions of an OS disk: muster-esp, muster-root-a, muster-root-b, muster-state. Pure functions,
// except for the random ids.
#pragma once

#include <cstdint>
#include <string>

#include "agent/disk/gpt.h"
#include "base/result.h"

namespace muster {

// Returns a new table for a disk of that size. `root_size`: bytes of one root slot; 0: half of the space that
// ESP and state leave, at most 64 GiB. Code::invalid if the image (`raw_size` bytes) and some spare space
// do not fit into a slot.
Result<GptTable> make_layout(uint64_t disk_size, uint64_t raw_size, uint64_t root_size);
// True if the table has exactly these four partitions, and its primary copy is intact.
bool is_layout(const GptTable& table);
const GptPartition* slot_partition(const GptTable& table, const std::string& slot);  // "a" | "b"

}  // namespace muster
