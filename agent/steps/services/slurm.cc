// Slurm modules, which use Slurm's own programs: check the states of nodes, drain or resume one node, and run
// an MPI job to prove that launching works. Installation and configuration are ordinary steps of
// playbooks/scheduler.yaml.
//
// States are read in Slurm's long form ("idle", "drained$", "mixed-"), or as scontrol combines them
// ("IDLE+DRAIN"). The word is the node's state; the mark after it adds a detail, and if several apply, Slurm
// shows only one.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"
#include "base/lower.h"

namespace muster::steps {
namespace {

struct NamedNode {
  std::string name;
};
MUSTER_RECORD(NamedNode, lenient, opt(name))

struct WantedNodes {
  std::vector<NamedNode> nodes;
  int64_t deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedNodes, required(nodes, "[{name}]"),
                  optional(deadline_seconds, "how long to wait for the nodes to register"))

struct WantedNode {
  std::string node, state, reason = "muster drain", only_reason;
  int64_t deadline_seconds = 60;
  bool drain = false;
};
MUSTER_PARAMETERS(WantedNode, required(node, "node name"), required(state, "drain | resume"),
                  optional(reason, "drain reason, shown by `sinfo -R`"),
                  optional(only_reason, "resume the node only if its drain reason begins with this text"),
                  optional(deadline_seconds, "how long to wait for the jobs on the node to end"))

struct WantedJob {
  std::vector<NamedNode> hosts;
  std::string user = "mpi", mpi = "pmix", program = "/usr/lib/muster/muster-mpi-check", seconds = "1";
  int64_t max_bytes = 65536, deadline_seconds = 180;
};
MUSTER_PARAMETERS(WantedJob, required(hosts, "[{name}]"), optional(user, "account that submits the job"),
                  optional(mpi, "value for srun's --mpi option"), optional(program, "the all-reduce program"),
                  optional(seconds, "duration of the all-reduce in seconds"),
                  optional(max_bytes, "largest message in bytes"),
                  optional(deadline_seconds, "timeout, after which the job is killed"))

struct NodeState {
  std::string state, reason;
};

constexpr int kTimedOut = 124;  // exit status of timeout(1)
// If some ranks have an RDMA port and others do not, MPI selects no common transport: the former fail and the
// latter wait. This job only proves that launching works, so it uses TCP, which all nodes have.
constexpr const char* kNoRdma = "^openib,uct,ofi,usnic";

Result<std::map<std::string, NodeState>> states(StepContext& context) {
  TRY(const std::string out, run_tool(context, {"sinfo", "-h", "-N", "-o", "%N|%T|%E"}));
  std::map<std::string, NodeState> all;
  for (const auto& line : split_lines(out))
    if (const auto words = split(line, '|'); words.size() >= 2)
      all[words[0]] = {words[1], words.size() > 2 ? words[2] : ""};
  return all;
}

struct StateWords {
  std::string base, marks;
  std::set<std::string> flags = {};
};

StateWords state_words(const std::string& state) {
  StateWords out;
  std::string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    if (out.base.empty())
      out.base = word;
    else
      out.flags.insert(word);
    word.clear();
  };
  for (const char c : lower(state)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_')
      word += c;
    else
      end_word(), out.marks += c;
  }
  end_word();
  return out;
}

// Marks that Slurm adds to the state of a node that does not respond, is powered off, is powering up, is
// about to be powered off, is powering off, or is restarting.
constexpr const char* kNotThere = "*~#!%^";

bool is_drained(const std::string& state) {
  const StateWords words = state_words(state);
  const bool busy = words.base == "mixed" || words.base == "allocated" || words.base == "completing" ||
                    words.flags.count("completing") != 0;
  return words.base == "drained" || (words.flags.count("drain") != 0 && !busy);
}
bool is_draining(const std::string& state) {
  const StateWords words = state_words(state);
  return words.base == "drained" || words.base == "draining" || words.flags.count("drain") != 0;
}
// Also true for a node that is kept free for a larger job (planned, mixed-) or for a reservation, but not for
// one in a maintenance reservation ("maint"), which runs only the reservation's jobs.
bool takes_jobs(const std::string& state) {
  static const std::set<std::string> kGood = {"idle",    "mixed",    "allocated", "completing",
                                              "planned", "reserved", "blocked",   "perfctrs"};
  static const std::set<std::string> kBad = {
      "drain",        "down",          "fail",        "maintenance", "maint",         "not_responding",
      "powered_down", "powering_down", "powering_up", "power_down",  "reboot_issued", "invalid_reg"};
  const StateWords words = state_words(state);
  const bool bad = std::any_of(words.flags.begin(), words.flags.end(),
                               [](const std::string& flag) { return kBad.count(flag) != 0; });
  return kGood.count(words.base) != 0 && !bad && words.marks.find_first_of(kNotThere) == std::string::npos;
}

// A hint for the operator if the state does not explain itself, else "".
std::string hint_of(const std::string& state) {
  const StateWords words = state_words(state);
  const bool maintained = words.base == "maint" || words.flags.count("maintenance") != 0;
  return maintained ? " (see `scontrol show reservation`)" : "";
}

Result<CheckResult> check_nodes(StepContext& context, const WantedNodes& want) {
  return wait_until(context, want.deadline_seconds, [&]() -> Result<std::string> {
    TRY(const auto have, states(context));
    std::string lacking;
    for (const auto& [name] : want.nodes) {
      const auto it = have.find(name);
      const std::string state = it == have.end() ? "unknown to slurmctld" : it->second.state;
      if (!takes_jobs(state))
        lacking += (lacking.empty() ? "" : "; ") + name + " is " + state + hint_of(state);
    }
    return lacking;
  });
}

Result<NodeState> state_of(StepContext& context, const std::string& node) {
  TRY(const auto have, states(context));
  const auto it = have.find(node);
  if (it == have.end()) return fail(Code::not_found, "slurmctld does not list node " + node);
  return it->second;
}

Status complete_node(const StepContext&, WantedNode& want) {
  want.drain = want.state == "drain";
  if (want.drain || want.state == "resume") return Ok{};
  return fail(Code::invalid, "slurm_node: 'state' must be drain or resume, not '" + want.state + "'");
}

// True if the node was drained for a reason other than `only_reason` and must therefore not be resumed.
bool left_alone(const NodeState& now, const WantedNode& want) {
  return !now.reason.starts_with(want.only_reason);
}

// True if a retry may succeed: a node that is resumed after a restart (`only_reason`) may have to wait until
// slurmctld has started, too. A node that slurmctld does not list is not worth a retry.
bool may_answer_later(const Error& error, const WantedNode& want) {
  return !want.only_reason.empty() && error.code != Code::not_found;
}

Result<NodeState> first_look(StepContext& context, const WantedNode& want) {
  Result<NodeState> now = state_of(context, want.node);
  if (now.ok() || !may_answer_later(now.error(), want)) return now;
  const int64_t seconds = std::min<int64_t>(60, want.deadline_seconds);
  TRY_(wait_until(context, seconds, [&]() -> Result<std::string> {
    now = state_of(context, want.node);
    return now.ok() || !may_answer_later(now.error(), want) ? "" : now.error().message;
  }));
  return now;
}

// Slurm counts a node whose only jobs are suspended as drained, but their processes are there, and a restart
// kills them. Returns their ids, separated by commas.
Result<std::string> suspended_on(StepContext& context, const std::string& node) {
  TRY(const std::string out, run_tool(context, {"squeue", "-h", "-w", node, "-t", "suspended", "-o", "%i"}));
  std::string ids;
  for (const auto& line : split_lines(out)) ids += (ids.empty() ? "" : ",") + line;
  return ids;
}

Result<CheckResult> check_node(StepContext& context, const WantedNode& want) {
  const Result<NodeState> looked = state_of(context, want.node);
  if (!looked.ok() && may_answer_later(looked.error(), want)) return differs(looked.error().message);
  TRY(const NodeState now, looked);
  const bool right = want.drain ? is_drained(now.state) : !is_draining(now.state) || left_alone(now, want);
  if (want.drain && right) {
    TRY(const std::string ids, suspended_on(context, want.node));
    if (!ids.empty()) return differs(fmt::format("{} is drained, with suspended jobs: {}", want.node, ids));
  }
  return right ? holds() : differs(fmt::format("{} is {} ({})", want.node, now.state, now.reason));
}

Status apply_node(StepContext& context, const WantedNode& want) {
  TRY(const NodeState now, first_look(context, want));
  if (want.drain ? !is_draining(now.state) : is_draining(now.state) && !left_alone(now, want)) {
    std::vector<std::string> argv = {"scontrol", "update", "nodename=" + want.node, "state=" + want.state};
    if (want.drain) argv.push_back("reason=" + want.reason);
    TRY_(run_tool(context, argv));
  }
  if (want.drain) say(context, "waiting for the jobs on " + want.node + " to end");
  TRY(const CheckResult end, wait_until(context, want.deadline_seconds, [&]() -> Result<std::string> {
        TRY(const CheckResult left, check_node(context, want));
        return left.diff;
      }));
  return end.holds == Holds::yes ? Status(Ok{}) : Status(fail(Code::timeout, end.diff));
}

// Returns the end of both outputs: srun writes its messages to standard error, the ranks write to either.
std::string said(const Output& out) {
  constexpr size_t kEnd = 300;
  const auto end = [](const std::string& text) {
    return text.size() <= kEnd ? text : "..." + text.substr(text.size() - kEnd);
  };
  return out.out.empty() ? end(out.err) : end(out.err) + " " + end(out.out);
}

// One rank per node. The program verifies every element itself; this step also checks that all took part.
Result<CheckResult> check_mpi(StepContext& context, const WantedJob& job) {
  std::vector<std::string> hosts;
  for (const auto& [name] : job.hosts) hosts.push_back(name);
  if (hosts.empty()) return fail(Code::invalid, "slurm_mpi: 'hosts' is empty");
  const std::string count = std::to_string(hosts.size());
  Command command;
  constexpr int64_t kSpare = 20;
  // If a rank cannot start, the others wait for it. On SIGTERM, srun prints its state and releases the nodes;
  // if it is killed, they stay allocated, and the next attempt finds no free node.
  command.argv = {"runuser",
                  "-u",
                  job.user,
                  "--",
                  "env",
                  "OMPI_MCA_pml=ob1",
                  std::string("OMPI_MCA_btl=") + kNoRdma,
                  "timeout",
                  "--foreground",
                  "--kill-after=10",
                  std::to_string(job.deadline_seconds),
                  "srun",
                  "--mpi=" + job.mpi,
                  "--nodes=" + count,
                  "--ntasks=" + count,
                  "--ntasks-per-node=1",
                  "--nodelist=" + join(hosts, ","),
                  "--chdir=/tmp",
                  "--immediate=60",
                  "--kill-on-bad-exit=1",
                  "--time=" + std::to_string(job.deadline_seconds / 60 + 1),
                  job.program,
                  "--seconds",
                  job.seconds,
                  "--max-bytes",
                  std::to_string(job.max_bytes)};
  command.cwd = "/";
  command.deadline = (job.deadline_seconds + kSpare) * kSecond;
  TRY(const Output out, context.process.run(command));
  const size_t brace = out.out.find("{\"");
  const auto json = brace == std::string::npos
                        ? Result<Json>(fail(Code::failed, ""))
                        : parse_json(out.out.substr(brace, out.out.find('\n', brace) - brace));
  // Nothing is wrong with the nodes, as `slurm_nodes` has tested; but nothing was tested here either.
  if (!json.ok() && out.err.find("Requested nodes are busy") != std::string::npos)
    return CheckResult{Holds::not_applicable, "other jobs have the nodes"};
  if (!json.ok() || !json->is_object())
    return differs(fmt::format("srun exited with {}{}: {}", out.exit_code,
                               out.exit_code == kTimedOut ? " (timed out)" : "", said(out)));
  if (json->value("outcome", "") != "measured")
    return differs("the result of the all-reduce is wrong: " + json->value("error", ""));
  const Json ranks = json->value(Json::json_pointer("/metrics/ranks/value"), Json());
  if (!ranks.is_number() || ranks.get<double>() != static_cast<double>(hosts.size()))
    return differs(fmt::format("{} of {} ranks took part", dump_json(ranks), hosts.size()));
  return holds();
}

}  // namespace

StepModule slurm_nodes_module() {
  return step_module<WantedNodes>({
      .name = "slurm_nodes",
      .help = "Tests that slurmctld lists all these nodes, and that each responds and accepts jobs. Changes "
              "nothing.",
      .check = check_nodes,
  });
}

StepModule slurm_node_module() {
  return step_module<WantedNode>({
      .name = "slurm_node",
      .help = "Drains a node in Slurm and waits until its jobs have ended, or resumes it.",
      .check = check_node,
      .apply = apply_node,
      .complete = complete_node,
  });
}

StepModule slurm_mpi_module() {
  return step_module<WantedJob>({
      .name = "slurm_mpi",
      .help = "Runs an MPI all-reduce through srun, one rank on every listed node, and verifies every "
              "element of the result. If other jobs have the nodes, nothing is tested. Changes nothing.",
      .check = check_mpi,
  });
}

}  // namespace muster::steps
