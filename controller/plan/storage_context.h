// Template data about the storage that a node has, serves or mounts (docs/playbook-context.md). No I/O.
#pragma once

#include "base/json.h"
#include "controller/plan/cluster_context.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns {storage_local, storage_shared, storage_external, and storage_ENGINE of each engine with members}.
// The member lists are lent by the cluster's context: hand them back with return_members().
Json storage_of(const ContextInput& in);
void return_members(const ContextInput& in, Json& storage);

// Returns the sections that this node mounts, as elements of `storage_external`. With `writable_only`,
// returns only the writable ones, for `storage_shared`: the steps for that list write to each section. The
// leader of a section is the first node, by name, that mounts it; no node of the cluster holds its data.
Json external_storage(const Spec& spec, const NodeSpec& node, bool writable_only);

}  // namespace muster
