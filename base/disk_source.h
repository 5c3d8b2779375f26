// A mount's source that names its disks, which neither a label nor a kernel name can: "disks:" and
// WWID/SERIAL of each, with commas between them. The planner writes it, the agent and the acceptance programs
// compare it with the kernel's mounts (base/disks_under.h). Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/facts.h"

namespace muster {

inline constexpr const char* kDiskSource = "disks:";

std::string disk_source(const std::vector<DiskFacts>& disks);
bool is_disk_source(const std::string& source);

// One of them, and all. Both names count: disks of one controller share a serial number, and those of some
// vendors a WWID.
std::string disk_source_id(const std::string& wwid, const std::string& serial);
std::set<std::string> disk_source_ids(const std::string& source);

}  // namespace muster
