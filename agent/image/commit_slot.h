// Commits the running root slot: makes it the default one. The work of the step module `slot`
// (agent/steps/system/slot.cc).
//
// loader.conf comes first, with one byte overwritten, then the marker: after a power cut at any point one of
// the two complete systems boots, and the commit can be repeated. Thread: blocking.
#pragma once

#include <functional>
#include <string>

#include "agent/image/slot_seed.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster {

struct SlotCommit {
  std::string slot, digest;
  std::string order = {};  // without the attempt
};

// Returns what is not committed yet, for messages; "" if everything is, as read back from the disk. conflict:
// a different slot or image is running, or the files on the disk were not written by muster.
Result<std::string> uncommitted(const Files& files, const SlotCommit& commit);

struct CommitDeps {
  const Files& files;
  BeforeWrite before_write = {};  // called before each write; an error stops the work there
};
// Removes the EFI variables that override loader.conf, changes loader.conf and the marker, in this order, and
// removes the trial entry. If neither copy of the marker can be written, loader.conf is changed back.
Status commit_slot(const CommitDeps& deps, const SlotCommit& commit);

}  // namespace muster
