// Template data for storage that the site serves (engine external). Pure functions, no I/O.
#pragma once

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns the sections that this node mounts, as elements of `storage_external`. With `writable_only`,
// returns only the writable ones, for `storage_shared`: the steps for that list write to each section. The
// leader of a section is the first node, by name, that mounts it; no node of the cluster holds its data.
Json external_storage(const Spec& spec, const NodeSpec& node, bool writable_only);

}  // namespace muster
