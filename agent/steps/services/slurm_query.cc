#include "agent/steps/services/slurm_query.h"

#include <fmt/format.h>

#include <cstdlib>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr DurationMs kAnswer = 30 * kSecond;

SlurmNode read_node(const std::string& line) {
  SlurmNode out{slurm::read_node_line(line), {}};
  out.state = slurm::read_state(out.word);
  return out;
}

}  // namespace

Result<std::map<std::string, SlurmNode>> slurm_nodes(StepContext& context) {
  TRY(const std::string out, run_tool(context, {"sinfo", "-h", "-N", "-o", slurm::kNodeLine}, kAnswer));
  std::map<std::string, SlurmNode> all;
  for (const auto& line : split_lines(out))
    if (SlurmNode node = read_node(line); !node.name.empty()) all[node.name] = node;
  return all;
}

Result<SlurmNode> slurm_node(StepContext& context, const std::string& name) {
  TRY(const auto all, slurm_nodes(context));
  const auto found = all.find(name);
  if (found == all.end()) return fail(Code::not_found, "slurmctld does not list node " + name);
  return found->second;
}

bool is_left(const SlurmNode& node) { return slurm::is_decision(node.state, node.reason); }

std::string in_words(const SlurmNode& node) { return node.name + " is " + slurm::in_words(node, node.state); }

Result<std::string> jobs_on(StepContext& context, const std::string& node) {
  constexpr const char* kWithProcesses =
      "running,suspended,completing,configuring,resizing,signaling,stage_out,stopped";
  TRY(const std::string out,
      run_tool(context, {"squeue", "-h", "-w", node, "-t", kWithProcesses, "-o", "%i"}, kAnswer));
  return join(split_lines(out), ",");
}

Result<int64_t> registered_start(StepContext& context, const std::string& node) {
  Command command;
  command.argv = {"scontrol", "--oneliner", "show", "node", node};
  command.env["SLURM_TIME_FORMAT"] = "%s";
  command.deadline = kAnswer;
  TRY(const std::string out, run_ok(context.process, command));
  constexpr std::string_view kKey = " SlurmdStartTime=";
  const size_t at = out.find(kKey);
  return at == std::string::npos ? 0 : std::strtoll(out.c_str() + at + kKey.size(), nullptr, 10);
}

}  // namespace muster::steps
