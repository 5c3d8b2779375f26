#include "controller/report/link_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <set>
#include <tuple>

#include "controller/locate/links.h"
#include "controller/report/collective.h"
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

enum class Side { sending, receiving, both };
const char* to_string(Side side) {
  return side == Side::sending ? "sending" : side == Side::receiving ? "receiving" : "both directions";
}

struct End {
  std::string group, like, node;  // like: the rail, if there are several
  Side side = Side::both;
  auto operator<=>(const End&) const = default;
};

// One check of one pair, and what it shows about its two ends.
struct Pair {
  End a, b;
  std::string owner;
  Check* check = nullptr;
  std::string links = {};  // link_group()
  bool corrupt = false;    // data arrived damaged
  bool good() const { return !is_finding(check->verdict); }
  const std::string& other(const End& end) const { return end.node == a.node ? b.node : a.node; }
};

Pair pair_of(const MeasuredStep& step, Check& check) {
  const std::string metric = check.name.substr(step.group.size() + 1);
  const bool send = metric.starts_with("send"), receive = metric.starts_with("receive");
  const Side here = send ? Side::sending : receive ? Side::receiving : Side::both;
  const Side there = send ? Side::receiving : receive ? Side::sending : Side::both;
  return {{step.group, step.like, step.node, here},
          {step.group, step.like, step.subject, there},
          step.node,
          &check,
          link_group(step),
          text_of(field(step.result, "outcome")) == "corrupt"};
}

std::vector<Pair> pairs_of(std::map<std::string, std::vector<Check>>& checks,
                           const std::vector<MeasuredStep>& steps) {
  std::vector<Pair> out;
  for (const auto& step : steps) {
    if (!is_link(step) || step.subject.empty() || is_inconclusive(step)) continue;
    for (auto& check : checks[step.node])
      if (check.subject == subject_of(step) && check.name.starts_with((step.group + "/").c_str()))
        out.push_back(pair_of(step, check));
  }
  return out;
}

// Inconclusive results count against no node; one without any measured link of a kind is not proven good.
void excuse_inconclusive(std::map<std::string, std::vector<Check>>& checks,
                         const std::vector<MeasuredStep>& steps) {
  std::set<std::pair<std::string, std::string>> proven;  // group, node
  for (const auto& step : steps)
    if (is_link(step) && text_of(field(step.result, "outcome")) == "measured")
      for (const auto& node : {step.node, step.subject}) proven.insert({step.group, node});
  for (const auto& step : steps) {
    if (!is_link(step) || !is_inconclusive(step) || is_unmeasurable(step)) continue;
    const bool unproven = !proven.count({step.group, step.node});
    for (auto& check : checks[step.node]) {
      if (check.subject != subject_of(step) || !check.name.starts_with((step.group + "/").c_str())) continue;
      if (unproven && check.name == step.group + "/data")
        check.verdict = Verdict::degraded;
      else
        check.mandatory = false;
    }
  }
}

// Ports' names for messages: the device if a link was measured by device, else from `nic_of`.
class Ports {
 public:
  Ports(const std::vector<MeasuredStep>& steps,
        const std::function<std::string(const std::string& node)>& nic_of)
      : nic_of_(nic_of) {
    for (const auto& step : steps) {
      if (!is_link(step) || step.like.empty()) continue;
      const Json& detail = field(step.result, "detail");
      note(step, step.node, text_of(field(detail, "device")));
      note(step, step.subject, text_of(field(detail, "peer_device")));
    }
  }
  std::string of(const End& end) const {
    if (end.like.empty()) return nic_of_ ? nic_of_(end.node) : "";
    const auto found = devices_.find({end.group, end.like, end.node});
    return found == devices_.end() ? end.like : fmt::format("{}, {}", found->second, end.like);
  }

 private:
  void note(const MeasuredStep& step, const std::string& node, const std::string& device) {
    if (!device.empty()) devices_[{step.group, step.like, node}] = device;
  }
  const std::function<std::string(const std::string& node)>& nic_of_;
  std::map<std::tuple<std::string, std::string, std::string>, std::string> devices_;
};

std::string name_of(const End& end, const Ports& ports) {
  const std::string nic = ports.of(end);
  return fmt::format("link of {}{}, {}", end.node, nic.empty() ? "" : " (" + nic + ")", to_string(end.side));
}

// Ends that were found missing by a partner, or by the node itself (then on all its rails), and nodes without
// any result of their own, for example because they died during the test. A missing end explains every other
// failure that involves it, including tests that failed before it was known to be missing.
class Missing {
 public:
  explicit Missing(const std::vector<MeasuredStep>& steps) {
    std::set<std::string> groups;
    for (const auto& step : steps)
      if (is_link(step)) groups.insert(step.group);
    for (const auto& step : steps) {
      const bool ended = step.status != "failed" && step.status != "incomplete";
      if (!ended && !is_link(step) && groups.count(step.group)) ends_.insert({step.group, step.node});
      if (is_link(step) && !end_at_fault(step).empty()) ends_.insert({link_group(step), end_at_fault(step)});
      if (text_of(field(step.result, "check")) == "rdma" &&
          text_of(field(step.result, "outcome")) == "unavailable")
        ends_.insert({step.group, step.node});
    }
  }
  bool has(const Pair& pair, const End& end) const {
    return ends_.count({pair.links, end.node}) || ends_.count({end.group, end.node});
  }

 private:
  std::set<std::pair<std::string, std::string>> ends_;
};

struct Evidence {
  std::map<std::string, locate::LinkFindings> findings;
  Missing missing;
  std::set<End> cleared = {};
};

// Returns the ends of a bad pair that may be at fault: those that are missing, else those that the search
// isolates, else those that were never fast.
std::vector<End> suspects(const Pair& pair, const Evidence& evidence) {
  std::vector<End> out;
  for (const End& end : {pair.a, pair.b})
    if (evidence.missing.has(pair, end)) out.push_back(end);
  if (!out.empty()) return out;
  const auto& [findings, missing, cleared] = evidence;
  if (const auto found = findings.find(pair.links); found != findings.end()) {
    const bool reverse = pair.a.side == Side::receiving;
    const auto names =
        found->second.faults_on(reverse ? pair.b.node : pair.a.node, reverse ? pair.a.node : pair.b.node);
    for (const End& end : {pair.a, pair.b})
      if (std::count(names.begin(), names.end(), end.node)) out.push_back(end);
  }
  if (!out.empty()) return out;
  for (const End& end : {pair.a, pair.b})
    if (!cleared.count(end)) out.push_back(end);
  if (out.empty()) out = {pair.a, pair.b};
  return out;
}

struct LinkFault {
  std::vector<const Pair*> pairs = {};
  std::set<std::string> names = {};  // of the faulty end, and of ends that cannot be distinguished from it
  bool alone = true;
};

// Collects the findings by partner; each text appears once.
class Findings {
 public:
  void add(const std::string& found, const std::string& partner) {
    const auto known =
        std::find_if(found_.begin(), found_.end(), [&](const auto& one) { return one.first == found; });
    if (known == found_.end()) return found_.emplace_back(found, partner), void();
    known->second += ", " + partner;
    grouped_ = true;
  }
  // `said`: a text that the caller has written already; not repeated if it is the only finding.
  std::string text(const std::string& said) const {
    if (found_.size() == 1 && found_.front().first == said) return found_.front().second;
    std::string out;
    for (const auto& [found, partners] : found_)
      out += fmt::format("{}{} with {}", out.empty() ? "" : grouped_ ? "; " : ", ", found, partners);
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> found_ = {};  // text, partners
  bool grouped_ = false;
};

Check located(const End& end, const LinkFault& fault, size_t measured_with) {
  const Check& first = *fault.pairs.front()->check;
  Check out;
  out.name = end.group + "/located";
  out.title = first.title;
  out.subject = end.like.empty() ? to_string(end.side) : fmt::format("{}, {}", end.like, to_string(end.side));
  out.like = end.like;
  out.unit = first.unit;
  out.mandatory = first.mandatory;
  out.verdict = Verdict::degraded;
  out.derivation = "slow with every partner, while the partners reach the expected value with other nodes";
  if (!fault.alone) out.derivation = "these measurements do not show which end is at fault";
  std::set<std::string> partners;
  Findings findings;
  Json evidence = Json::array();
  for (const Pair* pair : fault.pairs) {
    const Check& check = *pair->check;
    if (check.verdict == Verdict::fail || check.verdict == Verdict::skipped) out.verdict = Verdict::fail;
    if (partners.insert(pair->other(end)).second)
      findings.add(check.measured_text.empty() ? check.reason : check.measured_text, pair->other(end));
    evidence.push_back({{"check", check.name},
                        {"measured_by", pair->owner},
                        {"with", pair->other(end)},
                        {"measured", check.measured ? Json(*check.measured) : Json()},
                        {"expected", check.expected ? Json(*check.expected) : Json()}});
    if (check.measured && (!out.measured || *check.measured < *out.measured))
      out.measured = check.measured, out.expected = check.expected, out.because = check.because,
      out.source = check.source;
  }
  const bool slow = std::any_of(fault.pairs.begin(), fault.pairs.end(),
                                [](const Pair* pair) { return pair->check->measured.has_value(); });
  const std::string what = slow ? "slow" : "not measured";
  out.reason = fmt::format("{} with {} of {} partners: {}", what, partners.size(),
                           std::max(partners.size(), measured_with), findings.text(what));
  if (out.measured) out.measured_text = amount(*out.measured, out.unit);
  if (out.expected) out.expected_text = "at least " + amount(*out.expected, out.unit);
  out.evidence = std::move(evidence);
  out.faulty_parts.assign(fault.names.begin(), fault.names.end());
  return out;
}

void explain(Check& check, const std::string& by) {
  if (check.verdict == Verdict::fail) check.verdict = Verdict::degraded;
  check.mandatory = false;
  check.reason += (check.reason.empty() ? "" : "; ") + ("explained by: " + by);
}

std::string joined(const std::set<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : " or ") + name;
  return out;
}

// The measurement of the same link by the node at its other end; null if none, or if its data was wrong.
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

void find_link_faults(std::map<std::string, std::vector<Check>>& checks,
                      const std::vector<MeasuredStep>& given,
                      const std::function<std::string(const std::string& node)>& nic_of,
                      const std::map<std::string, const HardwareFacts*>& facts) {
  const std::vector<MeasuredStep> steps = expand(given);
  const Ports ports(steps, nic_of);
  confirm_links(checks, steps);
  excuse_inconclusive(checks, steps);
  const std::vector<Pair> pairs = pairs_of(checks, steps);
  Evidence evidence{find_links(steps, checks), Missing(steps)};
  std::map<End, std::set<std::string>> partners;
  for (const auto& pair : pairs)
    for (const End& end : {pair.a, pair.b}) {
      partners[end].insert(pair.other(end));
      if (pair.good() && pair.check->measured) evidence.cleared.insert(end);
    }
  std::map<End, LinkFault> faults;
  std::set<std::string> everybody;
  for (const auto& pair : pairs) {
    if (pair.good()) continue;
    const std::vector<End> ends = suspects(pair, evidence);
    const bool alone = ends.size() == 1;
    std::set<std::string> names;
    for (const auto& end : ends) names.insert(name_of(end, ports));
    everybody.insert(names.begin(), names.end());
    for (const auto& end : ends) {
      LinkFault& fault = faults[end];
      fault.pairs.push_back(&pair);
      fault.names.insert(names.begin(), names.end());
      fault.alone = fault.alone && alone;
    }
  }
  std::map<std::string, std::vector<Check>> found;
  FaultyLinks faulty{joined(everybody)};
  for (const auto& [end, fault] : faults) {
    const Check& check = found[end.node].emplace_back(located(end, fault, partners[end].size()));
    if (!fault.alone || check.verdict != Verdict::fail) continue;
    if (!check.measured) faulty.cut_off.insert(end.node);
    if (std::any_of(fault.pairs.begin(), fault.pairs.end(), [](const Pair* pair) { return pair->corrupt; }))
      faulty.corrupting.insert(end.node);
  }
  for (const auto& pair : pairs)
    if (!pair.good()) {
      std::set<std::string> names;
      for (const End& end : suspects(pair, evidence)) names.insert(name_of(end, ports));
      explain(*pair.check, joined(names));
    }
  for (auto& [node, list] : found)
    for (auto& check : list) checks[node].push_back(std::move(check));
  find_collective_faults(checks, steps, faulty, facts);
}

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
    const std::vector<MeasuredStep>& steps, const std::map<std::string, std::vector<Check>>& checks,
    std::string (*group_of)(const MeasuredStep& step)) {
  std::map<std::string, std::vector<locate::LinkMeasurement>> measured;
  std::map<std::string, locate::LinkRule> rules;
  const OtherEnds ends(steps);
  for (const auto& step : steps) {
    // No search if it is known which end was missing, or if the result shows nothing about the link.
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
    const std::string group = group_of(step);
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
