// Template data about the storage that a node has, serves or mounts (docs/playbook-context.md). No
// I/O.
#pragma once

#include "base/json.h"
#include "controller/plan/context_input.h"

namespace muster {

// Returns {storage_local, storage_shared, storage_external, and storage_ENGINE of each engine with members}.
// The member lists are lent by the cluster's context: hand them back with return_members().
Json storage_of(const ContextInput& in);
void return_members(const ContextInput& in, Json& storage);

}  // namespace muster
