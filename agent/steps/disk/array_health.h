// State of an md array, read from /sys/block/MD/md: cheap, read-only, never waits for a disk.
//
// The kernel also reports a new raid5 as `degraded` while it computes the last member from the others. So a
// rebuild in progress is not a problem, but one that stopped is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

// The minimum number of members that muster accepts for a RAID level. md allows fewer, but a raid5 of two
// disks and a raid10 of two or three are only mirrors.
size_t fewest_members(const std::string& level);
bool is_redundant_array(const std::string& level);

struct ArrayHealth {
  std::string level;                 // "raid5"; empty: not an array
  int members = 0;                   // number of members when it was created
  int lacking = 0;                   // number of members missing now
  std::vector<std::string> failed;   // kernel names of members that md marked faulty
  std::vector<std::string> waiting;  // kernel names of members that are present but not yet in sync
  std::string activity;              // "resync, 12 %", "recover"; empty: none
  bool ok = true;                    // complete, or being rebuilt
};
ArrayHealth array_health(const Files& files, const std::string& md);  // md: kernel name
// Describes the state: "degraded: 3 of 4 members, nvme3n1 failed; recover, 12 %"; "" if all is well.
std::string in_words(const ArrayHealth& health);

}  // namespace muster
