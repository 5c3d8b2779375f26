// What the targets of BMC drivers share: a clock that only waiting and requests advance, the BMC of a node,
// and the word of an input for what its driver is to do.
#pragma once

#include <memory>
#include <string>

#include "controller/power/logins.h"
#include "controller/power/waiter.h"
#include "controller/ports/power.h"
#include "tests/fuzz/targets.h"

namespace muster::fuzz {

using Clock = std::shared_ptr<TimeMs>;
inline Clock new_clock() { return std::make_shared<TimeMs>(1'000'000); }

inline Waiter waiter_on(const Clock& clock) {
  return {[clock] { return *clock; }, [clock](DurationMs span) { *clock += span; }};
}

inline PowerTarget bmc_of_node01(const Clock& clock) {
  PowerTarget target;
  target.node = NodeName("node01");
  target.address = "10.20.1.11";
  target.user = "admin";
  target.password = "password";
  target.logins = std::make_shared<Logins>(waiter_on(clock).now);
  return target;
}

inline void carry_out(Power& power, const std::string& what, DurationMs deadline) {
  const auto rejected = [](const Error& error) { demand(!error.message.empty(), "an error without words"); };
  const auto done = [&](const Status& status) {
    if (!status.ok()) rejected(status.error());
  };
  if (what == "on") return done(power.on(deadline));
  if (what == "off" || what == "polite") return done(power.off(deadline, what == "polite"));
  if (what == "boot") return done(power.boot_once_network(deadline));
  if (what == "describe") {
    const auto described = power.describe(deadline);
    return described.ok() ? void() : rejected(described.error());
  }
  const auto state = power.state(deadline);
  if (!state.ok()) rejected(state.error());
}

}  // namespace muster::fuzz
