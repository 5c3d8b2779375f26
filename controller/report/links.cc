// Measurements between nodes: as a matrix of directions, and weighed against one another.
#include <algorithm>

#include "controller/report/measured.h"

namespace muster {

std::vector<LinkRecord> link_matrix(const std::vector<MeasuredStep>& given,
                                    const std::vector<std::string>& nodes,
                                    const std::map<std::string, std::string>& node_by_address) {
  const std::vector<MeasuredStep> steps = expand(given);
  std::map<std::pair<std::string, std::string>, LinkRecord> found;
  for (const auto& a : nodes)
    for (const auto& b : nodes)
      if (a != b) found[{a, b}] = {.from = a, .to = b};
  const auto checks = judge_measurements(steps);
  for (const auto& step : steps) {
    if (!is_link(step)) continue;
    const auto to = node_by_address.find(text_of(field(field(step.result, "detail"), "to")));
    if (to == node_by_address.end()) continue;
    Verdict verdict = Verdict::pass;
    for (const auto& check : checks.at(step.node))
      if (check.name.rfind(step.group + "/", 0) == 0 && check.subject == step.subject &&
          check.verdict != Verdict::pass)
        verdict = verdict == Verdict::fail ? verdict : check.verdict;
    const auto rtt = metric_value(step.result, "rtt_ms");
    const auto add = [&](const std::string& from, const std::string& target, const char* metric) {
      LinkRecord& record = found[{from, target}];
      const bool first = !record.mbps && record.verdict == Verdict::skipped;
      const auto rate = metric_value(step.result, metric);
      record.from = from;
      record.to = target;
      record.rtt_ms = rtt;
      // Measured from both ends: the lower rate and the worse verdict count.
      if (rate) record.mbps = record.mbps ? std::min(*record.mbps, *rate) : *rate;
      if (first || record.verdict == Verdict::pass || verdict == Verdict::fail) record.verdict = verdict;
    };
    add(step.node, to->second, "send_mbps");
    add(to->second, step.node, "receive_mbps");
  }
  std::vector<LinkRecord> out;
  for (auto& [pair, record] : found) out.push_back(std::move(record));
  return out;
}

std::map<std::string, locate::LinkFindings> find_links(const std::vector<MeasuredStep>& steps) {
  std::map<std::string, std::vector<locate::LinkMeasurement>> measured;
  std::map<std::string, locate::LinkRule> rules;
  for (const auto& step : steps) {
    if (!is_link(step) || step.subject.empty()) continue;
    const bool right = text_of(field(step.result, "outcome")) == "measured";
    const auto value = [&](const char* metric) { return right ? metric_value(step.result, metric) : std::nullopt; };
    measured[step.group].push_back({step.node, step.subject, value("send_mbps")});
    measured[step.group].push_back({step.subject, step.node, value("receive_mbps")});
    const Json& ratio = field(field(step.expect, "send_mbps"), "fleet_min_ratio");
    if (ratio.is_number()) rules[step.group].floor_ratio = ratio.get<double>();
  }
  std::map<std::string, locate::LinkFindings> out;
  for (const auto& [group, list] : measured) out[group] = locate::locate_links(list, rules[group]);
  return out;
}

}  // namespace muster
