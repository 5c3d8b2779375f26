// How long a window is open, by which clock.
#include "controller/rollout/window.h"

#include "tests/catch.h"

using namespace muster;
using namespace muster::rollout;

namespace {

constexpr DurationMs kHour = 60 * kMinute;
constexpr TimeMs kTen = 1'700'000'000'000;  // 22:00

struct Machine {
  Clocks now{kTen, {"b1", 5'000'000}};
  void pass(DurationMs span) { now.wall += span, now.boot.ms += span; }
  void set(DurationMs by) { now.wall += by; }
};

Window opened(const Machine& m, DurationMs length) { return {m.now.wall, length, m.now.boot}; }

}  // namespace

TEST_CASE("rollout window: a right clock", "[rollout][window]") {
  Machine m;
  const Window w = opened(m, 6 * kHour);
  CHECK(is_open(w, m.now));
  CHECK(end_of(w) == kTen + 6 * kHour);
  m.pass(6 * kHour - 1);
  CHECK(is_open(w, m.now));
  CHECK_FALSE(corrected(w, m.now));
  m.pass(1);
  CHECK_FALSE(is_open(w, m.now));
}

TEST_CASE("rollout window: opened by a clock that is days off, it ends after its length",
          "[rollout][window]") {
  for (const int days : {1, -1, 365, -365, 10000}) {
    CAPTURE(days);
    Machine m;
    m.set(days * kDay);
    Window w = opened(m, 6 * kHour);
    m.pass(kMinute);
    m.set(-days * kDay);
    CHECK(is_open(w, m.now));
    const auto right = corrected(w, m.now);
    REQUIRE(right);
    CHECK(right->opened == kTen);
    CHECK(end_of(*right) == kTen + 6 * kHour);
    CHECK(right->clock_set == -days * kDay);
    CHECK_FALSE(corrected(*right, m.now));
    m.pass(6 * kHour - 2 * kMinute);
    CHECK(is_open(*right, m.now));
    m.pass(kMinute);
    CHECK_FALSE(is_open(*right, m.now));
    CHECK_FALSE(is_open(w, m.now));
  }
}

TEST_CASE("rollout window: opened by a clock that is hours off, it is open at its time of day only",
          "[rollout][window]") {
  const auto after = [](DurationMs ahead) {
    Machine m;
    m.set(ahead);
    const Window w = opened(m, 6 * kHour);
    m.set(-ahead);
    return span_of(corrected(w, m.now).value_or(w));
  };
  CHECK(after(2 * kHour) == 0);              // in fact at 20:00
  CHECK(after(10 * kHour + 3 * kDay) == 0);  // in fact by day
  CHECK(after(20 * kMinute) == 6 * kHour);   // little too early
  CHECK(after(-2 * kHour) == 4 * kHour);     // in fact at midnight, and due to end at four
  CHECK(after(-7 * kHour) == 0);             // in fact in the morning
  CHECK(after(-30 * kSecond) == 6 * kHour);  // not set, but kept right
}

TEST_CASE("rollout window: a machine that stood still for hours does not go on by day", "[rollout][window]") {
  Machine m;  // a paused virtual machine: no clock of it goes, and then it is set
  const Window w = opened(m, 6 * kHour);
  m.pass(kHour);
  m.set(10 * kHour);
  CHECK_FALSE(is_open(*corrected(w, m.now), m.now));
}

TEST_CASE("rollout window: set back and forth again, it is what it was", "[rollout][window]") {
  Machine m;
  Window w = opened(m, 6 * kHour);
  m.set(-3 * kHour);
  w = *corrected(w, m.now);
  CHECK(span_of(w) == 0);
  m.set(3 * kHour);
  w = *corrected(w, m.now);
  CHECK(span_of(w) == 6 * kHour);
  CHECK(w.opened == kTen);
}

TEST_CASE("rollout window: one of days has each time of day", "[rollout][window]") {
  Machine m;
  Window w = opened(m, 3 * kDay);
  CHECK(is_same_window(w, m.now));
  m.set(-5 * kHour);
  w = *corrected(w, m.now);
  CHECK(span_of(w) == 3 * kDay);
  m.pass(kAnotherWindow);
  CHECK(is_open(w, m.now));
  CHECK_FALSE(is_same_window(w, m.now));
}

TEST_CASE("rollout window: after a reboot the wall clock counts", "[rollout][window]") {
  Machine m;
  const Window w = opened(m, 6 * kHour);
  m.pass(2 * kHour);
  m.now.boot = {"b2", 60'000};
  CHECK(is_open(w, m.now));
  CHECK(age_of(w, m.now) == 2 * kHour);
  CHECK_FALSE(corrected(w, m.now));
  m.set(-3 * kHour);  // it cannot be before it was opened
  CHECK_FALSE(is_open(w, m.now));
  CHECK_FALSE(is_same_window(w, m.now));
  m.set(3 * kHour + 4 * kHour);
  CHECK_FALSE(is_open(w, m.now));
  m.now.boot.boot.clear();  // of which nothing is known
  Window unknown = w;
  unknown.since.boot.clear();
  CHECK_FALSE(is_open(unknown, m.now));
}

TEST_CASE("rollout window: of an older record only the end is known", "[rollout][window]") {
  Machine m;
  const Window w = window_of_older(kTen + kHour, m.now);
  CHECK(is_open(w, m.now));
  m.pass(kHour);
  CHECK_FALSE(is_open(w, m.now));
  CHECK(window_of_older(kTen, m.now).length == 0);
  CHECK(window_of_older(kTen + 365 * kDay, m.now).length == 0);  // of a clock that was a year ahead
  CHECK_FALSE(is_open(Window{}, m.now));
}

TEST_CASE("rollout window: the wall clock that goes forward alone is noticed", "[rollout][window]") {
  ClockWatch watch;
  TimeMs wall = kTen;
  SteadyMs now{1'000'000'000'000};
  const auto pass = [&](DurationMs span) {
    for (DurationMs at = 0; at < span; at += kMinute) {
      wall += kMinute;
      now += kMinute;
      watch.sample(wall, now);
    }
  };
  CHECK(watch.forward_since(now, wall, now) == 0);
  pass(kDay);
  CHECK(watch.forward_since(now - kHour, wall, now) == 0);
  wall += 10 * kHour;
  CHECK(watch.forward_since(now - 2 * kMinute, wall, now) == 10 * kHour);
  pass(kHour);
  CHECK(watch.forward_since(now - 2 * kHour, wall, now) == 10 * kHour);
  CHECK(watch.forward_since(now - 30 * kMinute, wall, now) == 0);
  wall -= 3 * kHour;
  CHECK(watch.forward_since(now - 2 * kMinute, wall, now) == 0);
  pass(9 * kDay);
  CHECK(watch.forward_since(now - kLongestWindow, wall, now) == 0);
}
