#include "controller/run/node_state.h"

#include <algorithm>

#include "controller/run/decide.h"

namespace muster {
namespace {

using What = Decision::What;

// Returns the next state of a node whose action fails for good.
std::string in_the_end(const Situation& s) { return s.may_go_back ? "back to its old system" : "quarantine"; }

// Returns the next state, and the reason, for a failed node that muster cannot restart.
std::string last_resort(const Situation& s) {
  return in_the_end(s) + (s.by == Switch::provider ? ": its provider cannot boot it from the network"
                                                   : ": muster cannot control its power");
}

std::string by_a_person(const Situation& s) {
  return s.may_netboot ? "a person boots it from the network" : in_the_end(s);
}

// A power cycle was ordered, and the RAM system's agent has not sent a hello since.
Decision await_ram(const Situation& s, const ExecutorTiming& t) {
  if (s.now >= s.deadline)
    return act(What::again,
               "no agent reported from the RAM system within " + to_human(s.deadline - s.power_requested) +
                   " of power-on; " + power_text(s) + console_text(s),
               true);
  const bool looked = s.looked > s.power_requested;
  if (!s.power_certain && !looked) return act(What::look, "the outcome of the power cycle is unknown");
  if (looked && s.power == PowerState::off && s.stayed_off + 1 >= t.power_tries) return stays_off(s, t);
  if (looked && s.power == PowerState::off)
    return act(What::netboot, "the power cycle did not happen: power is off");
  // A lost answer alone does not justify interrupting the firmware's self-test by another power cycle; a
  // system that continues to report does. After a restart of the controller it is unknown whether such a
  // system ran before or booted instead, but it is not the RAM system.
  const bool other_system = s.same_system || (s.mode && *s.mode != wire::Mode::ram);
  if (other_system && s.power_answered && s.contact >= s.power_answered + t.cycle_shows)
    return act(What::netboot,
               "the power cycle did not happen, or did not boot the RAM system: a different system answers");
  const bool open = !s.power_certain && s.power != PowerState::on;
  const SteadyMs next_look =
      std::max({s.power_requested, s.power_answered, s.looked}) + (open ? t.look_again : t.watch_power);
  if (s.now >= next_look) return look_at_power();
  Decision d = wait_for(s.power_certain ? "booting the RAM system from the network"
                                        : "the outcome of the power cycle is unknown",
                        "the RAM system's agent", power_text(s) + console_text(s), s.power_requested,
                        s.deadline, "retry, then quarantine");
  d.check_at = next_look;
  return d;
}

// The same for a node that a person switched: its power state cannot be read.
Decision await_ram_by_hand(const Situation& s, const ExecutorTiming& t) {
  if (s.now >= s.deadline)
    return act(What::again,
               "it was restarted by hand, but no agent reported from the RAM system within " +
                   to_human(s.deadline - s.power_requested),
               true);
  const bool other_system = s.same_system || (s.mode && *s.mode != wire::Mode::ram);
  if (other_system && s.contact >= s.power_answered + t.cycle_shows)
    return act(What::netboot,
               "it was not restarted, or did not boot the RAM system: a different system answers");
  return wait_for("booting the RAM system from the network", "the RAM system's agent",
                  "it was restarted by hand", s.power_requested, s.deadline,
                  "a person restarts it again, then quarantine");
}

// The same for a node whose own agent was ordered to hand over to the RAM system. There is no power state to
// read: a hello comes from the RAM system's agent, or from the old system's again, or not at all.
Decision await_handover(const Situation& s, const ExecutorTiming& t) {
  if (s.now >= s.deadline)
    return act(
        What::again,
        s.power_certain
            ? "it handed over to the RAM system, but neither that system nor the old one reported within " +
                  to_human(s.deadline - s.power_requested)
            : "its agent did not confirm the order to hand over to the RAM system within " +
                  to_human(s.deadline - s.power_requested),
        true);
  const bool other_system = s.same_system || (s.mode && *s.mode != wire::Mode::ram);
  if (s.power_certain && other_system && s.contact >= s.power_answered + t.leave_shows)
    return act(What::again, "it was ordered to hand over to the RAM system, but its old system still answers",
               true);
  if (!s.power_certain)
    return wait_for("its own system hands over to the RAM system", "its agent's confirmation", power_text(s),
                    s.power_requested, s.deadline, "retry, then quarantine");
  return wait_for("handing over to the RAM system (kexec)", "the RAM system's agent",
                  "its old system reported that it is handing over", s.power_answered, s.deadline,
                  "the old system comes back by itself, then retry");
}

// The agent reported that it restarts, and the installed system's agent has not sent a hello since.
Decision await_restart(const Situation& s, const ExecutorTiming& t) {
  const std::string said = "the agent reported that it restarts";
  if (s.hands_over()) return wait_for_installed(s, "restarting", said + "; " + power_text(s), last_resort(s));
  if (s.by == Switch::person) return wait_for_installed(s, "restarting", said, by_a_person(s));
  const SteadyMs last = std::max({s.silent_since, s.started, s.looked});
  const bool off = bool(s.off_since);
  // Firmware may switch a machine off for some seconds by itself, for example after an update.
  if (off && s.looked >= s.off_since + t.off_counts)
    return act(s.may_netboot ? What::again : What::fail, "the node lost power while it restarted",
               s.may_netboot);
  const SteadyMs next_look = last + (off ? t.look_again : t.watch_power);
  if (s.now >= next_look) return look_at_power();
  Decision d =
      wait_for_installed(s, "restarting", said + "; " + power_text(s) + console_text(s),
                         s.may_netboot ? "retry through the RAM system, then quarantine" : in_the_end(s));
  d.check_at = next_look;
  return d;
}

Decision silence(const Situation& s, const ExecutorTiming& t) {
  if (s.hands_over()) return wait_for_sign(s, s.deadline, last_resort(s));
  if (s.by == Switch::person) return wait_for_sign(s, s.deadline, by_a_person(s));
  const DurationMs silent = s.now - s.silent_since;
  const std::string observed = silence_text(s);
  const bool looked = s.looked > s.silent_since;
  const bool stale = s.now >= s.looked + t.look_again;
  if (!looked || (stale && s.power != PowerState::on)) return act(What::look, observed);
  // Firmware may switch a restarting machine off for some seconds by itself; a controller that crashed may
  // not know that it is restarting.
  const bool restarts = s.kind == ActionKind::boot_disk || s.kind == ActionKind::reboot;
  const bool may_return = restarts && s.off_since && s.looked < s.off_since + t.off_counts;
  if (s.power == PowerState::off && !may_return) {
    if (s.may_netboot) return act(What::again, "the node lost power: " + observed, true);
    if (silent >= t.lost_after) return act(What::fail, "the node lost power: " + observed);
  }
  if (s.power == PowerState::on && s.may_netboot && !restarts && silent >= t.lost_after)
    return act(What::again, "the agent is silent: " + observed, true);
  SteadyMs until = s.power == PowerState::on ? s.silent_since + t.lost_after : s.looked + t.look_again;
  if (until <= s.now) until = s.deadline;
  return wait_for_sign(s, std::min(until, s.deadline),
                       s.may_netboot ? "netboot again" : in_the_end(s) + " at the deadline");
}

// All agents are silent, and this machine was not seen powered off: the controller itself may be cut off.
// Nothing is done to a node, and no deadline counts, until an agent reports or the silence is too long.
Decision cut_off(const Situation& s, const ExecutorTiming& t) {
  const SteadyMs next_look = std::max(s.looked, s.silent_since) + t.watch_power;
  if (!s.hands_over() && s.by != Switch::person && s.now >= next_look) return look_at_power();
  const std::string silence = s.awaiting_ram ? "the RAM system's agent did not report" : no_contact_text(s);
  Decision d = wait_for("all agents are silent: the controller itself may be cut off",
                        "a message from any agent", silence + "; " + power_text(s), s.alone_since,
                        s.alone_since + t.alone_for, "the silence is attributed to the node");
  d.check_at = s.hands_over() || s.by == Switch::person ? s.now + t.look_again : next_look;
  return d;
}

Decision wrong_system(const Situation& s, wire::Mode needed) {
  if (needed == wire::Mode::ram && s.may_netboot)
    return act(What::again,
               "the node runs its " + std::string(to_string(*s.mode)) + " system instead of the RAM system",
               true);
  return wait_for("the node is in the wrong system",
                  "the " + std::string(to_string(needed)) + " system's agent",
                  s.mode ? "agent in mode " + std::string(to_string(*s.mode)) : "no agent seen", s.started,
                  s.deadline, in_the_end(s));
}

bool fits(wire::Mode needed, wire::Mode mode) {
  return needed == mode || (needed == wire::Mode::installed && mode == wire::Mode::adopted);
}

}  // namespace

std::string switcher_name(Switch by) { return by == Switch::provider ? "its provider" : "the BMC"; }

std::string power_text(const Situation& s) {
  // A provider's power state is read for a node to be woken, not for nodes that hand over by themselves.
  if (s.hands_over() && !(s.by == Switch::provider && (s.kind == ActionKind::wake || is_for_slot(s.kind)))) {
    if (!s.power_error.empty()) return s.power_error;
    return s.by == Switch::provider
               ? "its power state is not read: its provider cannot boot it from the network"
               : "its power state cannot be read (driver ssh)";
  }
  if (s.by == Switch::person) return "its power state cannot be read (driver `manual`)";
  if (!s.power_error.empty())
    return switcher_name(s.by) + " does not report the power state: " + s.power_error;
  if (!s.power) return "power state not read";
  return *s.power == PowerState::on    ? "power is on"
         : *s.power == PowerState::off ? "power is off"
                                       : "power state is in transition";
}

Json to_json(const Wait& w, DurationMs ahead) {
  const auto shown = [ahead](SteadyMs at) -> TimeMs { return at ? at.ms + ahead : 0; };
  return {{"reason", w.reason}, {"awaited", w.awaited},    {"observed", w.observed},
          {"next", w.next},     {"since", shown(w.since)}, {"until", shown(w.until)}};
}

wire::OrderKind order_kind(ActionKind kind) {
  using wire::OrderKind;
  switch (kind) {
    case ActionKind::inventory:
      return OrderKind::inventory;
    case ActionKind::image:
      return OrderKind::image;
    case ActionKind::boot_disk:
      return OrderKind::boot_disk;
    case ActionKind::steps:
      return OrderKind::steps;
    case ActionKind::check:
      return OrderKind::check;
    case ActionKind::reboot:
    case ActionKind::return_slot:
      return OrderKind::reboot;
    case ActionKind::write_slot:
      return OrderKind::write_slot;
    case ActionKind::boot_slot:
      return OrderKind::boot_slot;
    case ActionKind::netboot:
    case ActionKind::power_off:
    case ActionKind::wake:
      return OrderKind::unknown;
  }
  return OrderKind::unknown;
}

bool is_for_slot(ActionKind kind) { return kind == ActionKind::boot_slot || kind == ActionKind::return_slot; }

bool is_order(ActionKind kind) { return order_kind(kind) != wire::OrderKind::unknown; }

std::optional<wire::Mode> mode_needed(ActionKind kind) {
  switch (kind) {
    case ActionKind::image:
    case ActionKind::boot_disk:
      return wire::Mode::ram;
    case ActionKind::steps:
    case ActionKind::check:
    case ActionKind::reboot:
    case ActionKind::write_slot:
    case ActionKind::boot_slot:
    case ActionKind::return_slot:
      return wire::Mode::installed;
    case ActionKind::netboot:
    case ActionKind::inventory:
    case ActionKind::power_off:
    case ActionKind::wake:
      return std::nullopt;
  }
  return std::nullopt;
}

Decision advance(const Situation& s, const ExecutorTiming& t) {
  const bool alone = s.alone_since && s.now < s.alone_since + t.alone_for && s.power != PowerState::off;
  const bool boots = s.awaiting_ram || s.departed || s.cycled;  // silence is expected until its time is over
  if (alone && (!boots || s.now >= s.deadline)) return cut_off(s, t);
  if (is_for_slot(s.kind)) return advance_slot(s, t);
  if (s.awaiting_ram)
    return s.hands_over()           ? await_handover(s, t)
           : s.by == Switch::person ? await_ram_by_hand(s, t)
                                    : await_ram(s, t);
  if (s.now >= s.deadline) {
    const std::string span = to_human(s.deadline - s.started);
    const std::string late =
        s.departed ? "no agent reported from the installed system within " + span +
                         " of the order to restart; " + power_text(s) +
                         (s.panic.empty() ? ": its console shows whether it hangs or its kernel panicked"
                                          : console_text(s))
                   : "not finished within " + span + "; last contact with its agent " +
                         to_human(s.now - s.silent_since) + " ago";
    // A silent node that cannot be restarted gets no orders.
    const bool gone = s.hands_over() && (s.departed || s.now - s.silent_since >= t.silent_after);
    return s.may_netboot && !gone ? act(What::again, late, true) : act(What::fail, late);
  }
  if (s.departed) return await_restart(s, t);
  const auto needed = mode_needed(s.kind);
  const bool right = s.mode && (!needed || fits(*needed, *s.mode));
  if (s.now - s.silent_since >= t.silent_after) return silence(s, t);
  if (!right)
    return needed && s.mode
               ? wrong_system(s, *needed)
               : wait_for("no agent yet", "the agent", "unknown", s.started,
                          std::min(s.deadline, s.silent_since + t.silent_after), "the power state is read");
  return act(What::offer, "");
}

}  // namespace muster
