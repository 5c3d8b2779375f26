// How an md array is: from /sys/block/MD/md. Read only, cheap, never waits for a disk.
//
// The kernel says `degraded` of a new raid5 too, whose last member it fills in from the others; that is why
// a rebuild that is under way is no problem, and one that stopped is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/os.h"

namespace muster {

// How few members an array of this level is made of: md's raid5 of two and raid10 of two or three are mirrors
// in disguise.
size_t fewest_members(const std::string& level);
// Whether it outlives the loss of one.
bool is_redundant_array(const std::string& level);

struct ArrayHealth {
  std::string level;                 // "raid5"; empty: not an array
  int members = 0;                   // as it was made for
  int lacking = 0;                   // of them, those without which it works at this moment
  std::vector<std::string> failed;   // kernel names of members that md has given up
  std::vector<std::string> waiting;  // there, and not (yet) in step with the others
  std::string activity;              // "resync, 12 %", "recover"; empty: none
  bool ok = true;                    // whole, or about to be by what is under way
};
ArrayHealth array_health(const Files& files, const std::string& md);
// "degraded: 3 of 4 members, nvme3n1 failed; recover, 12 %", "resync, 12 %", "" when there is nothing to say.
std::string in_words(const ArrayHealth& health);

}  // namespace muster
