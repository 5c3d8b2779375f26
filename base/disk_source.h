// A mount source that identifies the disks below it, which neither a label nor a kernel name can do: "disks:"
// and the comma-separated WWID/SERIAL of each. Written by the planner; compared with the kernel's mounts by
// the agent and the acceptance programs (host/disks_under.h). Pure functions, no I/O.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/facts.h"

namespace muster {

// Returns a text that hardware reported (a serial number, a WWID, a model) without padding and without bytes
// that are not printable ASCII. A disk is identified by such texts, so all programs must clean them alike.
std::string hardware_text(const std::string& text);

inline constexpr const char* kDiskSource = "disks:";

std::string disk_source(const std::vector<DiskFacts>& disks);
bool is_disk_source(const std::string& source);

// The entry of one disk, and all entries of a source. An entry has both WWID and serial number, because disks
// of one controller may share a serial number, and those of some vendors a WWID.
std::string disk_source_id(const DiskId& id);
std::set<std::string> disk_source_ids(const std::string& source);

}  // namespace muster
