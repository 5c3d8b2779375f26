// Leaders of shared storage: adds them to a plan so that new nodes can mount the storage, and prevents them
// from creating existing storage again. No I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Adds servers that the plan does not include yet. Shared file systems are exported to declared nodes one by
// one, so a new node needs a step on the server. Only that step is added, and only if the declaration changed
// since the server was configured.
void add_servers(Planning& p);
// Refuses the plan if the leader certainly has no metadata for existing data: an empty master or monitor in
// place of a lost one would make all files inaccessible. A plan that names the leader is allowed, because the
// agent never creates metadata either: that is how a leader is reinstalled before its metadata is restored.
void check_storage_leaders(Planning& p);

}  // namespace muster
