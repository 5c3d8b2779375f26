// How decisions are made up: node_state.cc's and slot_state.cc's, and nobody else's business. Thread: any;
// values only.
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

// What its console told of, for people; "" where it told of nothing.
inline std::string console_text(const Situation& s) {
  return s.panic.empty() ? "" : "; its console: " + s.panic;
}

}  // namespace muster
