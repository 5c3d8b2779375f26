// Functions that build the decisions of node_state.cc and slot_state.cc, and texts for both. Included by
// these two files only. Thread safety: stateless functions.
#pragma once

#include <string>
#include <utility>

#include "controller/run/node_state.h"

namespace muster {

inline Decision wait_for(std::string reason, std::string awaited, std::string observed, SteadyMs since,
                         SteadyMs until, std::string next) {
  Decision d;
  d.wait = {std::move(reason), std::move(awaited), std::move(observed), std::move(next), since, until};
  return d;
}

inline Decision act(Decision::What what, std::string reason, bool with_netboot = false) {
  Decision d;
  d.what = what;
  d.reason = std::move(reason);
  d.with_netboot = with_netboot;
  return d;
}

// The kernel panic on the machine's console, as text for operators; "" if there was none.
inline std::string console_text(const Situation& s) {
  return s.panic.empty() ? "" : "; its console: " + s.panic;
}

inline std::string no_contact_text(const Situation& s) {
  return "agent silent for " + to_human(s.now - s.silent_since);
}

// The agent's silence as text for operators, with the power state and the console of the machine.
inline std::string silence_text(const Situation& s) {
  return no_contact_text(s) + "; " + power_text(s) + console_text(s);
}

inline Decision wait_for_sign(const Situation& s, SteadyMs until, std::string next) {
  return wait_for("the agent is silent", "a message from the agent", silence_text(s), s.silent_since, until,
                  std::move(next));
}

// Waits for the installed system's agent while the machine restarts, at most until the action's deadline.
inline Decision wait_for_installed(const Situation& s, std::string reason, std::string observed,
                                   std::string next) {
  return wait_for(std::move(reason), "the installed system's agent", std::move(observed), s.started,
                  s.deadline, std::move(next));
}

inline Decision look_at_power() { return act(Decision::What::look, "the power state"); }

// The action fails: the machine was powered on the maximum number of times and is still off.
inline Decision stays_off(const Situation& s, const ExecutorTiming& t) {
  return act(Decision::What::fail, switcher_name(s.by) + " was ordered " + std::to_string(t.power_tries) +
                                       " times to power the machine on, but it is still off");
}

}  // namespace muster
