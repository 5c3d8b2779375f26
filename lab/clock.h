// The lab's clock: the machine's own monotonic one. Everything that is timed in the lab gets it by
// constructor, so that a test can use another. Thread: any.
#pragma once

#include <chrono>

#include "base/steady.h"

namespace muster::lab {

inline SteadyMs steady_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
}

}  // namespace muster::lab
