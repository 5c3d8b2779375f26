// JUnit XML: one suite per node, one case per check, and a case "accepted" with the node's verdict.
//
// JUnit cannot express "mandatory and not run": readers count <skipped/> as harmless, so such a check becomes
// an <error>, as does a node that was only looked at.
#include <fmt/format.h>

#include "controller/report/markup.h"

namespace muster {
namespace {

using markup::escape;

struct Counts {
  size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

std::string case_body(const Check& check, Counts& counts) {
  std::string judged_by = held_to(check);
  if (check.derivation != check.because) judged_by += (judged_by.empty() ? "" : "\n") + check.derivation;
  const std::string text =
      escape(fmt::format("{}{}measured: {}\nexpected: {}\n{}", check.reason, check.reason.empty() ? "" : "\n",
                         check.measured_text, check.expected_text, judged_by));
  switch (check.verdict) {
    case Verdict::fail:
      ++counts.failures;
      return fmt::format("<failure message=\"{}\">{}</failure>", escape(check.reason), text);
    case Verdict::skipped:
      if (check.mandatory) {
        ++counts.errors;
        return fmt::format("<error message=\"not run: {}\">{}</error>", escape(check.reason), text);
      }
      ++counts.skipped;
      return fmt::format("<skipped message=\"{}\"/>", escape(check.reason));
    case Verdict::not_applicable:
      ++counts.skipped;
      return fmt::format("<skipped message=\"not applicable: {}\"/>", escape(check.derivation));
    case Verdict::not_looked_at:
      ++counts.skipped;
      return fmt::format("<skipped message=\"not looked at: {}\"/>", escape(check.reason));
    case Verdict::not_judged:
      ++counts.skipped;
      return fmt::format("<skipped message=\"not judged: {}\">{}</skipped>", escape(check.reason), text);
    case Verdict::degraded:
    case Verdict::pass:
      return fmt::format("<system-out>{}{}</system-out>",
                         check.verdict == Verdict::degraded ? "degraded\n" : "", text);
  }
  return "";
}

std::string properties(const Report& report, const NodeReport& node) {
  std::string out = "  <properties>\n";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out += fmt::format("   <property name=\"{}\" value=\"{}\"/>\n", name, escape(value));
  };
  add("report_digest", report.digest);
  add("signed_by", report.signed_by);
  add("spec_digest", report.spec_digest);
  for (const auto& digest : report.plan_digests) add("plan_digest", digest);
  add("image_digest", node.image_digest);
  add("serial", node.serial);
  add("firmware", node.firmware);
  add("kernel", node.kernel);
  return out + "  </properties>\n";
}

std::string suite(const Report& report, const NodeReport& node, Counts& total) {
  Counts counts;
  std::string cases;
  const std::string prefix = report.simulated ? "SIMULATED HARDWARE " : "";
  for (const auto& check : node.checks) {
    ++counts.tests;
    const std::string name = prefix + check.name + (check.subject.empty() ? "" : " " + check.subject);
    cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\">{}</testcase>\n",
                         escape(report.cluster + "." + node.name), escape(name), case_body(check, counts));
  }
  ++counts.tests;
  cases += fmt::format("  <testcase classname=\"{}\" name=\"{}accepted\">",
                       escape(report.cluster + "." + node.name), prefix);
  if (node.verdict == NodeVerdict::degraded) {
    cases += fmt::format("<system-out>degraded: {}</system-out>", escape(node.reason));
  } else if (node.verdict == NodeVerdict::looked_at) {
    ++counts.errors;
    cases += fmt::format("<error message=\"looked at, not measured: {}\"/>", escape(node.reason));
  } else if (node.verdict != NodeVerdict::accepted) {
    ++counts.failures;
    cases += fmt::format("<failure message=\"{}: {}\"/>", to_string(node.verdict), escape(node.reason));
  }
  cases += "</testcase>\n";
  DurationMs time = 0;
  for (const auto& phase : node.phases) time += phase.duration;
  total.tests += counts.tests, total.failures += counts.failures, total.errors += counts.errors,
      total.skipped += counts.skipped;
  return fmt::format(
      " <testsuite name=\"{}{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"{:.3f}\">\n{}{} </testsuite>\n",
      prefix, escape(node.name), counts.tests, counts.failures, counts.errors, counts.skipped,
      static_cast<double>(time) / 1000, properties(report, node), cases);
}

}  // namespace

std::string render_junit(const Report& given) {
  Report report = given;
  settle(report);
  Counts total;
  std::string suites;
  for (const auto& node : report.nodes) suites += suite(report, node, total);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" "
      "errors=\"{}\" skipped=\"{}\">\n{}</testsuites>\n",
      escape(title(report)), total.tests, total.failures, total.errors, total.skipped, suites);
}

}  // namespace muster
