#include "agent/steps/services/slurm_query.h"

#include <fmt/format.h>

#include <cstdlib>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr DurationMs kAnswer = 30 * kSecond;

std::string cut_front(std::string& text) {
  const size_t bar = std::min(text.find('|'), text.size());
  const std::string out = text.substr(0, bar);
  text.erase(0, bar + 1);
  return out;
}

std::string cut_back(std::string& text) {
  const size_t bar = text.rfind('|');
  if (bar == std::string::npos) return "";
  const std::string out = text.substr(bar + 1);
  text.resize(bar);
  return out == "Unknown" ? "" : out;
}

// "node02|drained|bad | worse|ann|2026-11-29T09:48:25"
SlurmNode read_node(std::string line) {
  SlurmNode out;
  out.name = cut_front(line);
  out.word = cut_front(line);
  out.state = slurm::read_state(out.word);
  out.since = cut_back(line);
  out.user = cut_back(line);
  out.reason = line == "none" ? "" : line;
  return out;
}

}  // namespace

Result<std::map<std::string, SlurmNode>> slurm_nodes(StepContext& context) {
  TRY(const std::string out, run_tool(context, {"sinfo", "-h", "-N", "-o", "%N|%T|%E|%u|%H"}, kAnswer));
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

bool is_left(const SlurmNode& node) { return node.state.draining && slurm::is_decision(node.drain()); }

std::string in_words(const SlurmNode& node) {
  std::string out = node.name + " is " + node.word;
  if (!node.state.unknown.empty()) out += " (not in muster's table of states)";
  if (node.state.maintained) out += " (see `scontrol show reservation`)";
  if (node.reason.empty() || node.state.takes_jobs()) return out;
  if (!node.state.draining) return out + " (" + node.reason + ")";
  if (!node.user.empty()) out += " by " + node.user;
  if (!node.since.empty()) out += " since " + node.since;
  return out + ": " + node.reason;
}

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
