#include "controller/report/report_causes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/causes/cause_text.h"

namespace muster {
namespace {

std::string failed_step(const NodeReport& node) {
  for (const StepRecord& step : node.steps)
    if (step.status == "failed") return step.name;
  return "";
}

NodePlace place_of(const NodeReport& node) {
  NodePlace out;
  out.rack = node.rack;
  out.network_switch = node.network_switch;
  out.model = model_value(node.vendor, node.product);
  out.firmware = node.firmware;
  out.image = image_value(node.image, node.image_digest);
  return out;
}

// What repeats the measurement, or the work, once the cause is gone.
std::string next_of_report(const Report& report, const Cause& cause) {
  if (report.running) return "muster accept --hosts " + nodes_of(cause);
  const bool measured = report.kind == "accept" || report.kind == kLook;
  const std::string verb = measured || cause.kind == CauseKind::node_degraded ? "muster accept" : "muster up";
  return with_names(verb + " --limit ", cause, verb);
}

}  // namespace

std::string located_part(const NodeReport& node) {
  for (const Check& check : node.checks)
    if (is_finding(check.verdict) && check.name.ends_with("/located") && !check.faulty_parts.empty())
      return fmt::format("{}", fmt::join(check.faulty_parts, " or "));
  return "";
}

std::vector<Cause> causes_in(const Report& report) {
  std::vector<Problem> problems;
  std::map<NodeName, NodePlace> places;
  for (const NodeReport& node : report.nodes) {
    const NodeName name(node.name);
    places[name] = place_of(node);
    if (node.verdict == NodeVerdict::accepted || node.verdict == NodeVerdict::looked_at) continue;
    const bool works = node.verdict == NodeVerdict::degraded;
    problems.push_back({.kind = works ? CauseKind::node_degraded : CauseKind::node_failed,
                        .node = name,
                        .reason = node.reason,
                        .step = works ? "" : failed_step(node),
                        .image = node.image,
                        .part = located_part(node)});
  }
  auto causes = find_causes(problems, places);
  std::erase_if(causes, [](const Cause& cause) { return cause.nodes.size() < 2; });
  for (Cause& cause : causes) cause.next = next_of_report(report, cause);
  return causes;
}

}  // namespace muster
