// From the disks that the spec selects to the device that is used, and to what names its file system for
// good. Labels choose nothing: another disk may carry the same, and what looks one up takes the first that it
// finds. Thread: blocking.
#pragma once

#include <string>
#include <vector>

#include "agent/steps/disk/data_disks.h"

namespace muster::steps {

// The device of the partition of this name on this disk, once both the table and the kernel have it:
// "/dev/nvme1n1p1". not_found; conflict: two of that name, or the kernel shows another table.
Result<std::string> find_partition(const Files& files, const std::string& name, const DiskFacts& disk);

// Kernel name of what the disks lead to: the array over them, or the one disk, or its partition of this name.
// not_found: the disks carry no array, or no such partition.
Result<std::string> selected_device(const Files& files, const std::vector<WantedDisk>& wanted,
                                    const std::string& partition);

struct FileSystemOn {
  std::string device;  // kernel name
  std::string type, label, uuid;
};
// What is on that device at this moment. not_found: no file system. conflict: more than one thing, or a type
// whose UUID is not known.
Result<FileSystemOn> file_system_on(const Files& files, const std::string& device);
// Nothing else here carries its UUID, nor does udev take another device for it. conflict names those that do.
Status only_bearer(const Files& files, const FileSystemOn& fs);

}  // namespace muster::steps
