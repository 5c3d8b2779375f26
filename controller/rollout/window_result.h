// What came of a night: of a window, or of a day of a longer one. Noted in the record once, when nothing
// more begins in it, so that a night in which nothing happened is as visible as one that failed. Pure
// functions, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/record.h"
#include "base/time.h"

namespace muster::rollout {

struct Record;

enum class WindowOutcome {
  done,      // no node needs an update
  progress,  // nodes were updated, others wait for another night
  partial,   // nodes failed, or are left although the rollout is done, or an image was not built
  nothing,   // no node was updated, though nodes need it
  paused,
  stopped
};
inline constexpr Words<WindowOutcome, 6> kWindowOutcomes = {{{WindowOutcome::done, "done"},
                                                             {WindowOutcome::progress, "progress"},
                                                             {WindowOutcome::partial, "partial"},
                                                             {WindowOutcome::nothing, "nothing"},
                                                             {WindowOutcome::paused, "paused"},
                                                             {WindowOutcome::stopped, "stopped"}}};
MUSTER_WORDS(WindowOutcome, kWindowOutcomes)

struct WindowResult {
  int64_t rollout = 0, night = 0;  // Record::id and Record::night
  WindowOutcome outcome = WindowOutcome::done;
  // One word: a Reason, a WaitFor or a StopReason; or `error` (nothing could be planned or read), `clock` (it
  // was opened by a wrong clock), `approval` (it is void, so the start was refused), `prefetch` (a slot could
  // not be written ahead), `images` (one was not built, or not in time), `paused`. Empty for `done`.
  std::string why;
  std::string detail;  // for people
  TimeMs opened = 0, ended = 0;
  int64_t batches = 0, updated = 0, failed = 0;
  std::map<std::string, int64_t> left = {};  // Reason -> nodes that need an update
  int64_t idle_before = 0;                   // nights without an updated node, before this one, without a gap
  std::map<std::string, std::string> unbuilt = {};  // image that was due -> why there is no newer one
  DurationMs building = 0;                          // how much of the window its builds took
};

// What the loop saw last in the night.
struct LastLook {
  std::string wait;               // WaitFor; empty: nothing was waited for
  std::string trouble;            // the error that caused retries; empty: none
  std::vector<std::string> away;  // nodes of the roles that count as unavailable
};

// `record.left` must be up to date.
WindowResult result_of(const Record& record, const LastLook& look, TimeMs now);
// Of a night whose window was not opened because the approval is void.
WindowResult without_approval(const Record& record, const std::string& why, TimeMs now);
// True if the record's last night was noted, and no batch began since.
bool is_noted(const Record& record);
// Nights in a row, this one included, in which no node was updated although one needed it.
int64_t idle_windows(const WindowResult& result);
// An image of which the newest build that was due failed, or had not ended in its window.
struct Unbuilt {
  std::string why;
  TimeMs opened = 0;  // its window; an image built later than that is not one
};
// By name: of the newest window as far as its builds have ended, else of the one before.
std::map<std::string, Unbuilt> unbuilt_images(const Record& record);
// One line about the window that ended in the last day: "night 4: partial (failed), 14 nodes updated, 1
// failed, images were not built (gpu); approved by anna (sudo)". If there was none and the rollout needs one,
// since when none was opened; else "".
std::string window_line(const Record& record, TimeMs now);
// One line for `muster status`; "" if nothing needs an operator.
std::string rollout_problem(const Record& record);

MUSTER_RECORD(WindowResult, rollout, night, outcome, why, detail, opened, ended, batches, updated, failed,
              left, idle_before, opt(unbuilt), opt(building, "building_ms"))

}  // namespace muster::rollout
