// Trial boot: this system was booted once, from the root slot that is not the default, and the node rolls
// back unless the step module `slot` (agent/steps/system/slot.cc) commits it. The kernel parameter and the
// file below are also read by the generator in the image (controller/image/customize.cc). A commit ends the
// trial without a restart, so both are read at each call. Thread: any; stateless functions.
#pragma once

#include <string>

#include "sys/os.h"

namespace muster {

// Written by the commit; in memory, so it does not survive a boot.
inline constexpr const char* kTrialEnded = "/run/muster-committed";

// Returns `muster.trial=` of this boot, in seconds; "" for a normal boot.
std::string trial_seconds(const Files& files);
bool on_trial(const Files& files);
// True if the running image has the generator that ends an uncommitted trial.
bool goes_back_by_itself(const Files& files);

}  // namespace muster
