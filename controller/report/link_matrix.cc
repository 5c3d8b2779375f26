// Turns measurements between nodes into a matrix of directions, and compares them with one another.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

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
  auto checks = judge_measurements(steps);
  confirm_links(checks, steps);
  for (const auto& step : steps) {
    // RDMA uses a separate network: its rates do not describe the network of the matrix.
    if (text_of(field(step.result, "check")) != "link") continue;
    const auto to = node_by_address.find(text_of(field(field(step.result, "detail"), "to")));
    if (to == node_by_address.end()) continue;
    Verdict verdict = Verdict::pass;
    for (const auto& check : checks.at(step.node))
      if (check.name.starts_with(step.group + "/") && check.subject == step.subject &&
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
      // Measured from both ends: the higher rate counts, since it was reached, and the worse verdict.
      if (rate) record.mbps = record.mbps ? std::max(*record.mbps, *rate) : *rate;
      if (first || record.verdict == Verdict::pass || verdict == Verdict::fail) record.verdict = verdict;
    };
    add(step.node, to->second, "send_mbps");
    add(to->second, step.node, "receive_mbps");
  }
  std::vector<LinkRecord> out;
  for (auto& [pair, record] : found) out.push_back(std::move(record));
  return out;
}

namespace {

// Finds the measurement of the same link by the node at its other end; null if there is none, or its data was
// wrong.
class OtherEnds {
 public:
  explicit OtherEnds(const std::vector<MeasuredStep>& steps) {
    for (const auto& step : steps)
      if (is_link(step) && text_of(field(step.result, "outcome")) == "measured")
        by_ends_[{link_group(step), step.node, step.subject}] = &step;
  }
  const MeasuredStep* of(const MeasuredStep& step) const {
    const auto found = by_ends_.find({link_group(step), step.subject, step.node});
    return found == by_ends_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, const MeasuredStep*> by_ends_;
};

// True if this direction of a link had to reach a limit, and reached it.
bool is_as_expected(const std::map<std::string, std::vector<Check>>& checks, const MeasuredStep& step,
                    bool sending) {
  const auto of_node = checks.find(step.node);
  if (of_node == checks.end()) return false;
  const std::string prefix = step.group + "/", subject = subject_of(step);
  return std::any_of(of_node->second.begin(), of_node->second.end(), [&](const Check& check) {
    if (check.verdict != Verdict::pass || !check.measured || !check.expected || check.subject != subject ||
        !check.name.starts_with(prefix))
      return false;
    const std::string metric = check.name.substr(prefix.size());
    return sending ? is_sending(metric) : is_receiving(metric);
  });
}

}  // namespace

void confirm_links(std::map<std::string, std::vector<Check>>& checks,
                   const std::vector<MeasuredStep>& given) {
  const std::vector<MeasuredStep> steps = expand(given);
  const OtherEnds ends(steps);
  for (const auto& step : steps) {
    const MeasuredStep* other = is_link(step) ? ends.of(step) : nullptr;
    if (!other) continue;
    for (auto& check : checks[step.node]) {
      if (check.verdict != Verdict::degraded || check.subject != subject_of(step) || !check.measured ||
          !check.expected)
        continue;
      if (!check.name.starts_with(step.group + "/")) continue;
      const std::string metric = check.name.substr(step.group.size() + 1);
      if (!is_sending(metric) && !is_receiving(metric)) continue;
      const auto again = rate_of(*other, is_receiving(metric));
      if (!again || *again < *check.expected) continue;
      check.verdict = Verdict::pass;
      check.reason.clear();
      check.derivation +=
          fmt::format("; a second measurement reached {} (from {}): a transient, not a slow link",
                      amount(*again, check.unit), other->node);
    }
  }
}

std::map<std::string, locate::LinkFindings> find_links(
    const std::vector<MeasuredStep>& steps, const std::map<std::string, std::vector<Check>>& checks) {
  std::map<std::string, std::vector<locate::LinkMeasurement>> measured;
  std::map<std::string, locate::LinkRule> rules;
  const OtherEnds ends(steps);
  for (const auto& step : steps) {
    // There is nothing to search for if it is known which end was missing, or if the result shows nothing
    // about the link.
    if (!is_link(step) || step.subject.empty() || !end_at_fault(step).empty() || is_inconclusive(step))
      continue;
    const bool right = text_of(field(step.result, "outcome")) == "measured";
    const MeasuredStep* other = ends.of(step);
    // Of two measurements of one direction, the faster one counts: what was reached once can be reached. But
    // no measurement at all is a failure.
    const auto value = [&](bool sending) {
      auto rate = right ? rate_of(step, sending) : std::nullopt;
      if (rate && other)
        if (const auto again = rate_of(*other, !sending)) rate = std::max(*rate, *again);
      return rate;
    };
    const std::string group = link_group(step);
    measured[group].push_back({step.node, step.subject, value(true), is_as_expected(checks, step, true)});
    measured[group].push_back({step.subject, step.node, value(false), is_as_expected(checks, step, false)});
    for (const char* metric : {"send_mbps", "send_gbps"})
      if (const Json& ratio = field(field(step.expect, metric), "fleet_min_ratio"); ratio.is_number())
        rules[group].floor_ratio = ratio.get<double>();
  }
  std::map<std::string, locate::LinkFindings> out;
  for (const auto& [group, list] : measured) out[group] = locate::locate_links(list, rules[group]);
  return out;
}

}  // namespace muster
