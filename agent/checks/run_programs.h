// What the measuring modules have in common: where a measuring program lies, what it printed, the other nodes
// of a step, and loads in pairs of nodes.
//
// Thread: the worker's; in_pairs() has threads of its own, which it joins.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/step.h"

namespace muster::checks {

// What the order brought, else /usr/lib/muster/NAME, else where a package installs it.
std::string program(const StepContext& context, const std::string& name);
// The measurement that a program printed. Its exit status only repeats the outcome; mpirun adds words of its
// own around it. invalid: it does not take its options; failed: it printed none.
Result<Json> measurement(const Output& output, const std::string& what);

struct Peer {
  std::string name, address;
};
// A parameter that is a list of {name, address}; empty: there is none.
Result<std::vector<Peer>> peers_of(const Json& params, const char* key);

// {peer}: the name of the next node; {folder}: where steps of this agent leave files to each other.
std::string argument_text(const StepContext& context, const Json& value, const std::string& peer);

// One load of all `hosts`, or of each of the `pairs` in params by itself, many at once: no two pairs have a
// node in common. A pair one of whose nodes is gone is left out. {"check", "parts": [{"pair", "result"}]}.
using Load = std::function<Result<Json>(const std::vector<Peer>& hosts)>;
Result<Json> in_pairs(StepContext& context, const Json& params, const std::vector<Peer>& hosts,
                      const Load& load);

}  // namespace muster::checks
