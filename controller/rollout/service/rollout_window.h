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
// True while batches may begin or end: neither done nor stopped.
bool goes_on(const rollout::Record& record);
// How a window is opened.
struct WindowStart {
  DurationMs late = 0;  // how long ago it was due; it ends when it would have ended
  // That was due by the wall clock. A start by hand does not move the end of a window that is open.
  bool by_timer = false;
};
// True if the start that made `next` of `record` has no effect: the window is open, and its night is not
// over. A night is over when nothing more begins in it, which is noted; a start after that is another try.
// Images that the night itself builds make no other rollout of it.
bool is_joined(const rollout::Record& record, const rollout::Record& next, const rollout::Clocks& now);
// Returns the record with which a night begins at `now`. denied: nothing is approved, the approval is no
// longer valid, the rollout is paused or was stopped, or the window is over; the message names the
// reason and what to do. conflict: a run of different images is active; it ends, and a retry is safe.
Result<rollout::Record> opened(const std::optional<rollout::Record>& record, const SeenCluster& seen,
                               const rollout::Clocks& now, WindowStart how = {});
// Returns the record with a night that the timer cannot begin because the approval is void. It is noted as a
// result, since operators would otherwise find it in the log only. nullopt: that is not the reason, or
// another night is under way, whose own result counts.
std::optional<rollout::Record> not_opened(const rollout::Record& record, const SeenCluster& seen,
                                          const rollout::Clocks& now, WindowStart how);

}  // namespace muster
