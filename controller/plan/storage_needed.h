// Nodes that serve storage used by others and cannot be taken out of service now. No I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Refuses (storage-needed) to take nodes out of service for a re-image or a rollback if a storage section
// would stop: its only server or master, or more members at once than it can do without, counting those
// already away. Forced nodes get a note instead. Also adds a note if Slurm's controller is taken out of
// service: running jobs continue, but no job starts in the meantime.
void refuse_needed(Planning& p);

}  // namespace muster
