// Opening a window of a rollout: continues the existing record, begins a rollout of different images under
// the same approval, or is refused. Pure functions, no I/O.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "controller/rollout/rollout_record.h"
#include "controller/rollout/service/rollout_port.h"

namespace muster {

// "" if the record's rollout could go on; else, which failed canaries hold all images that nodes still need.
// `record` has a row.
std::string all_held(const rollout::Record& record, const SeenCluster& seen, TimeMs now);
// Returns the record with which a window begins at `now`, `late` after it was due: it ends when it would have
// ended. denied: nothing is approved, the approval is no longer valid, the rollout is paused or was stopped,
// or the window is over; the message names the reason and what to do. conflict: a run of different images is
// active; it ends, and a retry is safe.
Result<rollout::Record> opened(const std::optional<rollout::Record>& record, const SeenCluster& seen,
                               const rollout::Clocks& now, DurationMs late = 0);

}  // namespace muster
