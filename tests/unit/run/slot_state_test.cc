// One boot from the other slot, and the way back: what is done while it is unknown which system came up.
#include "controller/run/node_state.h"

#include "tests/catch.h"

using namespace muster;
using What = Decision::What;

namespace {

const ExecutorTiming kTiming;

// Its agent was heard just now.
Situation slot(ActionKind kind) {
  Situation s;
  s.kind = kind;
  s.now = {10'000'000};
  s.started = s.now - kMinute;
  s.deadline = s.started + 160 * kMinute;
  s.silent_since = s.contact = s.now;
  s.mode = wire::Mode::installed;
  s.same_system = true;
  s.may_cut = true;
  return s;
}
Situation silent(ActionKind kind, DurationMs span) {
  Situation s = slot(kind);
  s.started = s.now - span;
  s.deadline = s.started + 160 * kMinute;
  s.silent_since = s.contact = s.started;
  return s;
}
What what(const Situation& s) { return advance(s, kTiming).what; }

constexpr ActionKind kBoth[] = {ActionKind::boot_slot, ActionKind::return_slot};

}  // namespace

TEST_CASE("writing a slot and starting from it are orders for the installed system", "[run][slot]") {
  CHECK(order_kind(ActionKind::write_slot) == wire::OrderKind::write_slot);
  CHECK(order_kind(ActionKind::boot_slot) == wire::OrderKind::boot_slot);
  CHECK(order_kind(ActionKind::return_slot) == wire::OrderKind::reboot);
  for (const ActionKind kind : {ActionKind::write_slot, ActionKind::boot_slot, ActionKind::return_slot}) {
    CHECK(is_order(kind));
    CHECK(mode_needed(kind) == wire::Mode::installed);
    CHECK(is_for_slot(kind) == (kind != ActionKind::write_slot));
  }
}

TEST_CASE("an order to restart is for an agent that is heard in the wrong system", "[run][slot]") {
  for (const ActionKind kind : kBoth) CHECK(what(slot(kind)) == What::offer);
  Situation s = slot(ActionKind::return_slot);
  s.in_doubt = true;
  CHECK(what(s) == What::wait);
  s = slot(ActionKind::return_slot);
  s.mode = wire::Mode::ram;  // it has no order of ours that would restart it
  CHECK(what(s) == What::cycle);
  s.kind = ActionKind::boot_slot;
  CHECK(what(s) == What::wait);
}

TEST_CASE("a machine that restarts is looked at from time to time, and left alone", "[run][slot]") {
  for (const ActionKind kind : kBoth) {
    Situation s = silent(kind, 5 * kMinute);
    s.departed = true;
    s.left = s.started;
    CHECK(what(s) == What::look);
    s.looked = s.now;
    s.power = PowerState::on;
    CHECK(what(s) == What::wait);
    s.panic = "Kernel panic";  // it restarts by itself after that
    CHECK(what(s) == What::wait);
    CHECK(advance(s, kTiming).wait.observed.find("Kernel panic") != std::string::npos);
    s.power = PowerState::off;
    s.off_since = s.now - kTiming.off_counts + 1;  // firmware does that
    CHECK(what(s) == What::wait);
    s.off_since = s.now - kTiming.off_counts;
    CHECK(what(s) == What::switch_on);
    s.stayed_off = kTiming.power_tries;
    CHECK(what(s) == What::fail);
  }
}

TEST_CASE("a system that goes on long after it said that it goes did not", "[run][slot]") {
  Situation s = slot(ActionKind::boot_slot);
  s.departed = true;
  s.left = s.now - kTiming.leave_shows + 1;
  CHECK(what(s) != What::fail);
  s.left = s.now - kTiming.leave_shows;
  CHECK(what(s) == What::fail);
  s.same_system = false;
  CHECK(what(s) != What::fail);
}

TEST_CASE("the power is cycled once, when no agent reported, of a node that may be on trial", "[run][slot]") {
  for (const ActionKind kind : kBoth) {
    Situation s = silent(kind, 161 * kMinute);
    s.departed = true;
    CHECK(what(s) == What::cycle);
    s.departed = false;  // the report that it goes may be lost
    CHECK(what(s) == What::cycle);
    Situation other = s;
    other.may_cut = false;  // its order never left: it is in its old system
    CHECK(what(other) == What::fail);
    other = s;
    other.cycled = true;
    CHECK(what(other) == What::fail);
    other = s;
    other.silent_since = other.contact = other.now;  // it is there, and did not do it
    CHECK(what(other) == What::fail);
    for (const Switch by : {Switch::person, Switch::agent}) {  // nothing here switches it
      other = s;
      other.by = by;
      CHECK(what(other) == What::fail);
      CHECK(advance(other, kTiming).reason.find("a person must") != std::string::npos);
    }
    other.by = Switch::provider;
    CHECK(what(other) == What::cycle);
    other = s;
    other.alone_since = s.now - kMinute;  // all agents are silent
    CHECK(what(other) != What::cycle);
    CHECK(what(other) != What::fail);
  }
}

TEST_CASE("an agent that came up has time for its hello after the deadline, but not for ever",
          "[run][slot]") {
  Situation s = silent(ActionKind::boot_slot, 160 * kMinute);
  s.departed = true;
  s.same_system = false;
  s.silent_since = s.now;
  CHECK(what(s) == What::wait);
  s.now = s.silent_since = s.deadline + kTiming.lost_after;
  CHECK(what(s) == What::fail);
}

TEST_CASE("on the way back a silent system on trial is not waited for", "[run][slot]") {
  Situation s = silent(ActionKind::return_slot, kTiming.lost_after);
  CHECK(what(s) == What::look);
  s.looked = s.now;
  s.power = PowerState::on;
  CHECK(what(s) == What::cycle);
  s.may_cut = false;  // it is in its old system
  CHECK(what(s) == What::wait);
  s.may_cut = true;
  s.may_stand = true;  // it got the order to commit: a power cycle may start the same system again
  CHECK(what(s) == What::wait);
  s.now = s.deadline;
  CHECK(what(s) == What::cycle);
  s = silent(ActionKind::return_slot, kTiming.lost_after);
  s.looked = s.now;
  s.power = PowerState::on;
  s.kind = ActionKind::boot_slot;  // its own timer brings it back
  CHECK(what(s) == What::wait);
}

TEST_CASE("a wait names the old system where that is what comes next, and not a quarantine", "[run][slot]") {
  Situation s;
  s.kind = ActionKind::steps;
  s.now = {10'000'000};
  s.started = s.now - kMinute;
  s.deadline = s.now + 20 * kMinute;
  SECTION("it is in the wrong system") {
    s.mode = wire::Mode::ram;
    s.silent_since = s.now;
  }
  SECTION("it is silent") {
    s.mode = wire::Mode::installed;
    s.silent_since = s.now - kTiming.silent_after;
    s.looked = s.now;
    s.power = PowerState::on;
  }
  SECTION("it is silent, and nothing switches it") {
    s.mode = wire::Mode::installed;
    s.silent_since = s.now - kTiming.silent_after;
    s.by = Switch::agent;
  }
  const std::string quarantine = "quarantine", back = "back to its old system";
  CHECK(advance(s, kTiming).wait.next.starts_with(quarantine));
  s.may_go_back = true;
  CHECK(advance(s, kTiming).wait.next.starts_with(back));
}
