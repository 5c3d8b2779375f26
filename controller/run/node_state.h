// Decides what to do about a node during an action, as a pure function: advance(situation) -> decision. The
// executor passes what is known (agent, power, times) and carries out the decision. All timeouts, readings
// and failures are decided here only. Every waiting decision names its reason, the awaited fact, the last
// observed one, a time to decide again and what happens then. Thread safety: plain value types; never reads a
// clock.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/steady.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/ports/power.h"
#include "controller/power/describe/driver_description.h"

namespace muster {

struct ExecutorTiming {
  DurationMs silent_after = 45 * kSecond;  // after this silence of an agent its power state is read
  DurationMs silent_shown = kMinute;       // outside of a run, after this time an agent is shown as silent
  DurationMs lost_after = 135 * kSecond;   // an agent silent this long on a powered-on node is lost
  // A machine was not power-cycled if its agent from before the power cycle still reports after this time.
  DurationMs cycle_shows = kMinute;
  DurationMs watch_power =
      kMinute;  // between two readings of the power state of a booting machine, whose deadline is long
  DurationMs off_counts = 30 * kSecond;  // a restarting machine that is off for this long has lost power
  DurationMs power_call =
      5 * kMinute;  // a power call always returns within this time (the drivers' deadlines)
  DurationMs look_again = 10 * kSecond;
  DurationMs power_proof = 2 * kMinute;  // for a BMC to answer before the jobs of its node are waited for
  // An installed system that is shutting down is switched off after this time; systemd itself kills services
  // after 90 s, and then writes back and unmounts.
  DurationMs stop_wait = 3 * kMinute;
  DurationMs stop_look = 5 * kSecond;     // between two readings of its power state
  DurationMs wake_look = 30 * kSecond;    // between two readings of the power state of an awaited node
  DurationMs leave_ready = 10 * kMinute;  // for an agent to get ready to hand over to the RAM system
  // For this time a silence of all agents is attributed to the controller: its link to the nodes may be cut.
  DurationMs alone_for = 15 * kMinute;
  // A system that was ordered to hand over and still reports after this time did not do so: the agent is
  // among the first services to be stopped, and systemd kills services after 90 s.
  DurationMs leave_shows = 3 * kMinute;
  int power_tries = 3;               // power cycles after which a machine that is still off is given up
  DurationMs order_grace = kMinute;  // on top of an order's deadline, for its report to arrive
  DurationMs retry_first = 2 * kSecond, retry_last = 30 * kSecond;
  // A call or order that was pending when the controller ended gets at least this time.
  DurationMs after_resume = 2 * kMinute;
  DurationMs sign_every = 5 * kMinute;  // interval of journal rows that record that the controller is up
  // A run without any row for this time is not resumed automatically.
  DurationMs abandoned_after = 60 * kMinute;
  // The most time that one attempt gets back for silences of all agents: an unsteady link must not extend it
  // for ever.
  DurationMs alone_most = 60 * kMinute;
};

struct Wait {
  std::string reason, awaited, observed, next;
  SteadyMs since = {}, until = {};
};
// Wall-clock times. `ahead`: the wall clock minus the steady clock.
Json to_json(const Wait& wait, DurationMs ahead);

struct Situation {
  ActionKind kind = ActionKind::steps;
  Switch by = Switch::bmc;
  bool reinstalled = false;    // by its provider, instead of a power cycle
  bool awaiting_ram = false;   // a power cycle was ordered, the RAM system's agent is awaited
  bool power_certain = false;  // that power cycle was confirmed by the BMC
  SteadyMs power_requested = {};
  SteadyMs power_answered = {};  // when that power cycle's call ended, with any answer
  int stayed_off =
      0;  // power cycles of this attempt that were repeated because the machine was off afterwards
  SteadyMs off_since = {};   // every reading since then showed it off; none: the last one did not
  bool same_system = false;  // the agent's last message is from the same boot as at the attempt's start
  SteadyMs contact = {};     // its last message
  SteadyMs now = {}, started = {}, deadline = {};
  std::optional<wire::Mode> mode;  // of the last message
  SteadyMs silent_since = {};      // last contact
  SteadyMs alone_since = {};       // all agents have been silent since, though several should report; none:
      // an agent reports, or the silence is too long to be the controller's own fault
  bool departed = false;            // boot_disk, reboot: the agent reported that it restarts
  bool may_netboot = false;         // the plan allows another netboot of this node
  std::optional<PowerState> power;  // last reading, if later than the last contact and the last power cycle
  std::string power_error;          // why that reading failed
  SteadyMs looked = {};
  std::string panic;         // on its console in this attempt
  bool may_go_back = false;  // if this fails for good, it returns to its old system
  // For boot_slot and return_slot only:
  bool cycled = false;     // its power was cycled in this attempt, which boots the default slot
  bool may_cut = false;    // it may be in a trial boot: its power is cycled if it is silent
  bool may_stand = false;  // return_slot: the system that it runs may have been committed
  bool in_doubt = false;   // it may run the wrong system: not ordered to restart until that is known
  SteadyMs left = {};      // when the agent reported that it restarts

  // True if nothing boots it from the network: its agent is ordered to hand over to the RAM system.
  bool hands_over() const { return !reinstalled && !can_netboot(by); }
};

struct Decision {
  SteadyMs check_at = {};  // with `wait`: when to decide again before its end; none: at its end
  enum class What {
    wait,       // until wait.until
    look,       // read the power state
    netboot,    // arm the boot service and cycle power (again), within this attempt
    offer,      // put the order on offer
    cycle,      // power off and on, without a network boot
    switch_on,  // power on
    again,      // the attempt is lost, its outcome unknown; the next one may start (with a netboot if
                // `with_netboot`)
    fail,       // this attempt failed for good
  };
  What what = What::wait;
  Wait wait;
  std::string reason;
  bool with_netboot = false;
};

Decision advance(const Situation& situation, const ExecutorTiming& timing);
// The same for boot_slot and return_slot, which end with a hello; makes the decisions until that hello.
Decision advance_slot(const Situation& situation, const ExecutorTiming& timing);
// True if the action ends with a hello from the slot that its params name.
bool is_for_slot(ActionKind kind);

std::string power_text(const Situation& situation);
// For display: "the BMC".
std::string switcher_name(Switch by);

// The system that an order of that kind needs; nullopt for power actions (none) and inventory (either).
std::optional<wire::Mode> mode_needed(ActionKind kind);
bool is_order(ActionKind kind);
// Returns `unknown`, which every agent rejects, for actions that are not orders.
wire::OrderKind order_kind(ActionKind kind);

}  // namespace muster
