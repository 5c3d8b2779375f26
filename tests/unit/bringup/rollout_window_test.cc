// When a window is open for the loop of a rollout: clocks that are set, restarts, late starts.
#include "tests/unit/bringup/rollout_service_fixture.h"

using namespace muster;
using namespace muster::rollout;
using namespace muster::rollout::service_test;

namespace {

constexpr DurationMs kHour = 60 * kMinute;

struct Windows : World {
  explicit Windows(size_t nodes) : World(nodes) {
    cluster.spec.window = 6 * kHour;
    REQUIRE(approve().ok());
  }
  // Each run takes an hour; returns how long after the start the last one began.
  DurationMs last_begun(DurationMs watched) {
    const SteadyMs start = reactor.steady();
    DurationMs last = 0;
    size_t runs = 0;
    while (reactor.steady() - start < watched) {
      if (cluster.runs.size() > runs) runs = cluster.runs.size(), last = reactor.steady() - start;
      reactor.advance(kHour);
      if (!cluster.runs.empty() && !run().over) end_run();
    }
    return last;
  }
};

}  // namespace

TEST_CASE("rollout service: a clock that was days off at the start does not keep the window open",
          "[rollout][service][window]") {
  for (const int days : {0, 1, 365, -365}) {
    CAPTURE(days);
    Windows w(60);
    w.reactor.set_clock(days * kDay);
    REQUIRE(w.start().ok());
    w.reactor.advance(kMinute);
    w.reactor.set_clock(-days * kDay);
    const TimeMs end = w.reactor.now() - kMinute + w.cluster.spec.window;
    w.reactor.advance(2 * RolloutService::kAgain);
    const Json status = w.status();
    CHECK(status["window_open"] == true);
    CHECK(std::abs(status["window_until"].get<TimeMs>() - end) < 2 * kSecond);
    CHECK(status["clock_set_ms"] == -days * kDay);
    CHECK(w.last_begun(30 * kHour) < 6 * kHour);
    CHECK(w.cluster.runs.size() > 4);
    CHECK(w.status()["window_open"] == false);
    REQUIRE(w.start().value()["begun"] == true);
    CHECK_FALSE(w.run().over);
  }
}

TEST_CASE("rollout service: a window opened by day by a wrong clock is closed",
          "[rollout][service][window]") {
  Windows w(20);
  w.reactor.set_clock(10 * kHour);  // the timer's 22:00 was noon
  REQUIRE(w.start().ok());
  w.reactor.set_clock(-10 * kHour);
  w.end_run();
  CHECK(w.cluster.runs.size() == 1);
  CHECK(w.status()["window_open"] == false);
  CHECK(w.status()["last_window"]["why"] == "clock");
  w.reactor.advance(10 * kHour);
  REQUIRE(w.start().value()["begun"] == true);
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: a clock set back in a window does not make it longer",
          "[rollout][service][window]") {
  for (const DurationMs back : {5 * kHour, 24 * kHour}) {
    Windows w(60);
    REQUIRE(w.start().ok());
    w.reactor.advance(3 * kHour);
    w.reactor.set_clock(-back);
    CHECK(w.last_begun(30 * kHour) <= 3 * kHour);
  }
}

TEST_CASE("rollout service: a window goes on over a restart of musterd, and over a reboot",
          "[rollout][service][window]") {
  for (const bool reboot : {false, true}) {
    CAPTURE(reboot);
    Windows w(60);
    w.reactor.set_clock(reboot ? 0 : kDay);
    REQUIRE(w.start().ok());
    w.reactor.advance(kHour);
    if (!reboot) w.reactor.set_clock(-kDay);  // while musterd was away
    reboot ? w.reboot() : w.kill();
    CHECK(w.status()["window_open"] == true);
    const DurationMs last = w.last_begun(20 * kHour);
    CHECK(last > 2 * kHour);
    CHECK(last < 5 * kHour);
  }
}

TEST_CASE("rollout service: a reboot with a clock that lost its time opens nothing",
          "[rollout][service][window]") {
  Windows w(60);
  REQUIRE(w.start().ok());
  w.reactor.advance(7 * kHour);
  w.end_run();
  const size_t runs = w.cluster.runs.size();
  w.reactor.set_clock(-30 * 365 * kDay);
  w.reboot();
  w.reactor.advance(kHour);
  CHECK(w.cluster.runs.size() == runs);
  CHECK(w.status()["window_open"] == false);
}

TEST_CASE("rollout service: a window that is opened late ends when it was to end",
          "[rollout][service][window]") {
  Windows w(60);
  REQUIRE(w.start({4 * kHour}).ok());
  CHECK(w.status()["window_until"] == w.service->record()->window.opened + 2 * kHour);
  CHECK(w.last_begun(20 * kHour) < 2 * kHour);
  CHECK(code_of(w.start({6 * kHour})) == Code::denied);
  CHECK(w.service->record()->night == 1);
}

TEST_CASE("rollout service: a timer that elapsed because the clock was set forward begins nothing by day",
          "[rollout][service][window]") {
  for (const DurationMs forward : {12 * kHour, 365 * kDay}) {
    Windows w(6);
    w.reactor.set_clock(-forward);  // or the machine was paused that long
    w.restart();
    w.reactor.advance(kHour);
    w.reactor.set_clock(forward);
    CHECK(code_of(w.start({0, true})) == Code::denied);
    w.reactor.advance(20 * kMinute);
    CHECK(code_of(w.start({20 * kMinute, true})) == Code::denied);  // tried again
    w.reactor.advance(kHour);
    CHECK(w.start({0, true}).ok());  // it is time
    CHECK(w.service->record()->window.length == 6 * kHour);
  }
  Windows w(6);
  w.reactor.advance(kHour);
  w.reactor.set_clock(10 * kMinute);  // NTP, at 22:00
  REQUIRE(w.start({0, true}).ok());
  CHECK(w.service->record()->window.length == 6 * kHour - 10 * kMinute);
  Windows operators(6);
  operators.reactor.advance(kHour);
  operators.reactor.set_clock(kDay);
  CHECK(operators.start().ok());
}

TEST_CASE("rollout service: what a start is refused for says whether a retry helps",
          "[rollout][service][window]") {
  Windows w(4);
  w.cluster.broken = fail(Code::unavailable, "the state of the nodes cannot be read");
  CHECK(code_of(w.start()) == Code::unavailable);
  w.cluster.broken.reset();
  w.cluster.now.rebuilt_images = true;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.now.images["gpu"].digest = "newer";
  w.reactor.advance(kDay);
  CHECK(code_of(w.start()) == Code::conflict);
  w.end_run();
  const auto again = w.start({kHour});
  REQUIRE(again.ok());
  CHECK(again.value()["window_until"] == w.reactor.now() - 100 + 5 * kHour);
  CHECK(w.cluster.runs.size() == 2);
}
