// Shared by the measuring modules: the path of a measuring program, its output, the other nodes of a step,
// and loads on pairs of nodes.
//
// Thread: the worker's; in_pairs() starts threads of its own, and joins them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/core/step.h"

namespace muster::checks {

// Returns a program's path: as received with the order, else /usr/lib/muster/NAME, else /usr/sbin/NAME.
std::string program(const StepContext& context, const std::string& name);
// Parses the measurement that a program printed. The exit status only repeats the outcome, and mpirun adds
// its own output. invalid: the program does not support its options; failed: it printed no measurement.
Result<Json> measurement(const Output& output, const std::string& what);

struct Peer {
  std::string name, address;
};
// Reads a parameter that is a list of {name, address}; empty if it is absent.
Result<std::vector<Peer>> peers_of(const Json& params, const char* key);

// Replaces {peer} by the name of the next node, and {folder} by the folder that steps of this agent share.
std::string argument_text(const StepContext& context, const Json& value, const std::string& peer);

// Runs one load on all `hosts`, or one on each of the `pairs` in params, many at once: simultaneous pairs
// share no node. A pair with a missing node is left out. Returns {"check", "parts": [{"pair", "result"}]}.
using Load = std::function<Result<Json>(const std::vector<Peer>& hosts)>;
Result<Json> in_pairs(StepContext& context, const Json& params, const std::vector<Peer>& hosts,
                      const Load& load);

}  // namespace muster::checks
