// The disks of this machine and the check before every write: is this still the approved disk with the
// approved content? Between the steps (and facts) and agent/disk, which probes.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "base/os.h"

namespace muster {

// Whole disks with identity, content and use, sorted by serial then name.
Result<std::vector<DiskFacts>> list_disks(const Files& files);

}  // namespace muster
