// Which disks a selector of the spec means; no other code decides this. Pure function, no I/O.
#pragma once

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// True if the disk is in the machine itself and has every property that the selector names. A selector that
// names none selects no disk.
bool disk_matches(const DiskMatch& match, const DiskFacts& disk);

}  // namespace muster
