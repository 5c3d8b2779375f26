// The data for a playbook's templates about the storage that a node has, serves or mounts
// (docs/playbook-context.md). Pure.
#pragma once

#include "base/json.h"
#include "controller/plan/context_input.h"

namespace muster {

// {storage_local, storage_shared, storage_external, and storage_ENGINE of each engine with members}
// Members are lent by the cluster's context until they are returned.
Json storage_of(const ContextInput& in);
void return_members(const ContextInput& in, Json& storage);

}  // namespace muster
