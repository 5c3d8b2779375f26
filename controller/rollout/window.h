// The window of a rollout: a span of time in which batches may begin. It is measured by a clock that is not
// set; only after a reboot of the controller's machine the wall clock has to do. Where the wall clock was set
// since the window was opened, it was opened by a wrong clock: the window then ends at the time of day at
// which it was to end, and at once if the right clock shows a time of day outside it. Pure functions, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/record.h"
#include "base/steady.h"
#include "base/time.h"
#include "controller/rollout/rebuild.h"

namespace muster::rollout {

// A time that can be stored: by CLOCK_BOOTTIME of one boot of the machine.
struct BootTime {
  std::string boot;  // id of the boot; empty: unknown, and equal to none
  DurationMs ms = 0;
};
struct Clocks {
  TimeMs wall = 0;
  BootTime boot;
};

struct Window {
  TimeMs opened = 0;  // by the wall clock, corrected when that is set
  DurationMs length = 0;
  BootTime since;                                     // when it was opened
  DurationMs clock_set = 0;                           // by how much the wall clock was set since then
  int64_t first_batch = 0;                            // number of the first batch that counts to it
  std::map<std::string, std::string> unwritten = {};  // node of a next batch -> why its slot was not written
  Builds builds = {};                                 // images that were due when it was opened
  bool preparing = false;                             // no batch begins before the builds have ended
};

// A longer window has several nights: a start this long after the last one begins the next.
constexpr DurationMs kAnotherWindow = 20 * 60 * kMinute;
// Steps of the wall clock below this are how a right clock is kept right.
constexpr DurationMs kClockSet = kMinute;
constexpr DurationMs kLongestWindow = 7 * kDay;

// Of a record from before windows were recorded, of which only the end by the wall clock is known. Length 0
// if that is over, or too far away to be right.
Window window_of_older(TimeMs until, const Clocks& now);
// Returns the time since it was opened; negative if the wall clock reads earlier, after a reboot.
DurationMs age_of(const Window& window, const Clocks& now);
// Returns how long it may be open in total.
DurationMs span_of(const Window& window);
TimeMs end_of(const Window& window);
bool is_open(const Window& window, const Clocks& now);
// True until the next start begins another night.
bool is_same_window(const Window& window, const Clocks& now);
// Returns the window with the times that the wall clock gives now, nullopt if it was not set.
std::optional<Window> corrected(const Window& window, const Clocks& now);

// Notices that the wall clock was set forward, or that the machine stood still: at that moment a timer of the
// wall clock elapses, however long ago it was due.
class ClockWatch {
 public:
  void sample(TimeMs wall, SteadyMs now);  // every minute
  // By how much since then, 0 if by less than kClockSet. It knows nothing from before the first sample.
  DurationMs forward_since(SteadyMs then, TimeMs wall, SteadyMs now) const;

 private:
  std::map<SteadyMs, DurationMs> ahead_;  // of the wall clock before the steady one, from then on
};

MUSTER_RECORD(BootTime, boot, ms)
MUSTER_RECORD(Window, opened, length, since, opt(clock_set), opt(first_batch), sparse(unwritten),
              sparse(builds), sparse(preparing))

}  // namespace muster::rollout
