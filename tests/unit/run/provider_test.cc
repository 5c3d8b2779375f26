// Nodes whose provider installs them: asked only where the plan says so, once while it is at work, and waited
// for as long as that takes.
#include "tests/unit/run/bench.h"

using namespace muster;
using testing::action;
using Bench = testing::RunBench;

namespace {

const Json kOrder = {{"image", "debian12"}, {"os", "debian-12"}};

// n1 was never seen.
void discover(Bench& b) {
  b.rented = {"n1"};
  b.plan.kind = PlanKind::discover;
  b.add(action("n1", "netboot", ActionKind::netboot, {{"reinstall", kOrder}}));
  b.plan.actions[0].timeout = 110 * kMinute;
  b.add(action("n1", "inventory", ActionKind::inventory), {{"n1/netboot", true}});
}
void answers(Bench& b, Status status) {
  REQUIRE(b.reinstalled);
  const auto done = std::move(b.reinstalled);
  b.reinstalled = nullptr;
  done(std::move(status));
  b.reactor.advance(200);
}

}  // namespace

TEST_CASE("a provider's installation takes its time, and the boot has its own after it", "[run][phy]") {
  Bench b;
  discover(b);
  b.start();
  REQUIRE(b.reinstalls.size() == 1);
  Json order = b.reinstalls[0];
  CHECK(order["approval"] == plan_digest(b.plan));
  order.erase("approval");
  CHECK(order == kOrder);
  CHECK(b.armed.count("n1") == 1);
  b.reactor.advance(70 * kMinute);  // longer than any boot
  CHECK(b.reinstalls.size() == 1);
  CHECK(b.ended.empty());
  answers(b, Ok{});
  b.reactor.advance(10 * kMinute);
  CHECK(b.reinstalls.size() == 1);
  b.hello("n1", wire::Mode::ram, "ram1");
  CHECK(b.offered("n1") == b.id("n1/inventory", 1));
  CHECK(b.powered.empty());
  CHECK(b.offers.at("n1").kind == wire::OrderKind::inventory);
}

TEST_CASE("a RAM system that is there before its provider's answer counts", "[run][phy]") {
  Bench b;
  discover(b);
  b.start();
  b.hello("n1", wire::Mode::ram, "ram1");
  CHECK(b.offered("n1") == b.id("n1/inventory", 1));
}

TEST_CASE("what a provider refuses for good quarantines the node, what passes is retried", "[run][phy]") {
  Bench b;
  discover(b);
  b.start();
  SECTION("for good") {
    answers(b, fail(Code::denied, "people are at the machine"));
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.reinstalls.size() == 1);
  }
  SECTION("for now") {
    answers(b, fail(Code::unavailable, "locked"));
    b.reactor.advance(kMinute);
    CHECK(b.reinstalls.size() == 2);
    CHECK(b.row("n1").state != NodeState::quarantined);
  }
}

TEST_CASE("an order that the provider never takes is retried for as long as the plan says, not for ever",
          "[run][phy]") {
  Bench b;
  discover(b);
  b.start();
  for (DurationMs waited = 0; waited < 8 * 60 * kMinute && b.row("n1").state != NodeState::quarantined;
       waited += kMinute) {
    if (b.reinstalled) answers(b, fail(Code::unavailable, "locked"));
    b.reactor.advance(kMinute);
  }
  CHECK(b.row("n1").state == NodeState::quarantined);
}

TEST_CASE("a controller that comes back asks its provider for the same installation again", "[run][phy]") {
  Bench b;
  discover(b);
  b.start();
  REQUIRE(b.reinstalls.size() == 1);
  const int64_t run = b.executor->run_id();
  b.restart();
  REQUIRE(b.executor->resume(run).ok());
  b.reactor.advance(5 * kSecond);
  CHECK(b.reinstalls.size() == 2);
  CHECK(b.rearmed == std::vector<std::string>{"n1"});
  CHECK(b.powered.empty());
}

TEST_CASE("without a word in the plan a rented node is never installed by its provider", "[run][phy]") {
  Bench b;
  b.rented = {"n1"};
  b.plan.kind = PlanKind::reimage;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.add(action("n1", "image", ActionKind::image), {{"n1/netboot", true}});
  b.live();
  b.executor->on_hello({"n1", wire::Mode::installed, "old1", ""});
  b.reactor.advance(100);
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  b.reactor.advance(200);
  REQUIRE(b.offers.count("n1"));
  CHECK(b.offers["n1"].kind == wire::OrderKind::kexec);
  b.reactor.advance(3 * 60 * kMinute);  // its agent never answers
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.reinstalls.empty());
  CHECK(b.powered.empty());
}

// What muster wrote is not given up for a boot that was slow.
TEST_CASE("a rented node whose image is written is never installed by its provider again", "[run][phy]") {
  Bench b;
  b.rented = {"n1"};
  b.plan.kind = PlanKind::install;
  b.add(action("n1", "netboot", ActionKind::netboot, {{"reinstall", kOrder}}));
  b.plan.actions[0].timeout = 110 * kMinute;
  b.add(action("n1", "image", ActionKind::image), {{"n1/netboot", true}});
  b.add(action("n1", "boot", ActionKind::boot_disk, {{"digest", "d"}}), {{"n1/image", true}});
  b.start();
  REQUIRE(b.reinstalls.size() == 1);
  answers(b, Ok{});
  b.hello("n1", wire::Mode::ram, "ram1");
  b.finish("n1");
  b.finish("n1");                       // told to restart from its disk
  b.reactor.advance(5 * 60 * kMinute);  // nothing comes
  CHECK(b.reinstalls.size() == 1);
  CHECK(b.row("n1").state == NodeState::quarantined);
}

TEST_CASE("a machine whose installed system answers meanwhile is not installed by its provider",
          "[run][phy]") {
  Bench b;
  discover(b);
  b.live();
  b.executor->on_hello({"n1", wire::Mode::installed, "old1", ""});
  b.reactor.advance(100);
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  b.reactor.advance(20 * kSecond);
  CHECK(b.reinstalls.empty());
  CHECK(b.powered.empty());
  CHECK(b.offers.count("n1") == 0);  // nor is it asked to stop
  CHECK(b.row("n1").state == NodeState::quarantined);
}
