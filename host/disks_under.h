// Finds the whole disks below a block device, in sysfs: down through arrays, volumes and partitions.
// /sys/class/block/NAME/slaves lists the parts of a virtual device; a partition's folder is inside that of
// its disk. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

// Returns the kernel names of the whole disks below a block device ("md127", "nvme0n1p2"), sorted; none for a
// loop device or a RAM-backed one.
std::vector<std::string> disks_under(const Files& files, const std::string& kernel_name);
// Checks that a mount from `device` ("/dev/md127") is on exactly the disks that `source` names
// (base/disk_source.h). Code::denied: it is not; the message lists the actual disks.
Status lies_on(const Files& files, const std::string& device, const std::string& source);

}  // namespace muster
