// Which of the nodes that can be taken are taken together: the next batch, and why each of the others is not
// in it. Pure.
#pragma once

#include <vector>

#include "controller/rollout/survey.h"

namespace muster::rollout {

// The next batch; without nodes if none can begin. Takes the chosen nodes out of `s.can`, and writes into
// `s.reason` and `s.group` why the others wait. Budget and prefetch are not filled in.
Batch choose_batch(const View& view, Survey& s);

}  // namespace muster::rollout
