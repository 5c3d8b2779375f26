#include "controller/report/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_dump.h"
#include "base/record.h"
#include "controller/report/measured.h"

namespace muster {

MUSTER_RECORD(PastValue, value, like, opt(kind), opt(good), opt(degraded), opt(reason),
              opt(faulty_parts, "blame"), opt(run))

namespace {

constexpr const char* kCarried = "carried_from_run";
constexpr double kSameMemory = 0.015;  // the amount that firmware and kernel keep varies a little

Json entry(const NodeReport& node, const Check& check) {
  Json out = {
      {"check", check.name}, {"subject", check.subject}, {"value", *check.measured}, {"like", check.like}};
  if (!check.kind.empty()) out["kind"] = check.kind;
  // A value that nothing could be held to is the only reference that a later one has.
  const bool sound = check.verdict == Verdict::pass || check.verdict == Verdict::not_judged ||
                     (check.verdict == Verdict::not_applicable && check.like == kOwnHardware);
  if (sound && handed_over(node)) out["good"] = true;
  if (check.verdict != Verdict::degraded || !check.mandatory) return out;
  out["degraded"] = true;
  out["reason"] = check.reason;
  out["blame"] = check.faulty_parts;
  if (is_carried_over(check)) out["run"] = check.evidence[kCarried];
  return out;
}

struct EntryText {
  std::string check = {}, subject = {};
  PastValue value = {};
};
MUSTER_RECORD(EntryText, check, subject, flat(value))

Result<EntryText> read_entry(const Json& json, int64_t run) {
  TRY(auto out, read_record<EntryText>(json, "measured"));
  if (out.value.run == 0) out.value.run = run;  // not carried over
  return out;
}

// Returns "links/" for "links/located".
std::string group_of(const std::string& check) { return check.substr(0, check.find('/') + 1); }

// True if a check of the same group measured something: a link that is healthy again has no "links/located".
bool measures(const NodeReport& node, const std::string& check) {
  const std::string group = group_of(check);
  return std::any_of(node.checks.begin(), node.checks.end(), [&](const Check& c) {
    return c.measured && c.name.compare(0, group.size(), group) == 0;
  });
}

// True if a check of the same group was measured after `run`, without this finding. A value that a run
// carried over counts for the run that measured it.
bool measured_since(const std::map<History::Key, std::vector<PastValue>>& past, const std::string& check,
                    int64_t run) {
  const std::string group = group_of(check);
  return std::any_of(past.begin(), past.end(), [&](const auto& one) {
    return one.first.first.compare(0, group.size(), group) == 0 && one.second.front().run > run;
  });
}

}  // namespace

bool is_carried_over(const Check& check) {
  return check.evidence.is_object() && check.evidence.contains(kCarried);
}

const std::vector<PastValue>& History::of(const std::string& node, const std::string& check,
                                          const std::string& subject) const {
  static const std::vector<PastValue> kNone;
  const auto found = nodes.find(node);
  if (found == nodes.end()) return kNone;
  const auto values = found->second.find({check, subject});
  return values == found->second.end() ? kNone : values->second;
}

std::string measured_text(const Report& report) {
  Json out = Json::object();
  for (const auto& node : report.nodes) {
    if (node.verdict == NodeVerdict::returned) continue;  // measured in a system that was not kept
    Json list = Json::array();
    for (const auto& check : node.checks)
      if (check.measured && (!check.name.starts_with("hardware/") || check.like == kOwnHardware))
        list.push_back(entry(node, check));
    if (!list.empty()) out[node.name] = std::move(list);
  }
  return dump_json(out);
}

Status add_history(History& history, int64_t run, const std::string& text) {
  const auto json = parse_json(text);
  if (!json.ok() || !json->is_object())
    return fail(Code::corrupt, fmt::format("the measurements of run {} cannot be read", run));
  for (const auto& [node, list] : json->items())
    for (const Json& item : list) {
      TRY(auto entry, read_entry(item, run));
      history.nodes[node][{entry.check, entry.subject}].push_back(std::move(entry.value));
    }
  return Ok{};
}

void drop_until(History& history, const std::string& node, int64_t last) {
  const auto known = history.nodes.find(node);
  if (known == history.nodes.end()) return;
  for (auto& [key, values] : known->second)
    std::erase_if(values, [last](const PastValue& value) { return value.run <= last; });
  std::erase_if(known->second, [](const auto& one) { return one.second.empty(); });
}

void compare_hardware(NodeReport& node, const History& history) {
  for (auto& check : node.checks) {
    if (check.like != kOwnHardware || !check.measured) continue;
    const auto& past = history.of(node.name, check.name, check.subject);
    const auto good = std::find_if(past.begin(), past.end(), [](const PastValue& value) {
      return value.good && value.like == kOwnHardware;
    });
    if (good == past.end()) continue;
    const bool memory = check.unit == "GiB";
    check.expected = memory ? (1 - kSameMemory) * good->value : good->value;
    check.expected_text = amount(good->value, check.unit);
    check.because = fmt::format("the {} that the node had in run {}", check.expected_text, good->run);
    check.source = "its own history";
    check.derivation = fmt::format(
        "what the node had in run {}; there is no majority among the hosts in its group", good->run);
    check.mandatory = true;
    check.verdict = *check.measured < *check.expected ? Verdict::degraded : Verdict::pass;
    if (check.verdict == Verdict::degraded)
      check.reason = fmt::format("{} of the {} that the node had in run {}", amount(*check.measured, ""),
                                 amount(good->value, check.unit), good->run);
  }
}

void carry_over(NodeReport& node, const History& history) {
  const auto past = history.nodes.find(node.name);
  if (past == history.nodes.end()) return;
  const NodeReport now = node;
  for (const auto& [key, values] : past->second) {
    const PastValue& last = values.front();
    if (!last.degraded || measures(now, key.first)) continue;
    if (measured_since(past->second, key.first, last.run)) continue;
    Check check;
    check.name = key.first;
    check.title = key.first.substr(0, key.first.find('/'));
    check.subject = key.second;
    check.like = last.like;
    check.kind = last.kind;
    check.verdict = Verdict::degraded;
    check.measured = last.value;
    check.measured_text = fmt::format("{:.4g} in run {}", last.value, last.run);
    check.derivation = "a part found slow stays degraded until it is measured again";
    check.reason = fmt::format("not measured in this run; in run {}: {}", last.run, last.reason);
    check.faulty_parts = last.faulty_parts;
    check.evidence = {{kCarried, last.run}};
    node.checks.push_back(std::move(check));
  }
}

}  // namespace muster
