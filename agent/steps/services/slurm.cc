// Slurm modules that test all nodes: their states, and an MPI job to prove that launching works. Nodes that a
// person or the health check has taken out, by a drain or a reservation for maintenance, fail neither.
#include <fmt/format.h>

#include <map>

#include "agent/core/parameters.h"
#include "agent/steps/services/slurm_query.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"

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

constexpr int kTimedOut = 124;  // exit status of timeout(1)
// If some ranks have an RDMA port and others do not, MPI selects no common transport: the former fail and the
// latter wait. This job only proves that launching works, so it uses TCP, which all nodes have.
constexpr const char* kNoRdma = "^openib,uct,ofi,usnic";

struct Sorted {
  std::vector<std::string> wanted;  // all but those that are left out
  Diff left, lacking;               // in words
  bool unlisted = false;
};

Sorted sorted(const std::vector<NamedNode>& nodes, const std::map<std::string, SlurmNode>& have) {
  Sorted out;
  for (const auto& [name] : nodes) {
    const auto found = have.find(name);
    if (found != have.end() && (is_left(found->second) || found->second.state.maintained)) {
      out.left.add(in_words(found->second));
      continue;
    }
    out.wanted.push_back(name);
    if (found == have.end())
      out.unlisted = true, out.lacking.add("slurmctld does not list node " + name);
    else if (!found->second.state.takes_jobs())
      out.lacking.add(in_words(found->second));
  }
  return out;
}

std::string note_of(const Sorted& nodes) {
  return nodes.left.empty() ? "" : "left out: " + nodes.left.result().diff;
}

Result<CheckResult> check_nodes(StepContext& context, const WantedNodes& want) {
  Sorted last;
  TRY(CheckResult end, wait_until(context, want.deadline_seconds, [&]() -> Result<std::string> {
        TRY(const auto have, slurm_nodes(context));
        last = sorted(want.nodes, have);
        return last.unlisted ? "" : last.lacking.result().diff;
      }));
  if (last.unlisted) end = last.lacking.result();
  end.note = note_of(last);
  return end;
}

// Returns the end of both outputs: srun writes its messages to standard error, the ranks write to either.
std::string said(const Output& out) {
  constexpr size_t kEnd = 300;
  const auto end = [](const std::string& text) {
    return text.size() <= kEnd ? text : "..." + text.substr(text.size() - kEnd);
  };
  return out.out.empty() ? end(out.err) : end(out.err) + " " + end(out.out);
}

// What srun's failure means if it started nothing. "Required node not available (down, drained or reserved)"
// comes before "Requested nodes are busy" if one was taken out since the states were tested. A partition that
// is drained or inactive is as much a person's decision as a drained node.
Result<CheckResult> why_not_started(StepContext& context, const WantedJob& job, const Output& out) {
  const bool closed = has(out.err, "Required partition not available");
  if (!closed && !has(out.err, "Requested nodes are busy") && !has(out.err, "Required node not available"))
    return differs(fmt::format("srun exited with {}{}: {}", out.exit_code,
                               out.exit_code == kTimedOut ? " (timed out)" : "", said(out)));
  TRY(const auto have, slurm_nodes(context));
  const Sorted now = sorted(job.hosts, have);
  if (!now.lacking.empty()) return now.lacking.result();
  return CheckResult{Holds::not_applicable, closed
                                                ? "the nodes' partition is closed (`scontrol show partition`)"
                                                : "other jobs or a reservation have the nodes"};
}

// One rank per node. The program verifies every element itself; this step also checks that all took part.
Result<CheckResult> check_mpi(StepContext& context, const WantedJob& job) {
  if (job.hosts.empty()) return fail(Code::invalid, "slurm_mpi: 'hosts' is empty");
  TRY(const auto have, slurm_nodes(context));
  const Sorted nodes = sorted(job.hosts, have);
  const std::vector<std::string>& hosts = nodes.wanted;
  if (hosts.empty()) return CheckResult{Holds::not_applicable, note_of(nodes)};
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
  if (!json.ok() || !json->is_object()) return why_not_started(context, job, out);
  if (json->value("outcome", "") != "measured")
    return differs("the result of the all-reduce is wrong: " + json->value("error", ""));
  const Json ranks = json->value(Json::json_pointer("/metrics/ranks/value"), Json());
  if (!ranks.is_number() || ranks.get<double>() != static_cast<double>(hosts.size()))
    return differs(fmt::format("{} of {} ranks took part", dump_json(ranks), hosts.size()));
  return CheckResult{Holds::yes, "", note_of(nodes)};
}

}  // namespace

StepModule slurm_nodes_module() {
  return step_module<WantedNodes>({
      .name = "slurm_nodes",
      .help = "Tests that slurmctld lists all these nodes, and that each responds and accepts jobs, except "
              "those that a person or the health check has taken out, which a remark names. Changes nothing.",
      .check = check_nodes,
  });
}

StepModule slurm_mpi_module() {
  return step_module<WantedJob>({
      .name = "slurm_mpi",
      .help =
          "Runs an MPI all-reduce through srun, one rank on every listed node that is not taken out, and "
          "verifies every element of the result. If other jobs have the nodes, or their partition is closed, "
          "nothing is tested. Changes nothing.",
      .check = check_mpi,
  });
}

}  // namespace muster::steps
