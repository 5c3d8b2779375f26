// The lab's clock: the machine's own, which only goes on. Everything that is timed here takes it by
// constructor, so that a test has another. Thread: any.
#pragma once

#include <chrono>

#include "base/steady.h"

namespace muster::lab {

inline SteadyMs steady_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
}

}  // namespace muster::lab
