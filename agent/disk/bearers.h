// Which devices of this machine have a given UUID: of a file system, or of a partition. A copy of a disk has
// the UUIDs of the original, and a lookup (mount, udev, a boot loader) uses the first one found: before a
// UUID is relied on, its devices are counted here, and if there are two, the error names them.
//
// Read from the devices themselves, now: udev's links name one device for each UUID, chosen by chance. A part
// of something else (a member of an array, a path of a multipath device) does not count: only the whole can
// be mounted. Reads two MiB of each device. Thread: blocking.
#pragma once

#include <string>
#include <vector>

#include "agent/disk/disk_probe.h"
#include "base/os.h"

namespace muster {

// Kernel names of the block devices with a file system of this UUID, as file_system_uuid() writes it; sorted.
// One file system over several devices (btrfs) counts once: the device that /dev/disk/by-uuid leads to.
std::vector<std::string> file_system_bearers(const Files& files, const std::string& uuid);
// Kernel names of the GPT partitions with this GUID; sorted.
std::vector<std::string> partition_bearers(const Files& files, const std::string& guid);

// As in `mount UUID=...`; "" for a type whose UUID cannot be read here.
std::string file_system_uuid(const Signature& signature);

// "8:1" of a block device: from its device file, or from sysfs; "" for none.
std::string device_number(const Files& files, const std::string& kernel_name);
// The reverse; "" for none.
std::string device_with_number(const Files& files, const std::string& number);
// "nvme0n1" of "nvme0n1p2"; "" if it is not a partition.
std::string disk_of_partition(const Files& files, const std::string& kernel_name);

}  // namespace muster
