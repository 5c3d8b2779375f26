// The disks of this machine as facts: identity from sysfs, content by reading, use from mounts and holders.
//
// Everything is below one root (`Files`), so that tests show it hand-made machines: /sys, /proc and the
// device files in /dev. Reads only. A disk that cannot be read is reported with content "unreadable: ..." and
// is never blank. Thread: plain functions.
#pragma once

#include <vector>

#include "base/facts.h"
#include "base/os.h"
#include "base/result.h"

namespace muster {

// Whole physical disks (no loop, RAM, device-mapper or md devices), sorted by serial then name.
std::vector<DiskFacts> scan_disks(const Files& files);
// The same without reading any content: quick, for finding a disk by identity.
std::vector<DiskFacts> scan_identities(const Files& files);

// Exactly one disk with this serial and size, and with this WWID and model where they are given.
// not_found: none. conflict: more than one, or a disk of that serial with another size, WWID or model.
Result<DiskFacts> find_disk(const std::vector<DiskFacts>& disks, const std::string& serial,
                            uint64_t size_bytes, const std::string& wwid, const std::string& model);

}  // namespace muster
