// Identifies a disk of a machine: one rule for the plan that approves it and for the agent that writes to it.
//
// The WWID decides if there is one: a RAID controller reports its own serial number for each of its volumes,
// and an NVMe drive for each of its namespaces. The serial number breaks a tie between disks with the same
// WWID, and decides alone if no WWID is given. Size and model are only verified: a difference means that a
// different disk is in this place. Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "base/result.h"

namespace muster {

// Returns the one disk with this WWID (if given), this serial number (if given), this size, and this model
// (if given). invalid: neither WWID nor serial number is given. not_found: no disk matches. conflict: several
// disks match, or one matches only in part.
Result<DiskFacts> find_disk(const std::vector<DiskFacts>& disks, const DiskId& id);

// Distinguishes the disks of one machine by WWID and serial number.
std::string disk_key(const DiskId& id);
// "S64HNE0R600149", "S64HNE0R600149 (eui.0025384500000001)".
std::string disk_title(const DiskId& id);

// True if an array with this name in its md superblock ("any:scratch", "node01:scratch", "scratch") was made
// for this section of the spec on this node; false for an array of another host.
bool is_own_array(const std::string& array, const std::string& section, const std::string& node);

}  // namespace muster
