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

void refusals_that_pass_are_waited_for(RoughHarness& h) {
  h.refuses(2);
  ok(h.power().on(kCall));
  CHECK(h.machine_runs());
  h.refuses(2);
  ok(h.power().off(kCall, false));
  CHECK_FALSE(h.machine_runs());
  CHECK(h.boots() == "d");
}

void a_refused_on_is_nothing_done(RoughHarness& h) {
  h.refuses(10'000);
  CHECK(h.power().on(kCall).error().code == Code::unavailable);
  CHECK_FALSE(h.machine_runs());
  CHECK(h.boots().empty());
}

void a_refused_off_is_nothing_done(RoughHarness& h) {
  ok(h.power().on(kCall));
  h.refuses(10'000);
  CHECK(h.power().off(kCall, false).error().code == Code::unavailable);
  CHECK(h.power().off(kCall, true).error().code == Code::unavailable);
  CHECK(h.machine_runs());
}

// Given twice, an order would restart a machine that runs by now.
void a_lost_answer_is_looked_for(RoughHarness& h) {
  h.loses_answers(1);
  ok(h.power().on(kCall));
  CHECK(h.machine_runs());
  h.loses_answers(1);
  ok(h.power().off(kCall, false));
  CHECK_FALSE(h.machine_runs());
  CHECK(h.boots() == "d");
}

void a_lost_order_is_given_again(RoughHarness& h) {
  h.loses_orders(1);
  ok(h.power().on(kCall));
  CHECK(h.machine_runs());
  h.loses_orders(1);
  ok(h.power().off(kCall, false));
  CHECK_FALSE(h.machine_runs());
  CHECK(h.boots() == "d");
}

// A caller that relies on it writes to the disk of a machine that runs.
void an_ignored_off_is_a_timeout(RoughHarness& h) {
  ok(h.power().on(kCall));
  h.ignores_orders();
  for (const bool graceful : {false, true}) {
    const Status off = h.power().off(kCall, graceful);
    REQUIRE_FALSE(off.ok());
    CHECK(off.error().code == Code::timeout);
  }
  CHECK_FALSE(boot_from_network(h.power(), kCall).ok());
  CHECK(h.machine_runs());
  CHECK(*h.power().state(kCall) == PowerState::on);
  CHECK(h.boots() == "d");
}

void old_states_are_waited_out(RoughHarness& h) {
  h.shows_old_states();
  for (int i = 0; i < 3; ++i) {
    ok(h.power().on(kCall));
    CHECK(h.machine_runs());
    ok(h.power().off(kCall, false));
    CHECK_FALSE(h.machine_runs());
  }
  CHECK(h.boots() == "ddd");
}

void a_forgotten_network_boot_is_no_ok(RoughHarness& h) {
  if (!h.forgets_network_boot()) return;
  ok(h.power().on(kCall));
  const Status once = h.power().boot_once_network(kCall);
  REQUIRE_FALSE(once.ok());
  CHECK(once.error().code == Code::failed);
  CHECK(h.machine_runs());
  CHECK_FALSE(boot_from_network(h.power(), kCall).ok());
  CHECK_FALSE(h.machine_runs());  // off, and not on into its disk
  CHECK(h.boots() == "d");
}

}  // namespace muster::conformance
