// muster rollout start --wait: opens a window, again if it is refused for a reason that passes, and waits
// until nothing more begins in it.
#pragma once

#include <functional>

#include "base/json.h"
#include "base/result.h"
#include "base/steady.h"

namespace muster::cli {

struct WindowCalls {
  std::function<Result<Json>(DurationMs late)> start;
  std::function<Result<Json>()> status;
  std::function<SteadyMs()> now;
  // `why` is not empty when a call failed and is retried.
  std::function<void(DurationMs span, const std::string& why)> sleep;
};

struct WaitTimes {
  DurationMs late = 0;   // how long ago the window was due
  DurationMs limit = 0;  // of all waiting
};

struct WaitResult {
  Json status;
  int exit = 0;
};

// An error: the window was not opened, the controller was away for an hour, or `timeout`: the limit was
// reached.
Result<WaitResult> wait_for_window(const WindowCalls& calls, const WaitTimes& times);

// How long ago the timer elapsed for which systemd started this process; 0: it was not started by a timer. A
// unit that is retried, or started because its timer was restarted, has the time of the timer's last regular
// elapse.
DurationMs since_timer(const char* trigger_monotonic_usec, int64_t monotonic_ms);

}  // namespace muster::cli
