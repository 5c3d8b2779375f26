// Properties that should be equal on identical machines: software and firmware versions, settings of BIOS,
// kernel and mounts, as far as the running system shows them. Used for HardwareFacts::properties: "CPU
// governor" -> "performance".
//
// Excludes what always differs between identical machines: names, addresses, serial numbers, UUIDs, times,
// counts of parts. A property that cannot be read has no entry; one that can be read but is absent has a
// value such as "off". Reads text in /proc, /sys and /etc below `files`, within milliseconds; starts no
// program. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>

#include "sys/os.h"

namespace muster {

using Properties = std::map<std::string, std::string>;

Properties host_properties(const Files& files);

// Parts of host_properties(), declared for tests.
// Removes what names this machine, its disks or network: "root=UUID=...", "ip=...", "BOOT_IMAGE=...".
std::string comparable_kernel_line(const std::string& line);
// Of real file systems: "mounts" (mount points), "mount /scratch" (type and options).
Properties mount_properties(const Files& files);

// A digest of /etc/machine-id, which it does not reveal: 32 hexadecimal digits; empty without a machine id.
std::string hidden_machine_id(const Files& files);

}  // namespace muster
