// Waiter: how a blocking driver knows the time and lets it pass. Real: the monotonic clock; tests: a clock
// that sleeping moves. Thread: one per driver object.
#pragma once

#include <algorithm>
#include <functional>

#include "base/time.h"

namespace muster {

struct PowerTarget;

struct Waiter {
  std::function<TimeMs()> now;  // monotonic, milliseconds
  std::function<void(DurationMs)> sleep;
};
Waiter real_waiter();
// The one that the target names, else the real one.
Waiter waiter_of(const PowerTarget& target);

// What is kept of the time `left` of a call while an order is waited for. Of one of which nobody knows
// whether it arrived half of it, so that the caller can look and give it again.
inline DurationMs kept_for_another_try(bool arrived, DurationMs reserve, DurationMs left) {
  return arrived ? reserve : std::max(reserve, left / 2);
}

}  // namespace muster
