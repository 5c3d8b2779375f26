// The disks of this machine and the one question every writer asks before it writes: is this still the disk
// that was approved, with what was on it then? Between the steps (and facts) and agent/disk, which knows how
// to probe.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "base/os.h"

namespace muster {

// Whole disks with identity, content and use, sorted by serial then name.
Result<std::vector<DiskFacts>> list_disks(const Files& files);

}  // namespace muster
