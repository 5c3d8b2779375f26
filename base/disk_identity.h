// Which disk of a machine is meant: one rule for the plan that approves it and for the agent that writes it.
//
// The WWID decides if there is one: a RAID controller shows its own serial number for each of its volumes,
// and an NVMe drive for each of its namespaces. The serial number breaks a tie between disks with the same
// WWID, and decides alone if there is none. Size and model are only compared: a difference means another disk
// in the same place. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "base/result.h"

namespace muster {

// Exactly one disk with this WWID (if one is given), this serial number (if one is given), this size, and
// this model if one is given. invalid: neither WWID nor serial number. not_found: none. conflict: several, or
// a partial match.
Result<DiskFacts> find_disk(const std::vector<DiskFacts>& disks, const std::string& serial,
                            uint64_t size_bytes, const std::string& wwid, const std::string& model);
// The same for a disk seen earlier: found again among `disks`.
Result<DiskFacts> find_disk(const std::vector<DiskFacts>& disks, const DiskFacts& seen);

// A key that distinguishes the disks of one machine by either name.
std::string disk_key(const std::string& serial, const std::string& wwid);
// The same for people: "S64HNE0R600149", "S64HNE0R600149 (eui.0025384500000001)".
std::string disk_title(const std::string& serial, const std::string& wwid);

// Whether an array with this name in md's superblock ("any:scratch", "node01:scratch", "scratch") was made
// for the section on this node. An array of another host never was.
bool is_own_array(const std::string& array, const std::string& section, const std::string& node);

}  // namespace muster
