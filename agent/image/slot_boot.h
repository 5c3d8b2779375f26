// The order `boot_slot`: one boot from the root slot that this system does not run from. `default` of the
// boot loader stays on the running slot, so that the boot after it is this system's again unless the step
// module `slot` commits the other one.
//
// get_ready: all is checked; the trial entry is made from the plain one, the variable LoaderEntryOneShot is
// written in one write and read back. Refused or withdrawn, nothing of it is left. Then the restart. Thread:
// blocking, the agent's worker thread.
#pragma once

#include "base/json.h"
#include "base/os.h"
#include "base/result.h"
#include "base/wire.h"

namespace muster {

// conflict: this system is not committed, the slot is the running one, half written, of another image, or
// not startable, or the firmware's own default stays. denied: this firmware and loader cannot, or the loader
// is another disk's.
Result<Json> arm_slot_boot(const Files& files, const wire::BootSlotJob& job);
// The next boot is the usual one; nothing to do where nothing is armed by muster.
void disarm_slot_boot(const Files& files);
// A boot of the other slot is armed, by an order of this system that did not come to its end.
bool slot_boot_armed(const Files& files);

// A trial that is to restart stays one: the next boot is the running slot's again, with the entry as it is
// now (the step module `reboot`; kernel arguments that a playbook changed). Nothing to do where the running
// system is no trial, or is committed.
Status keep_trial(const Files& files);

}  // namespace muster
