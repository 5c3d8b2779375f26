// Who keeps files that others have mounted, and cannot leave them now. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Nodes at work that the plan takes away for a re-image or a rollback are refused (storage-needed) where a
// storage section would stop for it: its only server or master, or more of its members at once than it can
// miss, those that are away already among them. Not those that are forced, which a note names. Where Slurm's
// controller is taken away, a note says so: jobs go on, and nobody starts one meanwhile.
void refuse_needed(Planning& p);

}  // namespace muster
