// A Waiter over the real clock whose pauses take no time: the clock jumps. For drivers tested against real
// programs.
#pragma once

#include <atomic>
#include <memory>

#include "controller/power/waiter.h"

namespace muster::testing {

inline Waiter jump_waiter() {
  auto slept = std::make_shared<std::atomic<DurationMs>>(0);
  const auto now = real_waiter().now;
  return {[slept, now] { return now() + *slept; }, [slept](DurationMs span) { *slept += span; }};
}

}  // namespace muster::testing
