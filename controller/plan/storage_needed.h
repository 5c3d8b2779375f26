// Nodes that serve storage which others use, and cannot be taken away now. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Refuses nodes at work that the plan takes away for a re-image or a rollback (storage-needed) where a
// storage section would stop: its only server or master, or more members at once than it can miss, including
// those that are away already. Forced nodes are not refused, but noted. Also notes where Slurm's controller
// is taken away: running jobs continue, and none is started meanwhile.
void refuse_needed(Planning& p);

}  // namespace muster
