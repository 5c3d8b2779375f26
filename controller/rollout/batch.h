// Chooses the next batch from the nodes that can be taken, and gives the reason why each of the others is not
// in it. Pure functions, no I/O.
#pragma once

#include <vector>

#include "controller/rollout/survey.h"

namespace muster::rollout {

// Returns the next batch; it has no nodes if none can begin. Clears the chosen nodes in `s.can`, and writes
// to `s.reason` and `s.group` why the others wait. Does not fill in the failure budget and the prefetch.
Batch choose_batch(const View& view, Survey& s);

}  // namespace muster::rollout
