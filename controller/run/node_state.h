// What to do about a node whose action is under way, as a pure function: advance(situation) -> decision.
//
// The executor feeds it what is known (agent, power, times) and carries the decision out; all patience, looking and giving up is
// decided here and nowhere else. Every waiting decision names its reason, the awaited fact, the last observed one, a time to
// decide again and what happens then.
// Thread: any; values only. Never reads a clock.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/power/power.h"

namespace muster {

struct ExecutorTiming {
  DurationMs silent_after = 45 * kSecond;      // an agent not heard for this long is looked after
  DurationMs lost_after = 135 * kSecond;       // powered on but silent this long: lost
  DurationMs cycle_shows = kMinute;            // an agent that was there before the power cycle and speaks so long after it was not cycled
  DurationMs watch_power = kMinute;            // between two looks at the power of a machine that boots: its deadline is long
  DurationMs off_counts = 30 * kSecond;        // a machine that restarts and was seen off for so long lost its power
  DurationMs power_call = 5 * kMinute;         // a power call answers within this, whatever happens (the drivers' deadlines)
  DurationMs look_again = 10 * kSecond;
  DurationMs stop_wait = 3 * kMinute;          // an installed system that was asked to stop is switched off after this long; systemd
                                               // itself kills after 90 s what does not stop, and then writes back and unmounts
  DurationMs stop_look = 5 * kSecond;          // between two looks at whether it is off
  int power_tries = 3;                         // power cycles after which the machine was seen to be off still
  DurationMs order_grace = kMinute;            // on top of an order's deadline, for its report to arrive
  DurationMs retry_first = 2 * kSecond, retry_last = 30 * kSecond;
  DurationMs after_resume = 2 * kMinute;       // what was under way when the controller ended gets at least this long
  DurationMs sign_every = 5 * kMinute;         // a row in the journal says that the controller is there
  DurationMs abandoned_after = 60 * kMinute;          // a run without any row for so long is not continued by itself
};

struct Wait {
  std::string reason, awaited, observed, next;
  TimeMs since = 0, until = 0;
};
Json to_json(const Wait& wait);

// One action under way.
struct Situation {
  ActionKind kind = ActionKind::steps;
  bool awaiting_ram = false;         // a power cycle was asked for, the RAM system's agent is awaited
  bool power_certain = false;        // that power cycle was confirmed by the BMC
  TimeMs power_asked = 0;
  TimeMs power_answered = 0;         // when that power cycle's call was over, whatever its answer
  int stayed_off = 0;                // power cycles of this attempt that were repeated because the machine was off afterwards
  TimeMs off_since = 0;              // since when each look showed it off; 0: the last one did not
  bool same_system = false;          // the agent last heard is of the boot that was there when the attempt began
  TimeMs contact = 0;                // its last word
  TimeMs now = 0, started = 0, deadline = 0;
  std::optional<wire::Mode> mode;    // of the agent last heard
  TimeMs heard = 0;                  // last contact
  bool departed = false;             // boot_disk, reboot: the agent reported that it goes
  bool may_netboot = false;          // the plan allows to netboot this node again
  std::optional<PowerState> power;   // last look, if later than the last contact and the last power cycle
  std::string power_error;           // that look failed
  TimeMs looked = 0;
};

struct Decision {
  TimeMs check_at = 0;   // with `wait`: decide again then, before the wait is over; 0: at its end
  enum class What {
    wait,      // until wait.until
    look,      // ask the BMC for the power state
    netboot,   // (again) arm + power cycle, within this attempt
    offer,     // put the order on offer
    again,     // this attempt is lost: outcome unknown; the next one may start (with a netboot when `with_netboot`)
    fail,      // this attempt failed for good
  };
  What what = What::wait;
  Wait wait;
  std::string reason;
  bool with_netboot = false;
};

Decision advance(const Situation& situation, const ExecutorTiming& timing);

// The system an order of that kind needs: none for power actions, either for inventory.
std::optional<wire::Mode> mode_needed(ActionKind kind);
bool is_order(ActionKind kind);

}  // namespace muster
