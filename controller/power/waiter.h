// Waiter: how a blocking driver reads the time and waits. In production the monotonic clock; in tests a clock
// that sleep() advances. Thread: one per driver object.
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
// Returns the target's waiter, else the real one.
Waiter waiter_of(const PowerTarget& target);

// Returns how much of a call's remaining time to reserve while waiting for an order's effect: half of it if
// the order may not have arrived, so that the caller can read the state and repeat the order.
inline DurationMs kept_for_another_try(bool arrived, DurationMs reserve, DurationMs left) {
  return arrived ? reserve : std::max(reserve, left / 2);
}

}  // namespace muster
