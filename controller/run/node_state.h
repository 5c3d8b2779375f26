// What to do about a node whose action is under way, as a pure function: advance(situation) -> decision.
//
// The executor feeds it what is known (agent, power, times) and carries the decision out; all patience,
// looking and giving up is decided here and nowhere else. Every waiting decision names its reason, the
// awaited fact, the last observed one, a time to decide again and what happens then. Thread: any; values
// only. Never reads a clock.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/steady.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/power/power.h"

namespace muster {

struct ExecutorTiming {
  DurationMs silent_after = 45 * kSecond;  // an agent not heard for this long is looked after
  DurationMs silent_shown = kMinute;  // outside of a run, an agent not heard for this long is shown as silent
  DurationMs lost_after = 135 * kSecond;  // powered on but silent this long: lost
  DurationMs cycle_shows =
      kMinute;  // an agent that was there before the power cycle and speaks so long after it was not cycled
  DurationMs watch_power =
      kMinute;  // between two looks at the power of a machine that boots: its deadline is long
  DurationMs off_counts =
      30 * kSecond;  // a machine that restarts and was seen off for so long lost its power
  DurationMs power_call =
      5 * kMinute;  // a power call answers within this, whatever happens (the drivers' deadlines)
  DurationMs look_again = 10 * kSecond;
  DurationMs stop_wait =
      3 * kMinute;  // an installed system that was asked to stop is switched off after this long; systemd
                    // itself kills after 90 s what does not stop, and then writes back and unmounts
  DurationMs stop_look = 5 * kSecond;     // between two looks at whether it is off
  DurationMs wake_look = 30 * kSecond;    // between two looks at the power of a node that is waited for
  DurationMs leave_ready = 10 * kMinute;  // for an agent to get ready to hand over to the RAM system
  // So long a silence of all agents at once is held against the controller itself, not against them: its link
  // to the nodes may be cut.
  DurationMs alone_for = 15 * kMinute;
  // A system that was to hand over and speaks so long after did not: the agent is among the first things to
  // be stopped, and systemd kills after 90 s what does not stop
  DurationMs leave_shows = 3 * kMinute;
  int power_tries = 3;               // power cycles after which the machine was seen to be off still
  DurationMs order_grace = kMinute;  // on top of an order's deadline, for its report to arrive
  DurationMs retry_first = 2 * kSecond, retry_last = 30 * kSecond;
  DurationMs after_resume =
      2 * kMinute;  // what was under way when the controller ended gets at least this long
  DurationMs sign_every = 5 * kMinute;        // a row in the journal says that the controller is there
  DurationMs abandoned_after = 60 * kMinute;  // a run without any row for so long is not continued by itself
  // So much time one attempt is given back for such silences in all: a link that comes and goes keeps nobody
  // waiting for ever.
  DurationMs alone_most = 60 * kMinute;
};

struct Wait {
  std::string reason, awaited, observed, next;
  SteadyMs since = {}, until = {};
};
// `ahead`: what the wall clock shows more than the steady one. People read the clock on the wall.
Json to_json(const Wait& wait, DurationMs ahead);

// One action under way.
struct Situation {
  ActionKind kind = ActionKind::steps;
  bool in_band = false;        // nothing can boot it from the network: only its agent can be asked
  bool by_hand = false;        // a person switches it; nobody can tell its power
  bool awaiting_ram = false;   // a power cycle was asked for, the RAM system's agent is awaited
  bool power_certain = false;  // that power cycle was confirmed by the BMC
  SteadyMs power_asked = {};
  SteadyMs power_answered = {};  // when that power cycle's call was over, whatever its answer
  int stayed_off =
      0;  // power cycles of this attempt that were repeated because the machine was off afterwards
  SteadyMs off_since = {};   // since when each look showed it off; none: the last one did not
  bool same_system = false;  // the agent last heard is of the boot that was there when the attempt began
  SteadyMs contact = {};     // its last word
  SteadyMs now = {}, started = {}, deadline = {};
  std::optional<wire::Mode> mode;  // of the agent last heard
  SteadyMs heard = {};             // last contact
  SteadyMs alone_since = {};  // since when nobody at all is heard, though several should be; none: somebody
                              // is, or that has lasted too long to be the controller's own fault
  bool departed = false;      // boot_disk, reboot: the agent reported that it goes
  bool may_netboot = false;   // the plan allows to netboot this node again
  std::optional<PowerState> power;  // last look, if later than the last contact and the last power cycle
  std::string power_error;          // that look failed
  SteadyMs looked = {};
  std::string panic;         // that its console showed in this attempt
  bool may_go_back = false;  // where this fails for good, it goes back to its old system
  bool rented = false;       // its provider switches it, and cannot boot it from the network
  // boot_slot and return_slot alone:
  bool cycled = false;     // its power was cycled in this attempt, which boots the slot that stands
  bool may_cut = false;    // it may run a system on trial: its power is cycled where nobody is heard
  bool may_stand = false;  // return_slot: the system that it runs may have been committed
  bool in_doubt = false;   // that it runs the wrong system is not known: it is not ordered to restart
  SteadyMs left = {};      // when the agent reported that it goes
};

struct Decision {
  SteadyMs check_at = {};  // with `wait`: decide again then, before the wait is over; none: at its end
  enum class What {
    wait,       // until wait.until
    look,       // ask the BMC for the power state
    netboot,    // (again) arm + power cycle, within this attempt
    offer,      // put the order on offer
    cycle,      // power off and on, whatever it boots then
    switch_on,  // power on
    again,      // this attempt is lost: outcome unknown; the next one may start (with a netboot when
                // `with_netboot`)
    fail,       // this attempt failed for good
  };
  What what = What::wait;
  Wait wait;
  std::string reason;
  bool with_netboot = false;
};

Decision advance(const Situation& situation, const ExecutorTiming& timing);
// The same of boot_slot and return_slot, which end with a hello: this is about the time until then.
Decision advance_slot(const Situation& situation, const ExecutorTiming& timing);
// Ends with a hello from the slot that its params name.
bool is_for_slot(ActionKind kind);

// What the last look at the power showed, for people.
std::string power_text(const Situation& situation);
// Who switches it, for people: "the BMC".
std::string switcher(bool rented);

// The system an order of that kind needs: none for power actions, either for inventory.
std::optional<wire::Mode> mode_needed(ActionKind kind);
bool is_order(ActionKind kind);
// `unknown`, which every agent refuses, for actions that are no orders.
wire::OrderKind order_kind(ActionKind kind);

}  // namespace muster
