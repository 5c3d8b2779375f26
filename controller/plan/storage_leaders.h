// The leader of a shared storage: when it takes part to admit others, and when it must not create it again.
// Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Shared file systems are exported to declared nodes one by one: one that is new needs a step on the
// server, which this plan may not be about. That step alone is taken, and only where what is declared
// changed since the server was configured.
void add_servers(Planning& p);
// Behind an empty master or monitor in the place of a lost one, everybody's files are gone from sight:
// nothing starts where it is certain that the leader has no metadata for the data that is there. The agent
// never makes it either, so naming the leader is no risk: that is how it is installed again before its
// metadata is brought back.
void check_storage_leaders(Planning& p);

}  // namespace muster
