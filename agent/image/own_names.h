// Names that identify a machine to storage (NVMe over Fabrics, iSCSI, ZFS): packages create them at
// installation, which for a node is the build of its image, so the image has none and seeding writes the
// node's own. They are derived from its machine id, which stays when the node gets a new image: targets that
// admit it by such a name continue to do so. Thread: plain functions.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// Into a mounted root, for the programs that it has.
Status write_own_names(const Files& root, const std::string& machine_id);

}  // namespace muster
