// Which orders an agent accepts that was started over SSH to measure: `inventory`, and `check` with measuring
// steps only. The command plans no others; the agent enforces it, because others could do harm. Thread: plain
// functions.
#pragma once

#include "base/wire.h"

namespace muster {

// The order itself, or one of an unknown kind, which every agent refuses (agent/work_runner.h), with the
// reason in the name of that kind.
wire::WorkOrder only_measuring(wire::WorkOrder order);

}  // namespace muster
