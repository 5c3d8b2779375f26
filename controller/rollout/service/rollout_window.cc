#include "controller/rollout/service/rollout_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/rollout/next.h"
#include "controller/rollout/window_result.h"

namespace muster {

using namespace rollout;

std::string all_held(const Record& record, const SeenCluster& seen, TimeMs now) {
  View view = seen.view;
  recall(view, record, now);
  view.target = record.row->target;
  if (rollout::next(view, *record.row).stop != StopReason::canary_failed) return "";
  std::string out;
  for (const auto& [name, held] : held_images(record))
    out += fmt::format("{}image '{}' is held, because its canary {} failed in run {} ({})",
                       out.empty() ? "" : "; ", name, held.node, held.run, held.reason);
  return out;
}

bool goes_on(const Record& record) {
  return record.row && (record.row->stage == Stage::canary || record.row->stage == Stage::batches);
}

bool is_joined(const Record& record, const Record& next, const Clocks& now) {
  const bool same = next.id == record.id || record.window.preparing;
  return same && goes_on(record) && is_same_window(record.window, now) && !is_noted(record);
}

namespace {

DurationMs length_of(const Record& record, const SeenCluster& seen, const Clocks& now, WindowStart how) {
  const DurationMs length = seen.rollout.window - std::max<DurationMs>(how.late, 0);
  if (how.by_timer || !goes_on(record) || !is_same_window(record.window, now)) return length;
  return std::min(length, span_of(record.window) - age_of(record.window, now));
}

}  // namespace

Result<Record> opened(const std::optional<Record>& record, const SeenCluster& seen, const Clocks& now,
                      WindowStart how) {
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
  if (record->row && record->row->paused)
    return fail(Code::denied,
                fmt::format("the rollout is paused ({}): run `muster rollout resume`", record->why_paused));
  if (how.late >= seen.rollout.window)
    return fail(Code::denied, fmt::format("the window of {} was due {} ago and is over",
                                          to_human(seen.rollout.window), to_human(how.late)));
  Record next = at_start(*record, seen.now, target_of(seen.now, seen.view.policy));
  if (next.id != record->id && record->row->batch)
    return fail(Code::conflict, fmt::format("run {}, which installs different images, is still active",
                                            record->row->batch->run));
  if (next.started == 0) next.started = now.wall;
  next.ended = 0;
  ++next.night;
  next.window = {now.wall, length_of(*record, seen, now, how), now.boot};
  // A batch that is still under way counts to this night.
  next.window.first_batch = next.row->batches + (next.row->batch ? 0 : 1);
  next.window_until = end_of(next.window);
  if (const std::string why = all_held(next, seen, now.wall); !why.empty())
    return fail(Code::denied,
                fmt::format("rollout {}: {}. `muster rollout approve` permits another try", record->id, why));
  return next;
}

std::optional<Record> not_opened(const Record& record, const SeenCluster& seen, const Clocks& now,
                                 WindowStart how) {
  const bool due = how.by_timer && how.late < seen.rollout.window;
  const bool under_way = is_open(record.window, now) || (record.row && record.row->batch);
  const std::string why = not_covered(record.approval, seen.now);
  if (!due || under_way || why.empty() || !spent(record).empty()) return std::nullopt;
  Record next = record;
  ++next.night;
  next.window.first_batch = record.row ? record.row->batches + 1 : 1;
  next.last_window = without_approval(next, why, now.wall);
  return next;
}

}  // namespace muster
