// The disks under a block device: from it down through arrays, volumes and partitions to whole disks, from
// sysfs. /sys/class/block/NAME/slaves lists the parts of a virtual device; a partition's folder is in that of
// its disk. Thread: plain functions.
#pragma once

#include <string>
#include <vector>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// Kernel names of the whole disks under a block device ("md127", "nvme0n1p2"); sorted. None under a loop
// device or memory.
std::vector<std::string> disks_under(const Files& files, const std::string& kernel_name);
// Whether a mount from `device` ("/dev/md127") lies on exactly the disks that `source` names
// (base/disk_source.h). denied names the actual ones.
Status lies_on(const Files& files, const std::string& device, const std::string& source);

}  // namespace muster
