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
  s.silent_since = s.now;
  s.mode = wire::Mode::ram;
  s.may_netboot = true;
  return s;
}
// A power cycle was requested, and answered some way, just now.
Situation booting() {
  Situation s = imaging();
  s.kind = ActionKind::netboot;
  s.awaiting_ram = true;
  s.power_requested = s.now - 100;
  s.power_answered = s.now;
  s.silent_since = s.now - kMinute;
  s.deadline = s.power_requested + 20 * kMinute;
  return s;
}
const ExecutorTiming kTiming;
What what(const Situation& s) { return advance(s, kTiming).what; }

}  // namespace

TEST_CASE("an agent that is there gets its order", "[run]") { CHECK(what(imaging()) == What::offer); }

TEST_CASE("a silent agent is looked after before anything is decided", "[run]") {
  Situation s = imaging();
  s.silent_since = s.now - kTiming.silent_after;
  CHECK(what(s) == What::look);
  s.looked = s.now;
  s.power = PowerState::off;
  CHECK(what(s) == What::again);
  CHECK(advance(s, kTiming).with_netboot);
  s.power = PowerState::on;  // perhaps only the network is away
  CHECK(what(s) == What::wait);
  s.silent_since = s.now - kTiming.lost_after;
  CHECK(what(s) == What::again);
  s.power.reset();  // the BMC does not answer: unknown is not failed
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
  s.silent_since = s.now - kTiming.lost_after;
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
  s.power_requested = s.now;
  CHECK(what(s) == What::look);
  s.now += 1000;
  s.looked = s.now;
  s.power = PowerState::off;
  CHECK(what(s) == What::netboot);
  s.stayed_off = kTiming.power_tries - 1;  // a machine that stays off however often it is switched on
  CHECK(what(s) == What::fail);
  s.power = PowerState::on;
  CHECK(what(s) == What::wait);
  s.power_certain = true;
  CHECK(what(s) == What::wait);
  s.now = s.deadline;
  CHECK(what(s) == What::again);
}

TEST_CASE("the firmware's tests are not cut short by another power cycle because one answer was lost",
          "[run]") {
  Situation s = booting();
  s.looked = s.now;
  s.power = PowerState::on;
  while (s.now < s.deadline) {
    INFO((s.now - s.power_requested) / kSecond << " s");
    const Decision d = advance(s, kTiming);
    REQUIRE((d.what == What::wait || d.what == What::look));
    if (d.what == What::look) s.looked = s.now;
    CHECK((d.what == What::look || d.wait.until == s.deadline));  // the deadline is what people are shown
    s.now += 10 * kSecond;
  }
  CHECK(what(s) == What::again);
}

TEST_CASE("a power cycle that did not happen is seen by the system that goes on speaking", "[run]") {
  Situation s = booting();
  s.looked = s.now;
  s.power = PowerState::on;
  s.power_certain = GENERATE(true, false);  // the BMC may say that it did it, too
  s.same_system = true;
  s.now = s.contact = s.power_answered + kTiming.cycle_shows - 1;  // its last words, perhaps
  CHECK(what(s) == What::wait);
  s.now = s.contact = s.power_answered + kTiming.cycle_shows;
  CHECK(what(s) == What::netboot);
  s.same_system = false;
  CHECK(what(s) != What::netboot);
}

TEST_CASE("a machine that loses power while it boots is not waited for until the deadline", "[run]") {
  Situation s = booting();
  s.power_certain = true;
  s.power = PowerState::on;
  CHECK(what(s) == What::wait);
  CHECK(advance(s, kTiming).check_at == s.power_answered + kTiming.watch_power);
  s.now = s.power_answered + kTiming.watch_power;
  CHECK(what(s) == What::look);
  s.looked = s.now;
  s.power.reset();  // the BMC does not say: it was on
  CHECK(what(s) == What::wait);
  s.power = PowerState::off;
  CHECK(what(s) == What::netboot);
}

TEST_CASE("a machine that loses power while it restarts is not waited for until the deadline", "[run]") {
  Situation s = imaging();
  s.kind = ActionKind::boot_disk;
  s.departed = true;
  s.silent_since = s.now;
  CHECK(what(s) == What::wait);
  s.now += kTiming.watch_power;
  CHECK(what(s) == What::look);
  s.looked = s.off_since = s.now;
  s.power = PowerState::off;
  CHECK(what(s) == What::wait);  // firmware may do that by itself for some seconds
  CHECK(advance(s, kTiming).check_at == s.now + kTiming.look_again);
  s.now = s.looked = s.off_since + kTiming.off_counts;
  CHECK(what(s) == What::again);
  s.kind = ActionKind::reboot;
  s.may_netboot = false;
  CHECK(what(s) == What::fail);
  s.off_since = {};
  s.power = PowerState::on;
  CHECK(what(s) == What::wait);
  CHECK(advance(s, kTiming).wait.until == s.deadline);
}

TEST_CASE("a restart that ends in silence says so, and is tried again where the plan may netboot", "[run]") {
  Situation s = imaging();
  s.kind = ActionKind::boot_disk;
  s.departed = true;
  s.now = s.deadline;
  s.power = PowerState::on;
  const Decision d = advance(s, kTiming);
  CHECK(d.what == What::again);
  CHECK(d.with_netboot);
  CHECK(d.reason.starts_with("no agent reported from the installed system within 51 min 40 s"));
  CHECK(d.reason.find("power is on") != std::string::npos);
  s.departed = false;  // carried out something that took too long
  CHECK(advance(s, kTiming).reason.starts_with("not finished within"));
  s.departed = true;
  s.may_netboot = false;
  CHECK(what(s) == What::fail);
}

TEST_CASE(
    "a restart that a new controller finds under way is not given up for one look that shows the power off",
    "[run]") {
  Situation s = imaging();
  s.kind = ActionKind::boot_disk;  // `departed` was in the memory of the controller before
  s.silent_since = s.now - kTiming.silent_after;
  s.looked = s.off_since = s.now;
  s.power = PowerState::off;
  CHECK(what(s) == What::wait);
  s.now = s.looked = s.off_since + kTiming.off_counts;
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

TEST_CASE("for a node without power control only its agent is called", "[run][kexec]") {
  Situation s = booting();
  s.by = Switch::agent;
  for (const bool certain : {false, true})
    for (const DurationMs passed : {DurationMs{0}, 5 * kMinute, 19 * kMinute}) {
      s.power_certain = certain;
      s.now = s.power_requested + passed;
      CAPTURE(certain, passed);
      CHECK(what(s) == What::wait);
    }
  s.now = s.deadline;
  CHECK(what(s) == What::again);
  CHECK(advance(s, kTiming).with_netboot);
  Situation silent = imaging();
  silent.by = Switch::agent;
  silent.silent_since = silent.now - 30 * kMinute;
  CHECK(what(silent) == What::wait);
  silent.now = silent.deadline;
  CHECK(what(silent) == What::fail);
  silent.silent_since = silent.now - kSecond;  // it speaks, and is slow
  CHECK(what(silent) == What::again);
}

TEST_CASE("a RAM system that does not come is not given up while all agents are silent", "[run]") {
  Situation s = booting();
  const int how = GENERATE(0, 1, 2);
  s.by = how == 1 ? Switch::agent : how == 2 ? Switch::person : Switch::bmc;
  s.power_certain = true;
  if (how == 0) s.power = PowerState::on;
  s.now = s.looked = s.deadline;
  REQUIRE(what(s) == What::again);
  s.alone_since = s.now - 2 * kMinute;
  const Decision d = advance(s, kTiming);
  CHECK(d.what == What::wait);
  CHECK(d.wait.until == s.alone_since + kTiming.alone_for);
  CHECK(d.check_at > s.now);  // an agent may report before that
  CHECK(d.check_at < d.wait.until);
  s.power = PowerState::off;
  CHECK(what(s) == What::again);
  s.power.reset();
  s.now = s.looked = s.alone_since + kTiming.alone_for;
  CHECK(what(s) == What::again);
}

TEST_CASE("nothing is said of a rented machine that is true of one without power only", "[run][phy]") {
  const auto words = [](Situation s, Switch by) {
    s.by = by;
    const Wait wait = advance(s, kTiming).wait;
    return power_text(s) + wait.observed + wait.next;
  };
  Situation silent = imaging(), restarts = imaging();
  silent.silent_since = silent.now - kMinute;
  restarts.kind = ActionKind::reboot;
  restarts.departed = true;
  for (const Situation& s : {silent, restarts})
    for (const bool rented : {false, true}) {
      const std::string said = words(s, rented ? Switch::provider : Switch::agent);
      CHECK((said.find("driver ssh") == std::string::npos) == rented);
      CHECK((said.find("muster cannot control its power") == std::string::npos) == rented);
      CHECK((said.find("provider") != std::string::npos) == rented);
    }
  Situation wakes = silent;  // the provider's API reports the state here
  wakes.kind = ActionKind::wake;
  wakes.by = Switch::provider;
  wakes.power = PowerState::off;
  CHECK(power_text(wakes) == "power is off");
  Situation requested = booting();
  requested.power_error = "timeout";
  requested.looked = requested.now;
  CHECK(words(requested, Switch::bmc).find("BMC") != std::string::npos);
  requested.reinstalled = true;
  CHECK(words(requested, Switch::provider).find("BMC") == std::string::npos);
}

TEST_CASE("a panic that its console showed is named as the reason of a boot that failed", "[run][sol]") {
  Situation s;
  s.kind = ActionKind::boot_disk;
  s.started = s.silent_since = s.looked = SteadyMs{kMinute};
  s.deadline = SteadyMs{10 * kMinute};
  s.departed = true;
  s.mode = wire::Mode::ram;
  s.power = PowerState::on;
  s.panic = "Kernel panic - not syncing: Fatal exception";
  s.now = SteadyMs{kMinute + 5 * kSecond};
  const Decision before = advance(s, ExecutorTiming());
  CHECK(before.what == Decision::What::wait);  // it may restart by itself and come up
  CHECK(before.wait.observed.find(s.panic) != std::string::npos);
  s.now = s.deadline;
  CHECK(advance(s, ExecutorTiming()).reason.find(s.panic) != std::string::npos);
  s.panic.clear();
  CHECK(advance(s, ExecutorTiming()).reason.find("its console shows") != std::string::npos);
}
