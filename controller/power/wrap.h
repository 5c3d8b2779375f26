// Adds retries to a power driver; drivers must not retry themselves.
//
// `unavailable` (nothing was done) is retried with growing, jittered pauses until the deadline of the call; a
// reading only for PowerTarget::retries_for, if that is set.
// `timeout` (outcome unknown) is never repeated blindly: the state is read first; the order is sent once more
// only if it had no effect. All other results are returned unchanged.
#pragma once

#include <optional>

#include "controller/ports/power.h"
#include "controller/power/waiter.h"

namespace muster {

// Wraps `driver`. `seed` determines the jitter: nodes that fail together should not retry together.
std::unique_ptr<Power> with_retries(std::unique_ptr<Power> driver, Waiter waiter, uint64_t seed,
                                    std::optional<DurationMs> retries_for = {});
PowerDriver with_retries(PowerDriver driver);

}  // namespace muster
