// advance() for the two actions that end with a hello from a named root slot: one boot from the other slot,
// and the way back. Who comes back, and from which slot, is slot_trial.cc's; here is what is done until then.
#include <algorithm>

#include "controller/run/decide.h"
#include "controller/run/node_state.h"

namespace muster {
namespace {

using What = Decision::What;

// Something here can tell its power and switch it.
bool has_power(const Situation& s) { return !s.by_hand && (!s.in_band || s.rented); }

std::string why_next(const Situation& s) {
  if (s.cycled || !s.may_cut)
    return s.kind == ActionKind::boot_slot ? "back to the slot that stands" : "quarantine";
  return has_power(s) ? "its power is cycled, which boots the slot that stands"
                      : "a person has to cycle its power, which boots the slot that stands";
}

// Seen off for longer than firmware switches a machine off by itself.
bool lost_power(const Situation& s, const ExecutorTiming& t) {
  return s.power == PowerState::off && s.off_since && s.looked > s.heard &&
         s.looked >= s.off_since + t.off_counts;
}

Decision switch_on(const Situation& s, const ExecutorTiming& t) {
  if (s.stayed_off >= t.power_tries)
    return act(What::fail, switcher(s.rented) + " was asked " + std::to_string(t.power_tries) +
                               " times to power the machine on, and it is off");
  return act(What::switch_on, "it lost power");
}

// Its time is over.
Decision late(const Situation& s, const ExecutorTiming& t) {
  const std::string span = to_human(s.deadline - s.started);
  const bool away = s.departed || s.cycled, heard = s.now - s.heard < t.silent_after;
  // Of a system that came up, orders may be asked for before its hello is here.
  if (heard && away && !s.same_system && s.now < s.deadline + t.lost_after)
    return wait_for("restarting", "the hello of its agent", "an agent is heard that did not say what it runs",
                    s.started, std::min(s.heard + t.silent_after, s.deadline + t.lost_after), why_next(s));
  if (heard) return act(What::fail, "not finished within " + span + ", and its agent is heard");
  const std::string seen = power_text(s) + console_text(s);
  if (s.cycled) return act(What::fail, "its power was cycled, and no agent was heard since; " + seen);
  const std::string silent = "no agent was heard within " + span + "; " + seen;
  if (!s.may_cut) return act(What::fail, silent);
  if (has_power(s)) return act(What::cycle, silent);
  return act(What::fail, silent + ": a person has to cycle its power, nothing here can");
}

// It restarts: silence is what is expected.
Decision restarting(const Situation& s, const ExecutorTiming& t) {
  if (s.departed && !s.cycled && s.same_system && s.contact >= s.left + t.leave_shows)
    return act(What::fail, "it was to restart, and its old system still answers");
  const char* reason = s.cycled ? "its power was cycled" : "restarting";
  const char* awaited = "hello of the installed system's agent";
  const std::string seen = power_text(s) + console_text(s);
  if (!has_power(s)) return wait_for(reason, awaited, seen, s.started, s.deadline, why_next(s));
  if (lost_power(s, t)) return switch_on(s, t);
  const SteadyMs next_look =
      std::max({s.heard, s.started, s.looked}) + (s.off_since ? t.look_again : t.watch_power);
  if (s.now >= next_look) return act(What::look, "whether the machine is on");
  Decision d = wait_for(reason, awaited, seen, s.started, s.deadline, why_next(s));
  d.check_at = next_look;
  return d;
}

// It did not say that it goes. A lost report, or it hangs, or it is cut off.
Decision silence(const Situation& s, const ExecutorTiming& t) {
  const DurationMs silent = s.now - s.heard;
  const std::string observed =
      "agent not heard for " + to_human(silent) + "; " + power_text(s) + console_text(s);
  const auto wait = [&](SteadyMs check_at) {
    Decision d = wait_for("the agent is silent", "a sign of life of the agent", observed, s.heard, s.deadline,
                          why_next(s));
    d.check_at = check_at;
    return d;
  };
  if (!has_power(s)) return wait({});
  if (lost_power(s, t)) return switch_on(s, t);
  const bool looked = s.looked > s.heard;
  const SteadyMs next_look = s.looked + (s.power == PowerState::on ? t.watch_power : t.look_again);
  if (!looked || s.now >= next_look) return act(What::look, observed);
  // On the way back there is nothing to wait for in a system that was to be left in any case.
  if (s.kind == ActionKind::return_slot && s.may_cut && s.power == PowerState::on) {
    if (silent >= t.lost_after) return act(What::cycle, observed);
    return wait(std::min(next_look, s.heard + t.lost_after));
  }
  return wait(next_look);
}

}  // namespace

Decision advance_slot(const Situation& s, const ExecutorTiming& t) {
  if (s.now >= s.deadline) return late(s, t);
  if (s.departed || s.cycled) return restarting(s, t);
  if (s.now - s.heard >= t.silent_after) return silence(s, t);
  if (!s.mode)
    return wait_for("no agent yet", "hello of the agent", "nothing", s.started,
                    std::min(s.deadline, s.heard + t.silent_after), "a look at the power state");
  if (s.in_doubt) {
    Decision d = wait_for("which system it runs, and whether it stays there", "a word from its agent",
                          power_text(s), s.started, s.deadline, "the order to restart");
    d.check_at = s.now + t.look_again;
    return d;
  }
  if (*s.mode == wire::Mode::ram) {
    // What it boots by itself is its disk: nothing is served to it.
    if (s.kind == ActionKind::return_slot && has_power(s))
      return act(What::cycle, "it runs the RAM system instead of its installed one");
    return wait_for("the node is in the wrong system", "hello of the installed system's agent",
                    "agent in mode ram", s.started, s.deadline, why_next(s));
  }
  return act(What::offer, "");
}

}  // namespace muster
