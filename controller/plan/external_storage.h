// The data for steps about storage that the site serves (engine external). Pure.
#pragma once

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// The sections that this node mounts, as elements of `storage_external`; with `writable_only`, those that may
// be written to, as elements of `storage_shared` too: steps over that list write. The first node by name that
// mounts a section leads it; no node of the cluster holds its data.
Json external_storage(const Spec& spec, const NodeSpec& node, bool writable_only);

}  // namespace muster
