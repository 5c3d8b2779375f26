// Commit: the running root slot becomes the one that stands, which is started from now on. What the step
// module `slot` does (agent/steps/system/slot.cc).
//
// loader.conf first, by one byte written over, then the marker: cut off anywhere, one of the two complete
// systems boots, and the commit is simply carried out again. Thread: blocking.
#pragma once

#include <functional>
#include <string>

#include "agent/image/slot_seed.h"
#include "base/os.h"
#include "base/result.h"

namespace muster {

struct SlotCommit {
  std::string slot, digest;
  std::string order = {};  // without the attempt
};

// What is not committed yet, in words; "": nothing, read back from the disk. conflict: another slot or image
// than these runs, or what is on the disk is not muster's own: nothing to be committed.
Result<std::string> uncommitted(const Files& files, const SlotCommit& commit);

struct CommitDeps {
  const Files& files;
  BeforeWrite before_write = {};  // asked before each write; an error ends the work there
};
// Removes the firmware's own default, changes loader.conf and the marker, in this order, and removes the
// trial's entry. Where neither copy of the marker can be written, loader.conf names the slot that it named
// before.
Status commit_slot(const CommitDeps& deps, const SlotCommit& commit);

}  // namespace muster
