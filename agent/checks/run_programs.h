// What the measuring modules have in common: where a measuring program is, what it printed, the other nodes
// of a step, and loads in pairs of nodes.
//
// Thread: the worker's; in_pairs() has threads of its own, which it joins.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/step.h"

namespace muster::checks {

// The program that came with the order, else /usr/lib/muster/NAME, else where a package installs it.
std::string program(const StepContext& context, const std::string& name);
// The measurement that a program printed. Its exit status only repeats the outcome; mpirun adds its own
// output around it. invalid: it does not support its options; failed: it printed none.
Result<Json> measurement(const Output& output, const std::string& what);

struct Peer {
  std::string name, address;
};
// A parameter that is a list of {name, address}; empty: there is none.
Result<std::vector<Peer>> peers_of(const Json& params, const char* key);

// {peer}: the name of the next node; {folder}: the folder that steps of this agent share.
std::string argument_text(const StepContext& context, const Json& value, const std::string& peer);

// One load of all `hosts`, or of each of the `pairs` in params alone, many at once: pairs that run at once
// have no node in common. A pair with a missing node is left out. {"check", "parts": [{"pair", "result"}]}.
using Load = std::function<Result<Json>(const std::vector<Peer>& hosts)>;
Result<Json> in_pairs(StepContext& context, const Json& params, const std::vector<Peer>& hosts,
                      const Load& load);

}  // namespace muster::checks
