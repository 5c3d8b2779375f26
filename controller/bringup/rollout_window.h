// How a window of a rollout begins: with the record there is, with a rollout of other images under the same
// approval, or not at all. Pure.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "controller/bringup/rollout_port.h"
#include "controller/rollout/rollout_record.h"

namespace muster {

// The record with which a window begins `now`. denied: nothing is approved, the approval does not count any
// more, or the rollout is paused or was stopped; the message says which and what to do. conflict: a run of
// other images is under way.
Result<rollout::Record> opened(const std::optional<rollout::Record>& record, const SeenCluster& seen,
                               TimeMs now);

}  // namespace muster
