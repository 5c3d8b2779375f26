// Finds the devices of this machine that have a given UUID, of a file system or of a partition. A copy of a
// disk has the UUIDs of the original, and a lookup (mount, udev, a boot loader) uses the first one found:
// before a UUID is used, its devices are counted, and if there are two, the error names them.
//
// Reads the devices themselves, at the time of the call: udev's links name one device per UUID, whichever
// came first. A part of something else (a member of an array, a path of a multipath device) does not count,
// since only the whole can be mounted. Reads two MiB of each device. Thread: blocking.
#pragma once

#include <string>
#include <vector>

#include "agent/disk/disk_probe.h"
#include "sys/os.h"

namespace muster {

// Kernel names, sorted, of the block devices with a file system of this UUID (as from file_system_uuid()).
// One file system on several devices (btrfs) counts once: the device that /dev/disk/by-uuid leads to.
std::vector<std::string> file_system_bearers(const Files& files, const std::string& uuid);
// Kernel names, sorted.
std::vector<std::string> partition_bearers(const Files& files, const std::string& guid);

// As in `mount UUID=...`; "" for a type whose UUID this program cannot read.
std::string file_system_uuid(const Signature& signature);

// "8:1", from the device file or from sysfs; "" if there is none.
std::string device_number(const Files& files, const std::string& kernel_name);
// The kernel name; "" if there is none.
std::string device_with_number(const Files& files, const std::string& number);
// "nvme0n1" for "nvme0n1p2"; "" if it is not a partition.
std::string disk_of_partition(const Files& files, const std::string& kernel_name);

}  // namespace muster
