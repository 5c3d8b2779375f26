#include "tests/conformance/power_suite.h"

#include "tests/catch.h"

namespace muster::conformance {

namespace {

constexpr DurationMs kCall = 2 * kMinute;

void ok(const Status& status) {
  INFO((status.ok() ? "" : status.error().message));
  REQUIRE(status.ok());
}

}  // namespace

void switches_on_and_off(PowerHarness& h) {
  CHECK(*h.power().state(kCall) == PowerState::off);
  ok(h.power().on(kCall));
  CHECK(h.machine_runs());
  CHECK(*h.power().state(kCall) == PowerState::on);
  ok(h.power().off(kCall, false));
  CHECK_FALSE(h.machine_runs());
  CHECK(*h.power().state(kCall) == PowerState::off);
}

void asking_for_what_holds_is_ok(PowerHarness& h) {
  ok(h.power().off(kCall, false));
  ok(h.power().off(kCall, true));
  ok(h.power().on(kCall));
  const std::string boots = h.boots();
  ok(h.power().on(kCall));
  CHECK(h.machine_runs());
  CHECK(h.boots() == boots);
}

void polite_off_becomes_forced(PowerHarness& h) {
  ok(h.power().on(kCall));
  ok(h.power().off(kCall, true));
  CHECK_FALSE(h.machine_runs());
  h.machine_ignores_polite_requests();
  ok(h.power().on(kCall));
  ok(h.power().off(kCall, true));
  CHECK_FALSE(h.machine_runs());
}

void network_boot_holds_once(PowerHarness& h) {
  ok(h.power().boot_once_network(kCall));
  ok(h.power().boot_once_network(kCall));
  CHECK_FALSE(h.machine_runs());  // sets, never switches
  ok(h.power().on(kCall));
  CHECK(h.boots() == "n");
  ok(h.power().off(kCall, false));
  ok(h.power().on(kCall));
  CHECK(h.boots() == "nd");
}

void a_dead_machine_is_a_timeout(PowerHarness& h) {
  h.machine_is_dead();
  const Status status = h.power().on(kCall);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Code::timeout);
  CHECK(*h.power().state(kCall) == PowerState::off);
}

void power_cycles_at_once(PowerHarness& h) {
  ok(h.power().on(kCall));
  for (int i = 0; i < 3; ++i) {
    ok(h.power().boot_once_network(kCall));
    ok(h.power().off(kCall, false));
    ok(h.power().on(kCall));
  }
  CHECK(h.boots() == "dnnn");
}

void network_boot_is_refused(PowerHarness& h) {
  ok(h.power().on(kCall));
  const std::string boots = h.boots();
  CHECK(h.power().can_boot_network(kCall).error().code == Code::invalid);
  CHECK(h.power().boot_once_network(kCall).error().code == Code::invalid);
  CHECK(boot_from_network(h.power(), kCall).error().code == Code::invalid);
  CHECK(h.machine_runs());
  CHECK(h.boots() == boots);
}

}  // namespace muster::conformance
