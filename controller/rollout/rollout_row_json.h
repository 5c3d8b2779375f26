// The JSON text of a rollout's row, as it is stored. Pure functions, no I/O.
#pragma once

#include <string>

#include "base/record.h"
#include "controller/rollout/rollout_row.h"

namespace muster::rollout {

inline constexpr Words<Stage, 4> kStages = {{{Stage::canary, "canary"},
                                             {Stage::batches, "batches"},
                                             {Stage::stopped, "stopped"},
                                             {Stage::done, "done"}}};
inline constexpr Words<StopReason, 6> kStopReasons = {{{StopReason::none, ""},
                                                       {StopReason::canary_failed, "canary-failed"},
                                                       {StopReason::budget, "budget"},
                                                       {StopReason::target_changed, "target-changed"},
                                                       {StopReason::no_canary, "no-canary"},
                                                       {StopReason::replaced, "replaced"}}};
MUSTER_WORDS(Stage, kStages)
MUSTER_WORDS(StopReason, kStopReasons)

MUSTER_RECORD(Failure, reason, run, canary, returned)
MUSTER_RECORD(Postponed, reason, run, night, times, cancelled, refused)
MUSTER_RECORD(Underway, number, run, canary, images)
MUSTER_RECORD(Row, id, target, stage, stop, paused, batches, batch, proven, failed, postponed, done)

// Returns JSON on one line. Equal rows give equal text.
std::string to_text(const Row& row);
// Reads the text. Code::corrupt: it was not written by to_text(), or was written by a later version.
Result<Row> row_from_text(const std::string& text);

std::string_view to_string(Stage stage);
std::string_view to_string(StopReason reason);

}  // namespace muster::rollout
