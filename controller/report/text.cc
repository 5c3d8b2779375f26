// The report for a terminal: plain lines, no colours, control characters of untrusted strings replaced.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest.h"
#include "base/words.h"
#include "controller/report/markup.h"
#include "controller/report/report_causes.h"
#include "controller/report/study.h"

namespace muster {
namespace {

using markup::plain;

constexpr Words<Verdict, 7> kVerdictTexts = {{{Verdict::pass, "PASS"},
                                              {Verdict::degraded, "DEGRADED"},
                                              {Verdict::fail, "FAIL"},
                                              {Verdict::not_applicable, "n/a"},
                                              {Verdict::skipped, "NOT RUN"},
                                              {Verdict::not_looked_at, "not looked at"},
                                              {Verdict::not_judged, "not judged"}}};

std::string_view word(Verdict verdict) { return word_of(kVerdictTexts, verdict); }

std::string check_line(const Check& check, const std::string& mark) {
  std::string out = fmt::format("    {:<9} {}", word(check.verdict), plain(check.name));
  if (!check.subject.empty()) out += " " + plain(check.subject);
  if (!check.measured_text.empty()) out += ": " + plain(check.measured_text);
  if (!check.expected_text.empty()) out += fmt::format(" (expected {})", plain(check.expected_text));
  if (!check.reason.empty()) out += " - " + plain(check.reason);
  if (const std::string why = held_to(check); is_finding(check.verdict) && !why.empty())
    out += "\n              " + plain(why);
  for (const auto& part : check.faulty_parts) out += fmt::format("\n              at fault: {}", plain(part));
  const size_t end = std::min(out.find('\n'), out.size());
  out.insert(end, mark);
  return out + "\n";
}

// Groups the checks with this verdict by reason: "needs root (drives/data), needs root: /dev/kmsg is refused
// (counters/gpu_xids, ...)". Equal parts have the same check.
std::string grouped(const NodeReport& node, Verdict verdict) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& check : node.checks) {
    if (check.verdict != verdict) continue;
    auto& list = names[check.reason];
    if (std::find(list.begin(), list.end(), check.name) == list.end()) list.push_back(check.name);
  }
  std::string out;
  for (const auto& [reason, list] : names)
    out += fmt::format("{}{} ({})", out.empty() ? "" : "; ", reason, fmt::join(list, ", "));
  return out;
}

std::string cause_lines(const Report& report, const std::string& mark) {
  std::string out;
  for (const Cause& cause : causes_in(report))
    out += fmt::format("  {}{}{}\n    {}\n    next: {}\n\n", plain(cause.what),
                       cause.detail.empty() ? "" : ": " + plain(cause.detail), mark, plain(nodes_of(cause)),
                       plain(cause.next));
  return out;
}

}  // namespace

std::string render_text(const Report& given, bool verbose) {
  Report report = given;
  settle(report);
  const std::string mark = report.simulated ? "  [SIMULATED HARDWARE]" : "";
  std::string out = plain(title(report)) + "\n";
  out += fmt::format("  spec revision {}", report.spec_revision);
  for (const auto& digest : report.plan_digests) out += fmt::format(", plan {}", plain(short_digest(digest)));
  if (!report.digest.empty()) out += fmt::format(", report {}", plain(short_digest(report.digest)));
  for (const auto& [name, digest] : report.images)
    out += fmt::format(", image {} {}", plain(name), plain(short_digest(digest)));
  if (report.ended > report.started)
    out += fmt::format(", took {}", markup::duration(report.ended - report.started));
  out += "\n";
  if (!report.approved_by.empty()) out += fmt::format("  approved by {}\n", plain(report.approved_by));
  out += "\n";
  out += cause_lines(report, mark);
  size_t width = 4;
  for (const auto& node : report.nodes) width = std::max(width, node.name.size());
  for (const auto& node : report.nodes) {
    DurationMs time = 0;
    size_t passed = 0, wanted = 0;
    for (const auto& phase : node.phases) time += phase.duration;
    for (const auto& check : node.checks)
      wanted += check.verdict == Verdict::pass || is_finding(check.verdict),
          passed += check.verdict == Verdict::pass;
    out += fmt::format("  {:<{}}  {:<11}  {:>2} of {:<2} checks  {:>12}{}\n", plain(node.name), width,
                       to_string(node.verdict), passed, wanted, time > 0 ? markup::duration(time) : "", mark);
    if (!node.reason.empty()) out += fmt::format("    {}\n", plain(node.reason));
    if (!node.share.empty()) out += fmt::format("    measured on {}\n", plain(node.share));
    for (const auto& check : node.checks)
      if (verbose || is_finding(check.verdict)) out += check_line(check, mark);
    for (const Verdict verdict : {Verdict::not_looked_at, Verdict::not_judged})
      if (const std::string those = verbose ? "" : grouped(node, verdict); !those.empty())
        out += fmt::format("    {}: {}{}\n", word(verdict), plain(those), mark);
  }
  const Totals t = totals(report);
  out += fmt::format(
      "\n  {} of {} nodes accepted, {} degraded, {}{}{} quarantined, {} failed; checks: {} passed, {} "
      "degraded, "
      "{} failed, {} not run, {} not applicable{}{}{}\n",
      t.accepted, t.nodes, t.degraded,
      t.looked_at > 0 ? fmt::format("{} looked at, not measured, ", t.looked_at) : "",
      t.returned > 0 ? fmt::format("{} returned, ", t.returned) : "", t.quarantined, t.failed,
      t.count(Verdict::pass), t.count(Verdict::degraded), t.count(Verdict::fail), t.count(Verdict::skipped),
      t.count(Verdict::not_applicable),
      t.not_looked_at > 0 ? fmt::format(", {} not looked at", t.count(Verdict::not_looked_at)) : "",
      t.count(Verdict::not_judged) > 0 ? fmt::format(", {} not judged", t.count(Verdict::not_judged)) : "",
      mark);
  for (const auto& study : scaling_studies(report))
    for (const auto& curve : study.curves)
      if (curve.points.size() > 1 || verbose)
        out += fmt::format("  scaling, {}{}\n", plain(describe(curve)), mark);
  if (!report.drift.empty())
    out += "\n  drift (no verdict): what differs among nodes that should be alike\n" +
           render_drift(report.drift) + "\n";
  for (const auto& note : report.notes) out += "  note: " + plain(note) + "\n";
  return out;
}

}  // namespace muster
