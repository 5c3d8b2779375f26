#include "controller/power/waiter.h"

#include "controller/ports/power.h"

#include <chrono>
#include <thread>

namespace muster {

Waiter real_waiter() {
  return {[] {
            const auto since = std::chrono::steady_clock::now().time_since_epoch();
            return static_cast<TimeMs>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
          },
          [](DurationMs span) { std::this_thread::sleep_for(std::chrono::milliseconds(span)); }};
}

Waiter waiter_of(const PowerTarget& target) { return target.waiter ? *target.waiter : real_waiter(); }

}  // namespace muster
