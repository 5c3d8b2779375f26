// Retries around a power driver: what drivers must not do themselves.
//
// `unavailable` (nothing was done) is retried with growing, jittered pauses until the deadline of the call.
// `timeout` (outcome unknown) is never repeated blindly: the state is read first; the order is sent once more
// only if it did not happen. Everything else is returned as it is.
#pragma once

#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

// `seed` makes the jitter: nodes that fail together should not come back together.
std::unique_ptr<Power> with_retries(std::unique_ptr<Power> driver, Waiter waiter, uint64_t seed);
// A driver whose every Power has retries.
PowerDriver with_retries(PowerDriver driver);

}  // namespace muster
