// Loads of several nodes without MPI: `muster-accept group` on the leader, `muster-accept group-serve` on the
// others (kernels/together/group_leader.h, group_server.h).
#include <fmt/format.h>

#include <algorithm>

#include "agent/checks/checks.h"
#include "agent/checks/run_programs.h"
#include "agent/steps/step_modules.h"
#include "base/json_at.h"
#include "base/ports.h"

namespace muster::checks {
namespace {

constexpr DurationMs kGroupEndSeconds = 15;  // time to print its result
constexpr DurationMs kByeSeconds = 30;

struct WantedGroup {
  SharedLoad shared;
  bool bye = false;
  std::string address;
  int64_t port = kGroupPort;
  std::string libs;
  int64_t connect_seconds = 60, deadline_seconds = 180, pair_deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedGroup, flat(shared),
                  optional(bye, "make the other nodes stop serving instead of running a load"),
                  optional(address, "address of this node; required if `hosts` does not list this node"),
                  optional(port, "TCP port on all nodes"),
                  optional(libs, "folder with NCCL and its dependencies, for GPU loads"),
                  optional(connect_seconds,
                           "how long to wait for the other nodes' servers; at most a third of the deadline"),
                  optional(deadline_seconds, "time limit of the load in seconds"),
                  optional(pair_deadline_seconds, "time limit of the load on one pair of nodes, in seconds"))

struct WantedServer {
  std::vector<Peer> peers;
  std::string address;
  int64_t port = kGroupPort;
  std::string load = "allreduce", libs;
  int64_t wait_seconds = 180, linger_seconds = 90, deadline_seconds = 900;
};
MUSTER_PARAMETERS(WantedServer,
                  required(peers,
                           "the leader: {name, address}; only connections from the leader are accepted"),
                  required(address, "address of this node"), optional(port, "TCP port"),
                  optional(load, "allreduce, training, nccl or gpu-training"),
                  optional(libs, "folder with NCCL and its dependencies, for GPU loads"),
                  optional(wait_seconds, "how long to wait for the leader"),
                  optional(linger_seconds, "how long to wait for the next load"),
                  optional(deadline_seconds, "hard time limit"))

std::vector<std::string> leader_words(const StepContext& context, const WantedGroup& want,
                                      const std::vector<Peer>& hosts) {
  std::string members;
  for (const auto& host : hosts) members += (members.empty() ? "" : ",") + host.name + "=" + host.address;
  std::vector<std::string> words = {
      program(context, "muster-accept"), "group", "--members", members, "--self", context.node, "--port",
      std::to_string(want.port)};
  if (!want.address.empty()) words.insert(words.end(), {"--bind", want.address});
  return words;
}

void add_gpu_words(const StepContext& context, const std::string& libs, std::vector<std::string>& words) {
  words.insert(words.end(), {"--program", program(context, "muster-accept-gpu")});
  if (!libs.empty()) words.insert(words.end(), {"--libs", libs});
}

// First the connections are made, then the load runs; both end before the program would be killed.
Command leader_command(const StepContext& context, const WantedGroup& want, const std::vector<Peer>& hosts) {
  const SharedLoad& shared = want.shared;
  const int64_t deadline = want.deadline_seconds;
  const int64_t connect = std::min(want.connect_seconds, std::max<int64_t>(deadline / 3, 1));
  Command command;
  command.argv = leader_words(context, want, hosts);
  command.argv.insert(
      command.argv.end(),
      {"--load", shared.load, "--seconds", shared.seconds, "--max-bytes", std::to_string(shared.max_bytes),
       "--connect-seconds", std::to_string(connect), "--deadline",
       std::to_string(std::max(deadline - connect - kGroupEndSeconds, deadline / 2))});
  if (runs_on_gpus(shared.load)) add_gpu_words(context, want.libs, command.argv);
  const auto rest = load_words(context, shared);
  command.argv.insert(command.argv.end(), rest.begin(), rest.end());
  command.deadline = (deadline + kGroupEndSeconds) * kSecond;
  return command;
}

Result<Json> dismiss(StepContext& context, const WantedGroup& want) {
  Command command;
  command.argv = leader_words(context, want, want.shared.hosts);
  command.argv.push_back("--bye");
  command.deadline = kByeSeconds * kSecond;
  TRY(const Output output, context.process.run(command));
  return measurement(output, "muster-accept group --bye");
}

Result<Json> lead(StepContext& context, const WantedGroup& want) {
  if (want.shared.hosts.empty()) return fail(Code::invalid, "accept_group: 'hosts' is empty");
  if (want.bye) return dismiss(context, want);
  auto result = on_all_or_pairs(context, want.shared, [&](const std::vector<Peer>& members) {
    return load_result(context.process.run(leader_command(context, want, members)), Starter::group,
                       want.shared.load, members);
  });
  // A load that could not run is not repeated in pairs, so the other nodes can stop serving.
  const bool over = !result.ok() || text_at(*result, "outcome") == "unavailable";
  if (over || steps::is_cancelled(context)) (void)dismiss(context, want);
  return result;
}

// The leader reports that a member could not serve; the result of this step gives the reason.
Result<Json> serve(StepContext& context, const WantedServer& want) {
  if (want.peers.empty())
    return Json{{"check", "group-serve"},
                {"version", 1},
                {"outcome", "measured"},
                {"error", ""},
                {"blame", Json::array()},
                {"metrics", Json::object()},
                {"detail", {{"loads", 0}, {"ended", "no leader"}}}};
  std::string addresses;
  for (const auto& leader : want.peers) addresses += (addresses.empty() ? "" : ",") + leader.address;
  steps::say(context, fmt::format("taking part in the load led by {}", want.peers.front().name));
  Command command;
  command.argv = {program(context, "muster-accept"),
                  "group-serve",
                  "--bind",
                  want.address,
                  "--port",
                  std::to_string(want.port),
                  "--peers",
                  addresses,
                  "--seconds",
                  std::to_string(want.deadline_seconds),
                  "--wait-seconds",
                  std::to_string(want.wait_seconds),
                  "--linger-seconds",
                  std::to_string(want.linger_seconds)};
  if (runs_on_gpus(want.load)) add_gpu_words(context, want.libs, command.argv);
  command.deadline = (want.deadline_seconds + kGroupEndSeconds) * kSecond;
  TRY(const Output output, context.process.run(command));
  return measurement(output, "muster-accept group-serve");
}

}  // namespace

StepModule accept_group_module() {
  return without_standins(step_module<WantedGroup>({
      .name = "accept_group",
      .help =
          "Leads one load across the listed nodes, over TCP and without MPI, with one rank per node, and "
          "checks every result exactly. The load is an all-reduce, a training-shaped load on 1, 2, 4 ... and "
          "all nodes, NCCL's collectives across all GPUs of the nodes, or the training-shaped load on the "
          "GPUs. A profile's step has `among: group` and `on: leader`; the planner adds a step for the other "
          "nodes, accept_group_serve, in the same stage. The result names a member that does not respond, "
          "dies or hangs. If the load fails or is too slow, the controller repeats it in pairs of nodes.",
      .measure = lead,
  }));
}

StepModule accept_group_serve_module() {
  return without_standins(step_module<WantedServer>({
      .name = "accept_group_serve",
      .help =
          "Takes part in a load that another node leads with accept_group, for as long as the leader needs "
          "this node. Added by the planner; not for use in playbooks.",
      .measure = serve,
  }));
}

}  // namespace muster::checks
