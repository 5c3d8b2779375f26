// The plans that empty nodes (drain) and let them back in (undrain). No I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Writes a drain or undrain plan. These plans never format a disk, so disk contents are not examined. Nodes
// are drained one after the other, so that data moved off the first is not sent to the second.
void write_drain(Planning& p);

}  // namespace muster
