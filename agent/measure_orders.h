// Which orders an agent takes that came over SSH to measure: `inventory`, and `check` with nothing but
// measuring steps. The command plans no others; here it is made sure of where they would do harm.
// Thread: plain functions.
#pragma once

#include "base/wire.h"

namespace muster {

// The order itself, or one of an unknown kind, which every agent refuses (agent/work_runner.h), with the
// reason in its word.
wire::WorkOrder only_measuring(wire::WorkOrder order);

}  // namespace muster
