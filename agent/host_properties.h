// Properties in which identical machines should not differ: software and firmware versions, settings of BIOS,
// kernel and mounts, as far as the running system shows them. For HardwareFacts::properties, "CPU governor"
// -> "performance".
//
// Without what always differs between identical machines: names, addresses, serial numbers, UUIDs, times,
// counts of parts. A property that cannot be read has no entry; one that can be read but is absent has a
// value such as "off". Reads the text of /proc, /sys and /etc below `files`, in milliseconds; starts nothing.
// Thread: plain functions.
#pragma once

#include <map>
#include <string>

#include "base/os.h"

namespace muster {

using Properties = std::map<std::string, std::string>;

Properties host_properties(const Files& files);

// Parts, for tests.
// Without what names this machine, its disks or its network: "root=UUID=...", "ip=...", "BOOT_IMAGE=...".
std::string comparable_kernel_line(const std::string& line);
// Real file systems: "mounts" (their mount points), "mount /scratch" (type and options).
Properties mount_properties(const Files& files);

// Identifies an installation without revealing its /etc/machine-id: a digest of it, 32 hexadecimal digits.
// Empty: there is none.
std::string hidden_machine_id(const Files& files);

}  // namespace muster
