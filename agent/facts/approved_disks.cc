#include "agent/facts/approved_disks.h"

#include "agent/disk/disk.h"

namespace muster {

Result<std::vector<DiskFacts>> list_disks(const Files& files) { return scan_disks(files); }

}  // namespace muster
