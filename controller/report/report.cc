#include "controller/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/report/history.h"

namespace muster {
namespace {

constexpr size_t kPartsNamed = 3;
constexpr size_t kFiguresNamed = 2;  // in the title

std::string named(const Check& check) {
  return check.subject.empty() ? check.name : check.name + " (" + check.subject + ")";
}

// Matches whole words only: "cpu 3" is not found in "cpu 31".
bool names(const std::string& text, const std::string& part) {
  const auto is_one_of = [](char c, std::string_view these) { return these.find(c) != these.npos; };
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    const size_t end = at + part.size();
    if ((at == 0 || is_one_of(text[at - 1], " (,;")) && (end == text.size() || is_one_of(text[end], " ),;:")))
      return true;
  }
  return false;
}

// Returns ": 1 is above 0, at fault: GPU 0000:3b:00 and 1 more"; the report's column lists all parts.
std::string why(const Check& check) {
  const std::string reason = check.reason.empty() ? "" : ": " + check.reason;
  const std::string said = named(check) + reason;
  std::string parts;
  size_t found = 0;
  for (const auto& part : check.faulty_parts)
    if (!names(said, part) && ++found <= kPartsNamed) parts += (found == 1 ? ", at fault: " : ", ") + part;
  return reason + parts + (found > kPartsNamed ? fmt::format(" and {} more", found - kPartsNamed) : "");
}

// ": no figure for NVIDIA X900, NVIDIA X901 and 2 more"; "" if there are none.
std::string lacking(const std::vector<std::string>& things) {
  if (things.empty()) return "";
  std::string first;
  for (size_t i = 0; i < std::min(things.size(), kFiguresNamed); ++i) first += (i ? ", " : "") + things[i];
  return ": no figure for " + first +
         (things.size() > kFiguresNamed ? fmt::format(" and {} more", things.size() - kFiguresNamed) : "");
}

// True for a check that prevents its node from being called accepted.
bool holds(const Check& check) {
  return check.mandatory && (check.verdict == Verdict::fail || check.verdict == Verdict::skipped);
}

constexpr const char* kNoLoad = "no load ran on it: what was read shows no fault";

std::string group_of(const Check& check) { return check.name.substr(0, check.name.find('/')); }

// The checks that put no load on anything: counters, links as they trained, and containers. The kernel is in
// the evidence of a group's first check.
std::set<std::string> looks(const NodeReport& node) {
  std::set<std::string> out = {"hardware"};
  for (const auto& check : node.checks) {
    const Json kernel = check.evidence.is_object() ? check.evidence.value("check", Json()) : Json();
    if (kernel == "counters" || kernel == "pcie" || kernel == "containers") out.insert(group_of(check));
  }
  return out;
}

// A check counts as failed if something that it needs is missing; its outcome shows that it did not run.
bool unavailable(const Check& check) {
  return check.evidence.is_object() && check.evidence.value("outcome", Json()) == "unavailable";
}

bool ran(const Check& check) {
  if (check.verdict != Verdict::pass && check.verdict != Verdict::degraded && check.verdict != Verdict::fail)
    return false;
  return !is_carried_over(check) && !unavailable(check);
}

// This node lacks what RDMA is measured with, or a device.
bool lacks_rdma(const NodeReport& node) {
  return std::any_of(node.checks.begin(), node.checks.end(), [](const Check& check) {
    return check.name.starts_with("rdma/") && holds(check) && unavailable(check);
  });
}

void settle_node(NodeReport& node, bool tested) {
  for (auto& check : node.checks)
    if (check.verdict == Verdict::fail && !check.mandatory) check.verdict = Verdict::degraded;
  if (!handed_over(node)) return;
  const std::string why = obstacle(node), slow = shortfall(node);
  if (!why.empty() || !slow.empty()) {
    node.verdict = why.empty() ? NodeVerdict::degraded : NodeVerdict::failed;
    node.reason = why.empty() ? slow : why;
  } else if (node.verdict == NodeVerdict::accepted && tested && !ran_load(node)) {
    node.verdict = NodeVerdict::looked_at;
    node.reason = kNoLoad;
  }
}

}  // namespace

std::string_view to_string(Verdict verdict) { return word_of(kVerdictWords, verdict); }
std::string_view to_string(NodeVerdict verdict) { return word_of(kNodeVerdictWords, verdict); }

bool is_finding(Verdict verdict) {
  return verdict == Verdict::degraded || verdict == Verdict::fail || verdict == Verdict::skipped;
}

std::string held_to(const Check& check) {
  if (!check.expected || check.because.empty()) return "";
  return fmt::format("held to {}, because of {} (source: {})", check.expected_text, check.because,
                     check.source);
}

std::string reason_of(const Check& check) { return named(check) + why(check); }

std::string obstacle(const NodeReport& node) {
  size_t proven = 0;
  std::string out;
  for (const auto& check : node.checks) {
    if (check.verdict == Verdict::pass || check.verdict == Verdict::degraded) ++proven;
    if (!holds(check)) continue;
    if (!out.empty()) out += "; ";
    out += named(check) + (check.verdict == Verdict::fail ? " failed" : " was not run") + why(check);
  }
  if (out.empty() && proven == 0) return "no acceptance check ran";
  return out;
}

bool only_unrun(const NodeReport& node) {
  size_t unrun = 0;
  for (const auto& check : node.checks) {
    if (!holds(check)) continue;
    if (check.verdict == Verdict::fail && !unavailable(check)) return false;
    ++unrun;
  }
  return unrun > 0;
}

std::string shortfall(const NodeReport& node) {
  std::string out;
  for (const auto& check : node.checks) {
    if (!check.mandatory || check.verdict != Verdict::degraded) continue;
    out += (out.empty() ? "" : "; ") + reason_of(check);
  }
  return out;
}

bool ran_load(const NodeReport& node) {
  const auto only_read = looks(node);
  return std::any_of(node.checks.begin(), node.checks.end(),
                     [&](const Check& check) { return ran(check) && !only_read.count(group_of(check)); });
}

void settle(Report& report) {
  bool loaded = false, looked = false;
  for (auto& node : report.nodes) {
    const bool read = looks(node).size() > 1;
    settle_node(node, read || !report.profile.empty());  // without a profile nothing is tested
    loaded = loaded || ran_load(node);
    looked = looked || read || node.verdict == NodeVerdict::looked_at;
  }
  if (report.kind == "accept" && looked && !loaded) report.kind = kLook;
}

size_t Totals::count(Verdict verdict) const {
  const auto it = checks.find(verdict);
  return it == checks.end() ? 0 : it->second;
}

Totals totals(const Report& report) {
  Totals out;
  std::set<std::string> not_looked_at, not_judged, no_figure_for;
  for (const auto& node : report.nodes) {
    ++out.nodes;
    const bool works = (node.verdict == NodeVerdict::accepted || node.verdict == NodeVerdict::degraded) &&
                       obstacle(node).empty();
    if (works)
      ++(node.verdict == NodeVerdict::accepted && shortfall(node).empty() ? out.accepted : out.degraded);
    else if (node.verdict == NodeVerdict::looked_at && obstacle(node).empty())
      ++out.looked_at;
    else if (node.verdict == NodeVerdict::returned)
      ++out.returned;
    else if (node.verdict == NodeVerdict::quarantined)
      ++out.quarantined;
    else
      ++out.failed;
    if (lacks_rdma(node)) ++out.without_rdma;
    for (const auto& check : node.checks) {
      ++out.checks[check.verdict];
      if (check.verdict == Verdict::not_looked_at) not_looked_at.insert(check.name);
      if (check.verdict != Verdict::not_judged || check.uncompared) continue;
      not_judged.insert(check.name);
      no_figure_for.insert(check.no_figure_for.empty() ? check.name : check.no_figure_for);
    }
  }
  out.not_looked_at = not_looked_at.size();
  out.not_judged = not_judged.size();
  out.no_figure_for.assign(no_figure_for.begin(), no_figure_for.end());
  return out;
}

std::string title(const Report& report) {
  const Totals t = totals(report);
  const auto checks = [](size_t count, const char* what) {
    return count > 0 ? fmt::format(", {} check{} {}", count, count == 1 ? "" : "s", what) : "";
  };
  const bool look = report.kind == kLook;
  std::string out = fmt::format("{}{}: {} of {} node{} {}", report.simulated ? "SIMULATED HARDWARE: " : "",
                                report.cluster, look ? t.looked_at : t.accepted, t.nodes,
                                t.nodes == 1 ? "" : "s", look ? "looked at, not measured" : "accepted");
  if (t.degraded > 0) out += fmt::format(", {} degraded", t.degraded);
  if (t.looked_at > 0 && !look) out += fmt::format(", {} looked at, not measured", t.looked_at);
  if (t.returned > 0) out += fmt::format(", {} returned", t.returned);
  if (t.without_rdma > 0)
    out += fmt::format(", RDMA not measured on {} node{}", t.without_rdma, t.without_rdma == 1 ? "" : "s");
  return out + checks(t.not_looked_at, "not looked at") + checks(t.not_judged, "not judged") +
         lacking(t.no_figure_for);
}

}  // namespace muster
