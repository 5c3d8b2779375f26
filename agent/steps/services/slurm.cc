// Slurm, asked and told through its own programs: the nodes' states, one node in or out of the schedule, and
// an MPI job as the proof that launching works. Installation and configuration are ordinary steps of
// playbooks/scheduler.yaml.
//
// States are read in Slurm's long form ("idle", "drained", "down*"); a '*' says that the node does not
// answer.
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <thread>

#include "agent/steps/stack_modules.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

struct NodeState {
  std::string state, reason;
};

constexpr int kTimedOut = 124;  // exit status of timeout(1)
// Ranks that have an RDMA port and ranks that have none do not agree on a transport by themselves: the former
// fail and the latter wait. What is proven here is the launch, over TCP, which all of them have.
constexpr const char* kNoRdma = "^openib,uct,ofi,usnic";

// Node -> state, as slurmctld sees them.
Result<std::map<std::string, NodeState>> states(StepContext& context) {
  TRY(const std::string out, run_tool(context, {"sinfo", "-h", "-N", "-o", "%N|%T|%E"}));
  std::map<std::string, NodeState> all;
  for (const auto& line : lines_of(out))
    if (const auto words = split(line, '|'); words.size() >= 2)
      all[words[0]] = {words[1], words.size() > 2 ? words[2] : ""};
  return all;
}

bool takes_jobs(const std::string& state) {
  for (const char* good : {"idle", "mixed", "allocated", "completing"})
    if (state == good) return true;
  return false;
}
bool is_drained(const std::string& state) { return state == "drained" || state == "drained*"; }
bool is_draining(const std::string& state) {
  return is_drained(state) || state == "draining" || state == "draining*";
}

// Asks until `lacking` says "" or the deadline passes. slurmctld may be starting: an error counts as not yet.
Result<CheckResult> wait_until(StepContext& context, const Json& params,
                               const std::function<Result<std::string>()>& lacking) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(int_of(params, "deadline_seconds", 60));
  for (;;) {
    const auto now = lacking();
    if (now.ok() && now->empty()) return holds();
    const std::string text = now.ok() ? *now : now.error().message;
    if (is_cancelled(context)) return fail(Code::cancelled, text);
    if (std::chrono::steady_clock::now() >= until) return differs(text);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

Result<CheckResult> check_nodes(StepContext& context, const Json& params) {
  return wait_until(context, params, [&]() -> Result<std::string> {
    TRY(const auto have, states(context));
    std::string lacking;
    for (const auto& node : params.at("nodes")) {
      const std::string name = text_of(node, "name");
      const auto it = have.find(name);
      const std::string state = it == have.end() ? "unknown to slurmctld" : it->second.state;
      if (!takes_jobs(state)) lacking += (lacking.empty() ? "" : "; ") + name + " is " + state;
    }
    return lacking;
  });
}

Result<NodeState> state_of(StepContext& context, const Json& params) {
  TRY(const auto have, states(context));
  const std::string node = text_of(params, "node");
  const auto it = have.find(node);
  if (it == have.end()) return fail(Code::not_found, "slurmctld knows no node " + node);
  return it->second;
}

Result<bool> wants_drain(const Json& params) {
  const std::string want = text_of(params, "state");
  if (want != "drain" && want != "resume")
    return fail(Code::invalid, "slurm_node: 'state' is drain or resume, not '" + want + "'");
  return want == "drain";
}

// A node that somebody else took out, for a reason of their own, is not given back unless that is asked for.
bool left_alone(const NodeState& now, const Json& params) {
  const std::string only = text_of(params, "only_reason");
  return !only.empty() && now.reason.rfind(only, 0) != 0;
}

Result<CheckResult> check_node(StepContext& context, const Json& params) {
  TRY(const bool drain, wants_drain(params));
  TRY(const NodeState now, state_of(context, params));
  const bool right = drain ? is_drained(now.state) : !is_draining(now.state) || left_alone(now, params);
  return right ? holds()
               : differs(fmt::format("{} is {} ({})", text_of(params, "node"), now.state, now.reason));
}

Status apply_node(StepContext& context, const Json& params) {
  TRY(const bool drain, wants_drain(params));
  TRY(const NodeState now, state_of(context, params));
  if (drain ? !is_draining(now.state) : is_draining(now.state) && !left_alone(now, params)) {
    std::vector<std::string> argv = {"scontrol", "update", "nodename=" + text_of(params, "node"),
                                     drain ? "state=drain" : "state=resume"};
    if (drain) argv.push_back("reason=" + text_of(params, "reason", "muster drain"));
    TRY(auto out, run_tool(context, argv));
    (void)out;
  }
  if (drain) say(context, "waiting for the jobs of " + text_of(params, "node"));
  TRY(const CheckResult end, wait_until(context, params, [&]() -> Result<std::string> {
        TRY(const CheckResult left, check_node(context, params));
        return left.diff;
      }));
  return end.holds == Holds::yes ? Status(Ok{}) : Status(fail(Code::timeout, end.diff));
}

// The last words of both: srun's own stand on the error output, those of the ranks on either.
std::string said(const Output& out) {
  constexpr size_t kEnd = 300;
  const auto end = [](const std::string& text) {
    return text.size() <= kEnd ? text : "..." + text.substr(text.size() - kEnd);
  };
  return out.out.empty() ? end(out.err) : end(out.err) + " " + end(out.out);
}

// One rank per node. The program verifies every element itself; that as many ranks as nodes took part is for
// us to see.
Result<CheckResult> check_mpi(StepContext& context, const Json& params) {
  std::vector<std::string> hosts;
  for (const auto& host : params.at("hosts")) hosts.push_back(text_of(host, "name"));
  if (hosts.empty()) return fail(Code::invalid, "slurm_mpi: 'hosts' is empty");
  const std::string count = std::to_string(hosts.size());
  Command command;
  const int64_t deadline_s = int_of(params, "deadline_seconds", 180);
  constexpr int64_t kSpare = 20;
  // One rank that cannot begin leaves the others waiting for it. Asked to end, srun says what it knows and
  // gives the nodes back; killed, it leaves them allocated to nobody, and the next try finds no node free.
  command.argv = {"runuser",
                  "-u",
                  text_of(params, "user", "mpi"),
                  "--",
                  "env",
                  "OMPI_MCA_pml=ob1",
                  std::string("OMPI_MCA_btl=") + kNoRdma,
                  "timeout",
                  "--foreground",
                  "--kill-after=10",
                  std::to_string(deadline_s),
                  "srun",
                  "--mpi=" + text_of(params, "mpi", "pmix"),
                  "--nodes=" + count,
                  "--ntasks=" + count,
                  "--ntasks-per-node=1",
                  "--nodelist=" + join(hosts, ","),
                  "--chdir=/tmp",
                  "--immediate=60",
                  "--kill-on-bad-exit=1",
                  "--time=" + std::to_string(deadline_s / 60 + 1),
                  text_of(params, "program", "/usr/lib/muster/muster-mpi-check"),
                  "--seconds",
                  text_of(params, "seconds", "1"),
                  "--max-bytes",
                  std::to_string(int_of(params, "max_bytes", 65536))};
  command.cwd = "/";
  command.deadline = (deadline_s + kSpare) * kSecond;
  TRY(const Output out, context.process.run(command));
  const size_t brace = out.out.find("{\"");
  const auto json = brace == std::string::npos
                        ? Result<Json>(fail(Code::failed, ""))
                        : parse_json(out.out.substr(brace, out.out.find('\n', brace) - brace));
  if (!json.ok() || !json->is_object())
    return differs(fmt::format("srun ended with {}{}: {}", out.exit_code,
                               out.exit_code == kTimedOut ? " (out of time)" : "", said(out)));
  if (json->value("outcome", "") != "measured")
    return differs("the all-reduce is wrong: " + json->value("error", ""));
  const Json ranks = json->value(Json::json_pointer("/metrics/ranks/value"), Json());
  if (!ranks.is_number() || ranks.get<double>() != static_cast<double>(hosts.size()))
    return differs(fmt::format("{} of {} ranks took part", dump_json(ranks), hosts.size()));
  return holds();
}

}  // namespace

StepModule slurm_nodes_module() {
  StepModule m;
  m.name = "slurm_nodes";
  m.help = "slurmctld has every one of these nodes, and each answers and takes jobs. Pure test.";
  m.parameters = Json::array({parameter("nodes", "list", true, "[{name}]"),
                              parameter("deadline_seconds", "int", false, "to register", 60)});
  m.check = check_nodes;
  return m;
}

StepModule slurm_node_module() {
  StepModule m;
  m.name = "slurm_node";
  m.help = "Takes a node out of Slurm's schedule (its jobs may end first) or gives it back.";
  m.parameters = Json::array(
      {parameter("node", "string", true, "its name"), parameter("state", "string", true, "drain | resume"),
       parameter("reason", "string", false, "shown by sinfo -R", "muster drain"),
       parameter("only_reason", "string", false, "resume only nodes whose reason begins with this"),
       parameter("deadline_seconds", "int", false, "its jobs get so long to end", 60)});
  m.check = check_node;
  m.apply = apply_node;
  return m;
}

StepModule slurm_mpi_module() {
  StepModule m;
  m.name = "slurm_mpi";
  m.help =
      "An MPI all-reduce started by srun, one rank on every given node, every element of the result "
      "verified. Pure test.";
  m.parameters = Json::array(
      {parameter("hosts", "list", true, "[{name}]"),
       parameter("user", "string", false, "account that submits", "mpi"),
       parameter("mpi", "string", false, "srun's --mpi", "pmix"),
       parameter("program", "string", false, "the all-reduce", "/usr/lib/muster/muster-mpi-check"),
       parameter("seconds", "string", false, "time budget", "1"),
       parameter("max_bytes", "int", false, "largest message", 65536),
       parameter("deadline_seconds", "int", false, "killed after so long", 180)});
  m.check = check_mpi;
  return m;
}

}  // namespace muster::steps
