// From the disks that the spec selects to the device in use, and to a stable name of its file system. Labels
// are not used: another disk may have the same, and a lookup uses the first one found. Thread: blocking.
#pragma once

#include <string>
#include <vector>

#include "agent/steps/disk/data_disks.h"

namespace muster::steps {

// The device of the partition of this name on this disk, once both the table and the kernel have it:
// "/dev/nvme1n1p1". not_found; conflict: two of that name, or the kernel's table differs.
Result<std::string> find_partition(const Files& files, const std::string& name, const DiskFacts& disk);

// Kernel name of the selected device: the array on them, or the one disk, or its partition of this name.
// not_found: no array on the disks, or no such partition.
Result<std::string> selected_device(const Files& files, const std::vector<WantedDisk>& wanted,
                                    const std::string& partition);

struct FileSystemOn {
  std::string device;  // kernel name
  std::string type, label, uuid;
};
// The present content of that device. not_found: no file system. conflict: several signatures, or a type
// whose UUID is unknown.
Result<FileSystemOn> file_system_on(const Files& files, const std::string& device);
// Ok if no other device has its UUID and udev does not map the UUID to a different one; conflict names those.
Status only_bearer(const Files& files, const FileSystemOn& fs);

}  // namespace muster::steps
