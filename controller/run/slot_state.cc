// advance() for the two actions that end with a hello from a named root slot: one boot from the other slot,
// and the return. Decides until that hello arrives; slot_trial.cc judges which slot it is from.
#include <algorithm>

#include "controller/run/decide.h"
#include "controller/run/node_state.h"

namespace muster {
namespace {

using What = Decision::What;

std::string why_next(const Situation& s) {
  if (s.cycled || !s.may_cut)
    return s.kind == ActionKind::boot_slot ? "a return to the default slot" : "quarantine";
  return is_remote(s.by) ? "a power cycle, which boots the default slot"
                         : "a person must cycle its power, which boots the default slot";
}

// True if it has been off for longer than firmware keeps a machine off during a restart.
bool lost_power(const Situation& s, const ExecutorTiming& t) {
  return s.power == PowerState::off && s.off_since && s.looked > s.silent_since &&
         s.looked >= s.off_since + t.off_counts;
}

Decision switch_on(const Situation& s, const ExecutorTiming& t) {
  if (s.stayed_off >= t.power_tries) return stays_off(s, t);
  return act(What::switch_on, "it lost power");
}

Decision late(const Situation& s, const ExecutorTiming& t) {
  const std::string span = to_human(s.deadline - s.started);
  const bool away = s.departed || s.cycled, reachable = s.now - s.silent_since < t.silent_after;
  // A system that has just come up may request orders before its hello arrives.
  if (reachable && away && !s.same_system && s.now < s.deadline + t.lost_after)
    return wait_for("restarting", "its agent's report",
                    "an agent answers, but has not reported which system it runs", s.started,
                    std::min(s.silent_since + t.silent_after, s.deadline + t.lost_after), why_next(s));
  if (reachable)
    return act(What::fail, "the restart did not finish within " + span + ", although the agent answers");
  const std::string seen = power_text(s) + console_text(s);
  if (s.cycled) return act(What::fail, "its power was cycled, but no agent has answered since; " + seen);
  const std::string silent = "no agent answered within " + span + "; " + seen;
  if (!s.may_cut) return act(What::fail, silent);
  if (is_remote(s.by)) return act(What::cycle, silent);
  return act(What::fail, silent + ": a person must cycle its power, because muster cannot");
}

// While it restarts, silence is expected.
Decision restarting(const Situation& s, const ExecutorTiming& t) {
  if (s.departed && !s.cycled && s.same_system && s.contact >= s.left + t.leave_shows)
    return act(What::fail, "it was ordered to restart, but its old system still answers");
  const char* reason = s.cycled ? "its power was cycled" : "restarting";
  Decision d = wait_for_installed(s, reason, power_text(s) + console_text(s), why_next(s));
  if (!is_remote(s.by)) return d;
  if (lost_power(s, t)) return switch_on(s, t);
  const SteadyMs next_look =
      std::max({s.silent_since, s.started, s.looked}) + (s.off_since ? t.look_again : t.watch_power);
  if (s.now >= next_look) return look_at_power();
  d.check_at = next_look;
  return d;
}

// No report of its restart arrived: the report was lost, the machine hangs, or its network is cut.
Decision slot_silence(const Situation& s, const ExecutorTiming& t) {
  const std::string observed = silence_text(s);
  const auto wait = [&](SteadyMs check_at) {
    Decision d = wait_for_sign(s, s.deadline, why_next(s));
    d.check_at = check_at;
    return d;
  };
  if (!is_remote(s.by)) return wait({});
  if (lost_power(s, t)) return switch_on(s, t);
  const bool looked = s.looked > s.silent_since;
  const SteadyMs next_look = s.looked + (s.power == PowerState::on ? t.watch_power : t.look_again);
  if (!looked || s.now >= next_look) return act(What::look, observed);
  // On the way back there is no reason to wait for a silent system, which was to be left anyway. The
  // exception is a system whose commit was ordered: if it was committed, a power cycle would start the same
  // system again.
  if (s.kind == ActionKind::return_slot && s.may_cut && !s.may_stand && s.power == PowerState::on) {
    if (s.now - s.silent_since >= t.lost_after) return act(What::cycle, observed);
    return wait(std::min(next_look, s.silent_since + t.lost_after));
  }
  return wait(next_look);
}

}  // namespace

Decision advance_slot(const Situation& s, const ExecutorTiming& t) {
  if (s.now >= s.deadline) return late(s, t);
  if (s.departed || s.cycled) return restarting(s, t);
  if (s.now - s.silent_since >= t.silent_after) return slot_silence(s, t);
  if (!s.mode)
    return wait_for("no agent yet", "the agent", "unknown", s.started,
                    std::min(s.deadline, s.silent_since + t.silent_after), "the power state is read");
  if (s.in_doubt) {
    Decision d =
        wait_for("it is unknown which system the node runs, and whether it will stay in that system",
                 "a report from its agent", power_text(s), s.started, s.deadline, "the order to restart");
    d.check_at = s.now + t.look_again;
    return d;
  }
  if (*s.mode == wire::Mode::ram) {
    // No network boot is served to it, so after a power cycle it boots from its disk.
    if (s.kind == ActionKind::return_slot && is_remote(s.by))
      return act(What::cycle, "it runs the RAM system instead of its installed one");
    return wait_for("the node is in the wrong system", "the installed system's agent",
                    "the RAM system's agent", s.started, s.deadline, why_next(s));
  }
  return act(What::offer, "");
}

}  // namespace muster
