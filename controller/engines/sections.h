// Which nodes a storage section is on, and which of them leads it. Pure functions, no I/O.
#pragma once

#include <string>

#include "controller/spec/spec.h"

namespace muster {

// Returns the playbook that sets up an engine: "moosefs" -> "storage-shared".
std::string engine_playbook(const std::string& engine);
// True if the section is declared on this node's disks, which determines what they may contain. With engine
// nfs only the server's disks are used; `role` selects the nodes that mount.
bool holds_data(const StorageSpec& storage, const NodeSpec& node);
// True if the section really is on the node's disks: holds_data() and takes_part().
bool is_member(const StorageSpec& storage, const NodeSpec& node);
// True if the node mounts the section.
bool mounts(const StorageSpec& storage, const NodeSpec& node);
// The member that leads the section: its declared server, else the first by name; null without members.
const NodeSpec* storage_leader(const Spec& spec, const StorageSpec& storage);

}  // namespace muster
