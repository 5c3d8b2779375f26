// The host's clocks. Logic takes its time from a Reactor or from a clock in its constructor; these are for
// what assembles it, and for adapters. Thread-safe.
#pragma once

#include <time.h>

#include <chrono>

#include "base/steady.h"
#include "base/time.h"

namespace muster {

// Since an arbitrary moment; never set back.
inline int64_t monotonic_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}
inline SteadyMs steady_now() { return {monotonic_ms()}; }
// Since the boot, also while the machine is suspended; the same for all processes.
inline DurationMs since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<DurationMs>(now.tv_sec) * kSecond + now.tv_nsec / 1'000'000;
}
inline TimeMs wall_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace muster
