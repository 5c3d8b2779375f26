// Shared by the measuring modules: the path of a measuring program, its output, the other nodes of a step,
// and loads on several nodes.
//
// Thread: the worker's; in_pairs() starts threads of its own, and joins them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/parameters.h"

namespace muster::checks {

// As received with the order, else /usr/lib/muster/NAME, else /usr/sbin/NAME.
std::string program(const StepContext& context, const std::string& name);
// The measurement that a program printed. The exit status only repeats the outcome, and mpirun adds its own
// output. invalid: the program does not support its options; failed: it printed no measurement.
Result<Json> measurement(const Output& output, const std::string& what);

struct Peer {
  std::string name, address;
};
MUSTER_RECORD(Peer, lenient, name, address)

// One load across several nodes, over MPI or TCP.
struct SharedLoad {
  std::vector<Peer> hosts;
  std::optional<std::vector<Json>> pairs;
  std::string seconds = "1", load = "allreduce";
  int64_t max_bytes = 262144;
  std::map<std::string, Json> options;
};
MUSTER_PARAMETERS(
    SharedLoad, required(hosts, "nodes: {name, address}"),
    optional(pairs, "pairs of node names: run the load on each of these pairs instead of on all nodes"),
    optional(seconds, "time budget in seconds"), optional(load, "allreduce, training, nccl or gpu-training"),
    optional(max_bytes, "largest message in bytes, for the loads `allreduce` and `nccl`"),
    optional(options,
             "options of the load: {model: 1024} becomes --model 1024; GPU loads require `gpus` (per node)"))
bool runs_on_gpus(const std::string& load);

// Replaces {peer} by the name of the next node, and {folder} by the folder that steps of this agent share.
std::string argument_text(const StepContext& context, const Json& value, const std::string& peer);

// The rest of a load's arguments: its own options, and what it needs in pairs.
std::vector<std::string> load_words(const StepContext& context, const SharedLoad& want);

// Runs the load on all hosts, or on each of the pairs, many at once: simultaneous pairs share no node. A pair
// with a missing node is left out. In pairs it returns {"check", "parts": [{"pair", "result"}]}.
using Load = std::function<Result<Json>(const std::vector<Peer>& hosts)>;
Result<Json> on_all_or_pairs(StepContext& context, const SharedLoad& want, const Load& load);

// The measurement of a load that `mpirun` or `muster-accept group` ran on `hosts`. A failure or a hang is a
// measurement of all of them, not a result about this node. An Error only if the load could not be started.
enum class Starter { mpirun, group };
Result<Json> load_result(const Result<Output>& output, Starter by, const std::string& load,
                         const std::vector<Peer>& hosts);

// GPU loads are not applicable to a lab's stand-ins (base/standin.h), where a figure would be meaningless.
// The error counters of the stand-ins' driver are still read, because labs simulate errors.
StepModule without_standins(StepModule module);

}  // namespace muster::checks
