// In what equal machines should not differ: versions of software and firmware, settings of BIOS, kernel and
// mounts, as far as the running system shows them. For HardwareFacts::properties, "CPU governor" ->
// "performance".
//
// Nothing of what differs between equal machines by nature: names, addresses, serial numbers, UUIDs, times,
// counts of parts. What cannot be read has no entry; what can be read and is not there says so ("off").
// Reads the text of /proc, /sys and /etc below `files`, in milliseconds; starts nothing. Thread: plain
// functions.
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
// Real file systems: "mounts" (which there are), "mount /scratch" (type and options).
Properties mount_properties(const Files& files);

// Identifies an installation without revealing its /etc/machine-id: a digest of it, 32 hexadecimal digits.
// Empty: there is none.
std::string hidden_machine_id(const Files& files);

}  // namespace muster
