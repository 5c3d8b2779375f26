// Waiter: how a blocking driver reads the time and waits. Real: the monotonic clock; tests: a clock that
// sleeping moves. Thread: one per driver object.
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

// How much of the time `left` of a call is reserved while an order is waited for: half of it if the order may
// not have arrived, so that the caller can read the state and repeat it.
inline DurationMs kept_for_another_try(bool arrived, DurationMs reserve, DurationMs left) {
  return arrived ? reserve : std::max(reserve, left / 2);
}

}  // namespace muster
