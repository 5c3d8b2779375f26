// The lab's clock: the host's monotonic clock. Classes with timing take a clock in their constructor, so that
// tests can replace it. Thread-safe.
#pragma once

#include <chrono>

#include "base/steady.h"

namespace muster::lab {

inline SteadyMs steady_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
}

}  // namespace muster::lab
