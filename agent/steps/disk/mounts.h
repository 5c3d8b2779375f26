// Flags of mounted file systems (agent/disk/mount_table.h). Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "agent/disk/mount_table.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/step_modules.h"
#include "sys/os.h"

namespace muster::steps {

// With these flags, set-user-ID bits and device files on the mount have no effect.
inline constexpr const char* kSafeFlags = "nosuid,nodev";
// Names which of nosuid, nodev and noexec are in `options` but not set on the mount; "" if all are set.
std::string lacking_flags(const Files& files, const std::string& target, const std::string& options);
// Sets these missing flags by a remount, which does not interrupt users of the mount.
Status set_flags(StepContext& context, const std::string& target, const std::string& options);

// Finds the device on the disks that the spec selects, and a stable name of its file system. Labels are not
// used: a second disk may have the same label. Thread safety: stateless functions, which block.

// Returns the device of the disk's partition with this name, "/dev/nvme1n1p1". not_found: the disk has no
// such partition. conflict: it has two, or the kernel's view differs from the partition table.
Result<std::string> find_partition(const Files& files, const std::string& name, const DiskFacts& disk);

// Returns the kernel name of the selected device: the array on the disks, or the only disk, or that disk's
// partition with this name. not_found: there is no array on the disks, or no such partition.
Result<std::string> selected_device(const Files& files, const std::vector<WantedDisk>& wanted,
                                    const std::string& partition);

struct FileSystemOn {
  std::string device;  // kernel name
  std::string type, label, uuid;
};
// Reads which file system is on a device. not_found: none. conflict: the device has several signatures, or
// the type is one whose UUID muster cannot read.
Result<FileSystemOn> file_system_on(const Files& files, const std::string& device);
// Ok if neither muster nor udev finds this file system's UUID on another device; conflict lists those found.
Status only_bearer(const Files& files, const FileSystemOn& fs);

}  // namespace muster::steps
