// State of an md array, from /sys/block/MD/md. Read only, cheap, never waits for a disk.
//
// The kernel also reports a new raid5 as `degraded` while it computes the last member from the others; so a
// running rebuild is not a problem, but a stopped one is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/os.h"

namespace muster {

// Least number of members of an array of this level: md's raid5 of two and raid10 of two or three are mirrors
// in disguise.
size_t fewest_members(const std::string& level);
// Whether an array of this level survives the loss of a member.
bool is_redundant_array(const std::string& level);

struct ArrayHealth {
  std::string level;                 // "raid5"; empty: not an array
  int members = 0;                   // as created
  int lacking = 0;                   // how many of them are missing now
  std::vector<std::string> failed;   // kernel names of members that md marked faulty
  std::vector<std::string> waiting;  // present, and not (yet) in sync with the others
  std::string activity;              // "resync, 12 %", "recover"; empty: none
  bool ok = true;                    // complete, or being completed
};
ArrayHealth array_health(const Files& files, const std::string& md);
// "degraded: 3 of 4 members, nvme3n1 failed; recover, 12 %", "resync, 12 %", "" if all is well.
std::string in_words(const ArrayHealth& health);

}  // namespace muster
