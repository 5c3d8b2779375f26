// The disks of this machine and the check before every write: is this still the approved disk with the
// approved content? Used by the steps and the facts; agent/disk does the probing.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "sys/os.h"

namespace muster {

// Returns the whole disks with identity, content and use, sorted by serial then name.
Result<std::vector<DiskFacts>> list_disks(const Files& files);

}  // namespace muster
