#include "controller/run/node_state.h"

#include "tests/catch.h"

using namespace muster;
using What = Decision::What;

namespace {

// Imaging, heard just now.
Situation imaging() {
  Situation s;
  s.kind = ActionKind::image;
  s.now = {1'000'000};
  s.started = {900'000};
  s.deadline = {4'000'000};
  s.heard = s.now;
  s.mode = wire::Mode::ram;
  s.may_netboot = true;
  return s;
}
const ExecutorTiming kTiming;
What what(const Situation& s) { return advance(s, kTiming).what; }

}  // namespace

TEST_CASE("an agent that is there gets its order", "[run]") { CHECK(what(imaging()) == What::offer); }

TEST_CASE("a silent agent is looked after before anything is decided", "[run]") {
  Situation s = imaging();
  s.heard = s.now - kTiming.silent_after;
  CHECK(what(s) == What::look);
  s.looked = s.now;
  s.power = PowerState::off;
  CHECK(what(s) == What::again);
  CHECK(advance(s, kTiming).with_netboot);
  s.power = PowerState::on;      // perhaps only the network is away
  CHECK(what(s) == What::wait);
  s.heard = s.now - kTiming.lost_after;
  CHECK(what(s) == What::again);
  s.power.reset();               // the BMC does not answer: unknown is not failed
  s.power_error = "timeout";
  CHECK(what(s) == What::wait);
  s.now += kTiming.look_again;
  CHECK(what(s) == What::look);
}

TEST_CASE("an installed node that is silent is not netbooted by a plan that does not say so", "[run]") {
  Situation s = imaging();
  s.kind = ActionKind::steps;
  s.mode = wire::Mode::installed;
  s.may_netboot = false;
  s.heard = s.now - kTiming.lost_after;
  s.looked = s.now;
  s.power = PowerState::on;
  CHECK(what(s) == What::wait);
  s.power = PowerState::off;
  CHECK(what(s) == What::fail);
  s.now = s.deadline;
  CHECK(what(s) == What::fail);
}

TEST_CASE("a power cycle without answer is looked at, then decided", "[run]") {
  Situation s = imaging();
  s.kind = ActionKind::netboot;
  s.awaiting_ram = true;
  s.power_asked = s.now;
  CHECK(what(s) == What::look);
  s.now += 1000;
  s.looked = s.now;
  s.power = PowerState::off;
  CHECK(what(s) == What::netboot);
  s.stayed_off = kTiming.power_tries - 1;   // a machine that stays off however often it is asked
  CHECK(what(s) == What::fail);
  s.power = PowerState::on;
  CHECK(what(s) == What::wait);
  s.now += kTiming.uncertain_power;
  CHECK(what(s) == What::netboot);
  s.power_certain = true;
  CHECK(what(s) == What::wait);
  s.now = s.deadline;
  CHECK(what(s) == What::again);
}

TEST_CASE("an order in the wrong system is not offered", "[run]") {
  Situation s = imaging();
  s.mode = wire::Mode::installed;
  CHECK(what(s) == What::again);
  s.kind = ActionKind::steps;
  s.mode = wire::Mode::ram;
  CHECK(what(s) == What::wait);
}

TEST_CASE("every wait names its reason, what is awaited, and a time to decide again", "[run]") {
  Situation s = imaging();
  s.departed = true;
  for (const ActionKind kind : {ActionKind::boot_disk, ActionKind::reboot}) {
    s.kind = kind;
    const Decision d = advance(s, kTiming);
    REQUIRE(d.what == What::wait);
    CHECK_FALSE(d.wait.reason.empty());
    CHECK_FALSE(d.wait.awaited.empty());
    CHECK_FALSE(d.wait.next.empty());
    CHECK(d.wait.until > s.now);
  }
}
