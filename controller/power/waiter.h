// Waiter: how a blocking driver knows the time and lets it pass. Real: the monotonic clock; tests: a clock
// that sleeping moves. Thread: one per driver object.
#pragma once

#include <functional>

#include "base/time.h"

namespace muster {

struct Waiter {
  std::function<TimeMs()> now;  // monotonic, milliseconds
  std::function<void(DurationMs)> sleep;
};
Waiter real_waiter();

}  // namespace muster
