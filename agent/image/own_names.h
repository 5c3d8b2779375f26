// Names that identify a machine to storage (NVMe over Fabrics, iSCSI, ZFS). Packages create them when they
// are installed, which for a node is when its image is built; so the image has none, and seeding writes the
// node's own. They are derived from its machine id, which stays when the node gets a new image: targets that
// admit it by such a name continue to do so. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// Writes the names into a mounted root, for those programs that are installed there.
Status write_own_names(const Files& root, const std::string& machine_id);

}  // namespace muster
