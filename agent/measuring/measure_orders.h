// Restricts the orders of an agent that was started over SSH to measure: `inventory`, and `check` with
// measuring steps only. The command plans no other orders; the agent rejects them nevertheless, because they
// could do harm. Thread safety: stateless functions.
#pragma once

#include "base/wire.h"

namespace muster {

// Returns the order itself if it only measures; otherwise an order of an unknown kind, which every agent
// rejects (agent/work/work_runner.h). The name of that kind gives the reason.
wire::WorkOrder only_measuring(wire::WorkOrder order);

}  // namespace muster
