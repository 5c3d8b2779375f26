// The plans that empty nodes (drain) and let them back in (undrain). Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// What is on the nodes' disks is not looked at: nothing here may format one. Nodes go one after the other,
// so that what leaves the first is not sent to the second.
void write_drain(Planning& p);

}  // namespace muster
