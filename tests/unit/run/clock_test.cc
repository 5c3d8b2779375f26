// The wall clock is set while a run is under way, and across a restart: what is measured is measured on the
// other clock.
#include "tests/unit/run/bench.h"

using namespace muster;
using testing::action;
using Bench = testing::RunBench;

namespace {

const ExecutorTiming kTiming;

}  // namespace

TEST_CASE("a clock that is set while nodes are at work does nothing to them", "[run][clock]") {
  const DurationMs step = GENERATE(35 * kMinute, -35 * kMinute, kDay, -kDay);
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.add(action("n2", "image", ActionKind::image));
  for (auto& a : b.plan.actions) a.timeout = 30 * kMinute;
  b.start();
  b.hello("n1", wire::Mode::installed, "boot1");
  b.hello("n2", wire::Mode::ram, "boot1");
  REQUIRE(b.offered("n1") == b.id("n1/configure", 1));
  REQUIRE(b.offered("n2") == b.id("n2/image", 1));
  b.reactor.set_clock(step);
  for (int i = 0; i < 10; ++i) {
    b.reactor.advance(20 * kSecond);
    b.executor->on_contact("n1");
    b.executor->on_contact("n2");
  }
  CHECK(b.powered.empty());
  CHECK(b.looks == 0);
  CHECK(b.offered("n1") == b.id("n1/configure", 1));
  CHECK(b.offered("n2") == b.id("n2/image", 1));
  b.finish("n1");
  b.finish("n2");
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
}

TEST_CASE("silence, and what is decided after it, takes as long as it takes by any clock", "[run][clock]") {
  const DurationMs step = GENERATE(DurationMs{0}, 35 * kMinute, -kDay);
  Bench b;
  b.add(action("n1", "image", ActionKind::image));
  b.plan.actions[0].timeout = 30 * kMinute;
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  b.reactor.set_clock(step);
  b.reactor.advance(kTiming.silent_after - kSecond);
  CHECK(b.looks == 0);
  b.reactor.advance(2 * kSecond);
  CHECK(b.looks == 1);
  b.reactor.advance(kTiming.lost_after - kTiming.silent_after - 5 * kSecond);
  CHECK(b.powered.empty());
  b.reactor.advance(10 * kSecond);
  CHECK(b.powered.size() == 1);
}

TEST_CASE("an operator reads times of the clock on the wall", "[run][clock]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "boot1");
  b.reactor.set_clock(kDay);
  const Json why = b.executor->why("n1");
  const TimeMs until = why["wait"]["until"].get<TimeMs>(), since = why["since"].get<TimeMs>();
  CHECK(until > b.reactor.now());
  CHECK(until <= b.reactor.now() + kTiming.silent_after);
  CHECK(since <= b.reactor.now());
  CHECK(since > b.reactor.now() - kMinute);
  CHECK(b.executor->node_row("n1").last_seen <
        b.reactor.now() - kDay + kMinute);  // it is what was recorded then
}

TEST_CASE("power-ons go on at their distance when the clock is set", "[run][clock]") {
  const DurationMs step = GENERATE(kDay, -kDay);
  Bench b;
  b.plan.limits.power_stagger = 10 * kSecond;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.add(action("n2", "netboot", ActionKind::netboot), {{"n1/netboot", false}});
  b.start();
  REQUIRE(b.powered.size() == 1);
  b.reactor.set_clock(step);
  b.hello("n1", wire::Mode::ram, "boot1");  // it is the next one's turn
  b.reactor.advance(5 * kSecond);
  CHECK(b.powered.size() == 1);
  b.reactor.advance(5 * kSecond);
  CHECK(b.powered.size() == 2);
}

TEST_CASE(
    "what is left of a deadline after a restart is never more than all of it, and never less than the grace",
    "[run][clock]") {
  // Set back before the restart: the intent lies in the future. Set forth: it looks half an hour old. Both
  // within what is taken up again.
  const DurationMs step = GENERATE(DurationMs{0}, 50 * kMinute, -50 * kMinute);
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.plan.actions[0].timeout = 30 * kMinute;
  b.start();
  b.hello("n1", wire::Mode::installed, "boot1");
  b.reactor.advance(kMinute);
  b.executor.reset();
  b.offers.clear();
  b.reactor.set_clock(step);
  b.live();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(100);
  b.executor->on_contact("n1");
  CHECK(b.offered("n1") == b.id("n1/configure", 1));
  const auto talk = [&](DurationMs span) {
    for (DurationMs gone = 0; gone < span; gone += 20 * kSecond) {
      b.reactor.advance(20 * kSecond);
      b.executor->on_contact("n1");
    }
  };
  talk(kTiming.after_resume - 20 * kSecond);
  CHECK(b.row("n1").state == NodeState::installing);
  talk(32 * kMinute);
  CHECK(b.row("n1").state == NodeState::quarantined);
}

TEST_CASE("a clock that was set while a run went on does not end it at the next restart", "[run][clock]") {
  const DurationMs step = GENERATE(kDay, -kDay);
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "boot1");
  b.reactor.set_clock(step);
  for (int i = 0; i < 20; ++i) {  // long enough for the controller's own heartbeat
    b.reactor.advance(20 * kSecond);
    b.executor->on_contact("n1");
  }
  b.restart();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(100);
  CHECK(b.store.run(1)->state == RunState::running);
  b.executor->on_contact("n1");
  CHECK(b.offered("n1") == b.id("n1/configure", 1));
}

TEST_CASE("a node that was heard in the future, by a clock that was set back, is not there because of that",
          "[run][clock]") {
  Bench b;
  b.live();
  b.hello("n1", wire::Mode::installed, "boot1", "sha256:x");
  b.executor.reset();
  b.reactor.set_clock(-kDay);
  b.live();
  b.reactor.advance(2 * kMinute);
  CHECK(b.executor->silent_for("n1") >= 2 * kMinute);
  CHECK(b.executor->silent_since("n1") > 0);
}

TEST_CASE("a controller that is killed time and again was not away for all of it", "[run][clock]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.plan.actions[0].timeout = 3 * 60 * kMinute;
  b.start();
  b.hello("n1", wire::Mode::installed, "boot1");
  for (int i = 0; i < 30; ++i) {  // never up for as long as it takes to its next heartbeat
    b.reactor.advance(4 * kMinute);
    b.executor->on_contact("n1");
    b.restart();
    REQUIRE(b.executor->resume(1).ok());
    b.reactor.advance(100);
    b.executor->on_contact("n1");
  }
  CHECK(b.store.run(1)->state == RunState::running);
}
