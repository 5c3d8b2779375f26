#include "controller/rollout/service/rollout_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

using namespace rollout;

Result<Record> opened(const std::optional<Record>& record, const SeenCluster& seen, const Clocks& now,
                      DurationMs late) {
  if (!record) return fail(Code::denied, "no rollout is approved: run `muster rollout approve`");
  if (const std::string why = spent(*record); !why.empty())
    return fail(Code::denied, fmt::format("rollout {} was stopped: {}. `muster rollout status` shows what "
                                          "failed; `muster rollout approve` creates a new one",
                                          record->id, why));
  if (const std::string why = not_covered(record->approval, seen.now); !why.empty())
    return fail(
        Code::denied,
        fmt::format(
            "the approval is no longer valid: {}. Run `muster rollout plan`, then `muster rollout approve`",
            why));
  Record next = *record;
  const std::string target = target_of(seen.now, seen.view.policy);
  if (next.row && next.row->paused)
    return fail(Code::denied,
                fmt::format("the rollout is paused ({}): run `muster rollout resume`", next.why_paused));
  if (late >= seen.rollout.window)
    return fail(Code::denied, fmt::format("the window of {} was due {} ago and is over",
                                          to_human(seen.rollout.window), to_human(late)));
  const bool other = next.row && (next.row->target != target || next.row->stage == Stage::stopped);
  if (other && next.row->batch)
    return fail(Code::conflict, fmt::format("run {}, which installs different images, is still active",
                                            next.row->batch->run));
  if (other) {
    next = {};
    next.id = record->id + 1;
    next.approval = record->approval;
    next.night = record->night;
    next.last_window = record->last_window;
  }
  if (next.row) {
    TRY(next.row, started_again(std::move(*next.row), target));
  } else {
    next.row = begun(next.id, target);
    next.started = now.wall;
  }
  next.ended = 0;
  ++next.night;
  next.window = {now.wall, seen.rollout.window - std::max<DurationMs>(late, 0), now.boot};
  // A batch that is still under way counts to this night.
  next.window.first_batch = next.row->batches + (next.row->batch ? 0 : 1);
  next.window_until = end_of(next.window);
  return next;
}

}  // namespace muster
