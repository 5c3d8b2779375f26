// Names that identify a machine to storage (NVMe over Fabrics, iSCSI, ZFS). Packages create such names when
// they are installed, which for a node is when its image is built, so all its nodes would share them: images
// contain none, and seeding writes the node's own. These are derived from its machine id, which survives a
// re-image, so targets that admit the node by name continue to do so. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

// Writes the names into a mounted root, for those programs that are installed there.
Status write_own_names(const Files& root, const std::string& machine_id);

}  // namespace muster
