// The order `boot_slot`: boots once from the root slot that this system does not run from. The loader's
// `default` still names the running slot, so that the next boot after that starts this system again unless
// the step module `slot` commits the other one.
//
// Preparation: everything is checked; the trial entry is made from the plain one; the variable
// LoaderEntryOneShot is set by a single write and read back. An order that is rejected or withdrawn leaves
// nothing behind. Then the node restarts. Thread: blocking, the agent's worker thread.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

// conflict: this system is not committed, or cannot be booted again; the slot is the running one, is half
// written, contains a different image or one that does not roll back automatically, or cannot be booted; or a
// variable that overrides loader.conf cannot be removed. denied: firmware or loader do not support one-time
// boots, or the loader was started from a different disk.
Result<Json> arm_slot_boot(const Files& files, const wire::BootSlotJob& job);
// Makes the next boot a normal one again: removes the variable if muster set it, and the trial entries.
void disarm_slot_boot(const Files& files);
// True if a boot of the other slot is armed, left behind by an order that did not finish.
bool slot_boot_armed(const Files& files);

// Keeps a trial boot a trial across a restart (step module `reboot`, for changed kernel arguments): the next
// boot starts the running slot once more, with its current entry. Does nothing unless this is a trial boot.
Status keep_trial(const Files& files);

}  // namespace muster
