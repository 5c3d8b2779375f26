// Restricts the orders of an agent that was started over SSH to measure: `inventory`, and `check` with
// measuring steps only. The command plans no other orders; the agent enforces it, because others could do
// harm. Thread safety: stateless functions.
#pragma once

#include "base/wire.h"

namespace muster {

// Returns the order itself, or one of an unknown kind, which every agent rejects (agent/work_runner.h), with
// the reason in the name of that kind.
wire::WorkOrder only_measuring(wire::WorkOrder order);

}  // namespace muster
