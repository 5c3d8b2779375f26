// Nodes that serve storage used by others and cannot be taken out of service now. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Refuses nodes at work that the plan takes out of service for a re-image or a rollback (storage-needed) if a
// storage section would stop: its only server or master, or more members at once than it can miss, including
// those already away. Forced nodes are not refused, but noted. Also notes if Slurm's controller is taken out
// of service: running jobs continue, but none starts in the meantime.
void refuse_needed(Planning& p);

}  // namespace muster
