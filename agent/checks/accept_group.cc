// Loads of several nodes without MPI: `muster-accept group` on the leader, `muster-accept group-serve` on the
// others (kernels/together/group_leader.h, group_server.h).
#include <fmt/format.h>

#include <algorithm>

#include "agent/checks/checks.h"
#include "agent/checks/run_programs.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"
#include "base/ports.h"

namespace muster::checks {
namespace {

using steps::int_of;
using steps::object_of;
using steps::parameter;
using steps::text_of;

constexpr int kServeSeconds = 900, kWaitSeconds = 180, kLingerSeconds = 90;
constexpr DurationMs kGroupEndSeconds = 15;  // time to print its result
constexpr DurationMs kByeSeconds = 30;

bool loads_gpus_of_all(const std::string& load) { return load == "nccl" || load == "gpu-training"; }

std::vector<std::string> leader_words(const StepContext& context, const Json& params,
                                      const std::vector<Peer>& hosts) {
  std::string members;
  for (const auto& host : hosts) members += (members.empty() ? "" : ",") + host.name + "=" + host.address;
  std::vector<std::string> words = {program(context, "muster-accept"),
                                    "group",
                                    "--members",
                                    members,
                                    "--self",
                                    context.node,
                                    "--port",
                                    std::to_string(int_of(params, "port", kGroupPort))};
  if (const std::string address = text_of(params, "address"); !address.empty())
    words.insert(words.end(), {"--bind", address});
  return words;
}

void add_gpu_words(const StepContext& context, const Json& params, std::vector<std::string>& words) {
  words.insert(words.end(), {"--program", program(context, "muster-accept-gpu")});
  if (const std::string libs = text_of(params, "libs"); !libs.empty())
    words.insert(words.end(), {"--libs", libs});
}

Json failed_load(const std::string& load, const std::string& error, const Json& members) {
  return {{"check", load}, {"version", 1}, {"outcome", "failed"}, {"error", error}, {"members", members}};
}

// First the connections are made, then the load runs; both end before the program would be killed.
Command leader_command(const StepContext& context, const Json& params, const std::vector<Peer>& hosts) {
  const std::string load = text_of(params, "load", "allreduce");
  const int64_t deadline = int_of(params, "deadline_seconds", 180);
  const int64_t connect = std::min(int_of(params, "connect_seconds", 60), std::max<int64_t>(deadline / 3, 1));
  Command command;
  command.argv = leader_words(context, params, hosts);
  command.argv.insert(
      command.argv.end(),
      {"--load", load, "--seconds", text_of(params, "seconds", "1"), "--max-bytes",
       std::to_string(int_of(params, "max_bytes", 262144)), "--connect-seconds", std::to_string(connect),
       "--deadline", std::to_string(std::max(deadline - connect - kGroupEndSeconds, deadline / 2))});
  if (loads_gpus_of_all(load)) {
    add_gpu_words(context, params, command.argv);
    // NCCL's own choice may route around a bad link; between two nodes the link itself is tested.
    if (params.contains("pairs")) command.argv.insert(command.argv.end(), {"--algorithm", "Ring"});
  }
  for (const auto& [name, value] : object_of(params, "options").items())
    command.argv.insert(command.argv.end(), {"--" + name, argument_text(context, value, "")});
  command.deadline = (deadline + kGroupEndSeconds) * kSecond;
  return command;
}

// A failure or a hang is a measurement of all members, not a result about this node. Only an error that
// prevents the start of the load is returned as an Error.
Result<Json> run_load(StepContext& context, const Json& params, const std::vector<Peer>& hosts) {
  const std::string load = text_of(params, "load", "allreduce");
  Json members = Json::array();
  for (const auto& host : hosts) members.push_back(host.name);
  const auto output = context.process.run(leader_command(context, params, hosts));
  if (!output.ok() && output.error().code == Code::timeout)
    return failed_load(load, output.error().message, members);
  if (!output.ok()) return output.error();
  auto result = measurement(*output, "muster-accept group");
  // Unsupported options are an error in the profile, not a fault of a node.
  if (!result.ok() && result.error().code == Code::invalid) return result.error();
  if (!result.ok()) return failed_load(load, result.error().message, members);
  (*result)["members"] = members;
  const std::string outcome = text_of(*result, "outcome");
  if (outcome != "measured" && outcome != "corrupt") return result;
  // With fewer ranks than hosts, the result might be good, but it would be that of a smaller cluster.
  const Json ranks = result->value(Json::json_pointer("/metrics/ranks/value"), Json());
  if (!ranks.is_number() || ranks.get<double>() != static_cast<double>(hosts.size()))
    return failed_load(load, fmt::format("{} of {} ranks took part", dump_json(ranks), hosts.size()),
                       members);
  return result;
}

Result<Json> dismiss(StepContext& context, const Json& params, const std::vector<Peer>& hosts) {
  Command command;
  command.argv = leader_words(context, params, hosts);
  command.argv.push_back("--bye");
  command.deadline = kByeSeconds * kSecond;
  TRY(const Output output, context.process.run(command));
  return measurement(output, "muster-accept group --bye");
}

Result<Json> lead(StepContext& context, const Json& params) {
  TRY(const std::vector<Peer> hosts, peers_of(params, "hosts"));
  if (hosts.empty()) return fail(Code::invalid, "accept_group: 'hosts' is empty");
  if (steps::bool_of(params, "bye", false)) return dismiss(context, params, hosts);
  const auto load = [&](const std::vector<Peer>& members) { return run_load(context, params, members); };
  auto result = params.contains("pairs") ? in_pairs(context, params, hosts, load) : load(hosts);
  // A load that could not run is not repeated in pairs, so the other nodes can stop serving.
  const bool over = !result.ok() || text_of(*result, "outcome") == "unavailable";
  if (over || steps::is_cancelled(context)) (void)dismiss(context, params, hosts);
  return result;
}

// The leader reports that a member could not serve; the result of this step gives the reason.
Result<Json> serve(StepContext& context, const Json& params) {
  TRY(const std::vector<Peer> leaders, peers_of(params, "peers"));
  if (leaders.empty())
    return Json{{"check", "group-serve"},
                {"version", 1},
                {"outcome", "measured"},
                {"error", ""},
                {"blame", Json::array()},
                {"metrics", Json::object()},
                {"detail", {{"loads", 0}, {"ended", "no leader"}}}};
  std::string addresses;
  for (const auto& leader : leaders) addresses += (addresses.empty() ? "" : ",") + leader.address;
  const int64_t seconds = int_of(params, "deadline_seconds", kServeSeconds);
  steps::say(context, fmt::format("taking part in the load led by {}", leaders.front().name));
  Command command;
  command.argv = {program(context, "muster-accept"),
                  "group-serve",
                  "--bind",
                  text_of(params, "address"),
                  "--port",
                  std::to_string(int_of(params, "port", kGroupPort)),
                  "--peers",
                  addresses,
                  "--seconds",
                  std::to_string(seconds),
                  "--wait-seconds",
                  std::to_string(int_of(params, "wait_seconds", kWaitSeconds)),
                  "--linger-seconds",
                  std::to_string(int_of(params, "linger_seconds", kLingerSeconds))};
  if (loads_gpus_of_all(text_of(params, "load"))) add_gpu_words(context, params, command.argv);
  command.deadline = (seconds + kGroupEndSeconds) * kSecond;
  TRY(const Output output, context.process.run(command));
  return measurement(output, "muster-accept group-serve");
}

}  // namespace

StepModule accept_group_module() {
  StepModule m;
  m.name = "accept_group";
  m.help =
      "Leads one load across the listed nodes, over TCP and without MPI, with one rank per node, and checks "
      "every result exactly. The load is an all-reduce, a training-shaped load on 1, 2, 4 ... and all nodes, "
      "NCCL's collectives across all GPUs of the nodes, or the training-shaped load on the GPUs. A profile's "
      "step has `among: group` and `on: leader`; the planner adds a step for the other nodes, "
      "accept_group_serve, in the same stage. The result names a member that does not respond, dies or "
      "hangs. If the load fails or is too slow, the controller repeats it in pairs of nodes.";
  m.parameters = Json::array(
      {parameter("hosts", "list", true, "nodes: {name, address}"),
       parameter("pairs", "list", false,
                 "pairs of node names: run the load on each of these pairs instead of on all nodes"),
       parameter("bye", "bool", false, "make the other nodes stop serving instead of running a load", false),
       parameter("address", "string", false,
                 "address of this node; required if `hosts` does not list this node"),
       parameter("port", "int", false, "TCP port on all nodes", kGroupPort),
       parameter("seconds", "string", false, "time budget in seconds", "1"),
       parameter("load", "string", false, "allreduce, training, nccl or gpu-training", "allreduce"),
       parameter("max_bytes", "int", false, "largest message in bytes, for the loads `allreduce` and `nccl`",
                 262144),
       parameter(
           "options", "object", false,
           "options of the load: {model: 1024} becomes --model 1024; GPU loads require `gpus` (per node)"),
       parameter("libs", "string", false, "folder with NCCL and its dependencies, for GPU loads"),
       parameter("connect_seconds", "int", false,
                 "how long to wait for the other nodes' servers; at most a third of the deadline", 60),
       parameter("deadline_seconds", "int", false, "time limit of the load in seconds", 180),
       parameter("pair_deadline_seconds", "int", false,
                 "time limit of the load on one pair of nodes, in seconds", 60)});
  m.check = has_what_it_measures;
  m.measure = lead;
  return m;
}

StepModule accept_group_serve_module() {
  StepModule m;
  m.name = "accept_group_serve";
  m.help =
      "Takes part in a load that another node leads with accept_group, for as long as the leader needs this "
      "node. Added by the planner; not for use in playbooks.";
  m.parameters = Json::array(
      {parameter("peers", "list", true,
                 "the leader: {name, address}; only connections from the leader are accepted"),
       parameter("address", "string", true, "address of this node"),
       parameter("port", "int", false, "TCP port", kGroupPort),
       parameter("load", "string", false, "allreduce, training, nccl or gpu-training", "allreduce"),
       parameter("libs", "string", false, "folder with NCCL and its dependencies, for GPU loads"),
       parameter("wait_seconds", "int", false, "how long to wait for the leader", kWaitSeconds),
       parameter("linger_seconds", "int", false, "how long to wait for the next load", kLingerSeconds),
       parameter("deadline_seconds", "int", false, "hard time limit", kServeSeconds)});
  m.check = has_what_it_measures;
  m.measure = serve;
  return m;
}

}  // namespace muster::checks
