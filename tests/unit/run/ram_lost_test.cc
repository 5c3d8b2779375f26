// The RAM system's agent is lost while the hardware is looked at: the machine was reset, or lost power.
#include "tests/unit/run/bench.h"

using namespace muster;
using testing::action;
using Bench = testing::RunBench;

namespace {

const ExecutorTiming kTiming;

// One node, in its RAM system, with the order to look at the hardware on offer.
void discover(Bench& b, bool with_netboot = true) {
  b.plan.kind = PlanKind::discover;
  if (with_netboot) b.add(action("n1", "netboot", ActionKind::netboot));
  Action look = action("n1", "inventory", ActionKind::inventory);
  look.timeout = 10 * kMinute;
  look.max_attempts = 2;
  b.add(look, with_netboot ? std::vector<Dependency>{{"n1/netboot", true}} : std::vector<Dependency>{});
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  REQUIRE(b.offered("n1") == b.id("n1/inventory", 1));
}

}  // namespace

TEST_CASE("a RAM system that is lost while it is looked at is started again, within the attempts",
          "[run][ram_lost]") {
  Bench b;
  discover(b);
  const size_t before = b.powered.size();
  SECTION("it lost power") { b.power_state = PowerState::off; }
  SECTION("it was reset: it is on and says nothing") {}
  for (DurationMs waited = 0; b.powered.size() == before && waited < 5 * kMinute; waited += kSecond)
    b.reactor.advance(kSecond);
  REQUIRE(b.powered.size() == before + 1);
  CHECK(b.row("n1").state != NodeState::quarantined);
  b.power_state = PowerState::on;
  b.hello("n1", wire::Mode::ram, "boot2");
  CHECK(b.offered("n1") == b.id("n1/inventory", 2));
  // Lost once more: its attempts are used up.
  b.reactor.advance(kTiming.lost_after + kTiming.look_again + kMinute);
  CHECK(b.powered.size() == before + 1);
  CHECK(b.row("n1").state == NodeState::quarantined);
}

TEST_CASE("a system that this plan did not start is not netbooted for being silent", "[run][ram_lost]") {
  Bench b;
  discover(b, false);
  b.reactor.advance(kTiming.lost_after + kTiming.look_again + kMinute);
  CHECK(b.powered.empty());
}
