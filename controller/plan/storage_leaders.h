// The leader of a shared storage: when it is added to a plan to admit others, and when it must not create the
// storage again. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Shared file systems are exported to declared nodes one by one: a new node needs a step on the server, which
// this plan may not include. Only that step is added, and only if the declaration changed since the server
// was configured.
void add_servers(Planning& p);
// If an empty master or monitor replaced a lost one, all files would be inaccessible: nothing starts if it is
// certain that the leader has no metadata for the existing data. The agent never creates it either, so naming
// the leader is safe: that is how it is reinstalled before its metadata is restored.
void check_storage_leaders(Planning& p);

}  // namespace muster
