// Loads of several nodes without MPI: `muster-accept group` on the one that leads, `muster-accept
// group-serve` on the others (kernels/together/group_leader.h, group_server.h).
#include <fmt/format.h>

#include <algorithm>

#include "agent/checks/checks.h"
#include "agent/checks/run_programs.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"

namespace muster::checks {
namespace {

using steps::int_of;
using steps::object_of;
using steps::parameter;
using steps::text_of;

constexpr int kPort = 7540;
constexpr int kServeSeconds = 900, kWaitSeconds = 180, kLingerSeconds = 90;
constexpr DurationMs kEndSeconds = 15;  // to print its result
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
                                    std::to_string(int_of(params, "port", kPort))};
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

// The connections come first, then the load; both end by themselves before the program would be killed.
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
       "--deadline", std::to_string(std::max(deadline - connect - kEndSeconds, deadline / 2))});
  if (loads_gpus_of_all(load)) {
    add_gpu_words(context, params, command.argv);
    // NCCL's own choice may route around a bad link; between two nodes it is the link that is judged.
    if (params.contains("pairs")) command.argv.insert(command.argv.end(), {"--algorithm", "Ring"});
  }
  for (const auto& [name, value] : object_of(params, "options").items())
    command.argv.insert(command.argv.end(), {"--" + name, argument_text(context, value, "")});
  command.deadline = (deadline + kEndSeconds) * kSecond;
  return command;
}

// That it failed or hung is a measurement: it is a test of all members, and says nothing about this node. An
// error is only what keeps it from being started.
Result<Json> run_load(StepContext& context, const Json& params, const std::vector<Peer>& hosts) {
  const std::string load = text_of(params, "load", "allreduce");
  Json members = Json::array();
  for (const auto& host : hosts) members.push_back(host.name);
  const auto output = context.process.run(leader_command(context, params, hosts));
  if (!output.ok() && output.error().code == Code::timeout)
    return failed_load(load, output.error().message, members);
  if (!output.ok()) return output.error();
  auto result = measurement(*output, "muster-accept group");
  // Options it does not take are the profile's fault, and no node's.
  if (!result.ok() && result.error().code == Code::invalid) return result.error();
  if (!result.ok()) return failed_load(load, result.error().message, members);
  (*result)["members"] = members;
  const std::string outcome = text_of(*result, "outcome");
  if (outcome != "measured" && outcome != "corrupt") return result;
  // Fewer ranks than hosts would be a good result of another cluster.
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
  // What could not be run is not repeated in pairs, so nothing follows.
  const bool over = !result.ok() || text_of(*result, "outcome") == "unavailable";
  if (over || steps::is_cancelled(context)) (void)dismiss(context, params, hosts);
  return result;
}

// A member that could not serve is found by its leader; this says why.
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
  steps::say(context, fmt::format("carries out its part of what {} leads", leaders.front().name));
  Command command;
  command.argv = {program(context, "muster-accept"),
                  "group-serve",
                  "--bind",
                  text_of(params, "address"),
                  "--port",
                  std::to_string(int_of(params, "port", kPort)),
                  "--peers",
                  addresses,
                  "--seconds",
                  std::to_string(seconds),
                  "--wait-seconds",
                  std::to_string(int_of(params, "wait_seconds", kWaitSeconds)),
                  "--linger-seconds",
                  std::to_string(int_of(params, "linger_seconds", kLingerSeconds))};
  if (loads_gpus_of_all(text_of(params, "load"))) add_gpu_words(context, params, command.argv);
  command.deadline = (seconds + kEndSeconds) * kSecond;
  TRY(const Output output, context.process.run(command));
  return measurement(output, "muster-accept group-serve");
}

}  // namespace

StepModule accept_group_module() {
  StepModule m;
  m.name = "accept_group";
  m.help =
      "Leads one load over the given nodes, over TCP and without MPI, one rank each, every result checked "
      "exactly: an all-reduce, a training-shaped load on 1, 2, 4 ... and all of them, NCCL's collectives "
      "over "
      "all their GPUs, or the training-shaped load on these. A profile's step has `among: group` and `on: "
      "leader`; the planner has the other nodes serve (accept_group_serve) in the same stage. A member that "
      "does not answer, dies or hangs is named. When the load fails or is too slow, the controller has it "
      "repeated in pairs of nodes.";
  m.parameters = Json::array(
      {parameter("hosts", "list", true, "nodes: {name, address}"),
       parameter("pairs", "list", false,
                 "pairs of names: instead of all nodes, each of these pairs by itself"),
       parameter("bye", "bool", false, "instead of a load: the other nodes stop serving", false),
       parameter("address", "string", false, "own address; needed where this node is none of `hosts`"),
       parameter("port", "int", false, "TCP port of all nodes", kPort),
       parameter("seconds", "string", false, "time budget", "1"),
       parameter("load", "string", false, "allreduce, training, nccl or gpu-training", "allreduce"),
       parameter("max_bytes", "int", false, "all-reduce, nccl: largest message in bytes", 262144),
       parameter("options", "object", false,
                 "its options: {model: 1024} is --model 1024; the loads of GPUs want gpus, the number of "
                 "each node"),
       parameter("libs", "string", false, "loads of GPUs: folder with NCCL and what it loads"),
       parameter("connect_seconds", "int", false,
                 "how long the other nodes' servers are waited for; at most a third of the deadline", 60),
       parameter("deadline_seconds", "int", false, "ended after so long", 180),
       parameter("pair_deadline_seconds", "int", false, "each pair of a repetition is ended after so long",
                 60)});
  m.check = has_what_it_measures;
  m.measure = lead;
  return m;
}

StepModule accept_group_serve_module() {
  StepModule m;
  m.name = "accept_group_serve";
  m.help =
      "Carries out this node's part of what another node leads with accept_group, for as long as that one "
      "needs it. The planner adds it; a playbook has no use for it.";
  m.parameters = Json::array(
      {parameter("peers", "list", true, "the node that leads: {name, address}; only that one is answered"),
       parameter("address", "string", true, "own address"),
       parameter("port", "int", false, "TCP port", kPort),
       parameter("load", "string", false, "allreduce, training, nccl or gpu-training", "allreduce"),
       parameter("libs", "string", false, "loads of GPUs: folder with NCCL and what it loads"),
       parameter("wait_seconds", "int", false, "ends when the leader was not there until then", kWaitSeconds),
       parameter("linger_seconds", "int", false, "ends so long after a load when nothing follows",
                 kLingerSeconds),
       parameter("deadline_seconds", "int", false, "ends after so long, whatever happens", kServeSeconds)});
  m.check = has_what_it_measures;
  m.measure = serve;
  return m;
}

}  // namespace muster::checks
