// The plans that empty nodes (drain) and let them back in (undrain). Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// The content of the nodes' disks is ignored: none of these plans may format one. Nodes are drained one after
// the other, so that data leaving the first is not sent to the second.
void write_drain(Planning& p);

}  // namespace muster
