// Names of a machine by which storage knows it (NVMe over Fabrics, iSCSI, ZFS): packages make them when they
// are installed, which for a node was while its image was built, so that the image has none and seeding
// writes the node's own. They follow from its machine id, which stays when the node gets another image:
// targets that let it in by such a name go on doing so. Thread: plain functions.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// Into a mounted root, for those of the programs that it has.
Status write_own_names(const Files& root, const std::string& machine_id);

}  // namespace muster
