// The disks of this machine as facts: identity from sysfs, content by reading, use from mounts and holders.
//
// Everything is below one root (`Files`), so that tests can use artificial machines: /sys, /proc and the
// device files in /dev. Reads only. A disk that cannot be read is reported with content "unreadable: ..." and
// is never blank. Thread safety: stateless functions.
#pragma once

#include <vector>

#include "base/disk_identity.h"
#include "base/facts.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster {

// Returns the whole disks (host/real_drives.h), by serial then name, also those that are not measured: disks
// on USB or reached over a network, and those with host-managed zones.
std::vector<DiskFacts> scan_disks(const Files& files);
// Scans without reading any content: fast, to find a disk by its identity (base/disk_identity.h).
std::vector<DiskFacts> scan_identities(const Files& files);

}  // namespace muster
