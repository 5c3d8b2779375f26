// Checks that an agent could not look at: no pass, nothing against the node, and counted.
#include <algorithm>

#include "controller/report/history.h"
#include "controller/report/verdict.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

// Of a plain user's agent: a step that needs root, and counters without the kernel's log.
MeasuredStep drives(const std::string& node) {
  MeasuredStep out = step(node, "drives", "drives", "", {{"read_mbps", {{"min", 50}}}}, nullptr);
  out.status = "not_looked_at";
  out.message = "needs root";
  return out;
}
MeasuredStep counters(const std::string& node, Json not_looked_at) {
  return step(node, "counters", "counters", "",
              {{"link_down", {{"max", 0}}}, {"gpu_xids", {{"max", 0}}}, {"drive_errors", {{"max", 0}}}},
              measured("counters", {{"link_down", {0, ""}}}, {{"not_looked_at", std::move(not_looked_at)}}));
}
MeasuredStep load(const std::string& node) {
  return step(node, "dgemm", "dgemm", "", {{"gflops", {{"min", 1}}}},
              measured("dgemm", {{"gflops", {5, ""}}}));
}
const Json kNoLog = {{"gpu_xids", "needs root: other users may not read /dev/kmsg"},
                     {"drive_errors", "needs root: other users may not read /dev/kmsg"}};

Verdict verdict_of(const std::vector<Check>& checks, const std::string& name) {
  const auto found =
      std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.name == name; });
  REQUIRE(found != checks.end());
  return found->verdict;
}

Report report_of(const std::vector<MeasuredStep>& steps) {
  Report out;
  out.cluster = "gaggle";
  out.kind = "accept";
  for (auto& [node, checks] : judge_measurements(steps)) {
    NodeReport one;
    one.name = node;
    one.verdict = NodeVerdict::accepted;
    one.checks = checks;
    out.nodes.push_back(std::move(one));
  }
  settle(out);
  return out;
}

}  // namespace

TEST_CASE("a step that needs what the agent has not is not looked at, and holds nothing", "[not-looked-at]") {
  const auto checks = judge_measurements({drives("n1"), counters("n1", kNoLog)}).at("n1");
  CHECK(verdict_of(checks, "drives/data") == Verdict::not_looked_at);
  CHECK(checks.front().reason == "needs root");
  CHECK(verdict_of(checks, "counters/link_down") == Verdict::pass);
  CHECK(verdict_of(checks, "counters/gpu_xids") == Verdict::not_looked_at);
  NodeReport node;
  node.checks = checks;
  CHECK(obstacle(node).empty());
  CHECK(shortfall(node).empty());
  CHECK_FALSE(only_unrun(node));
}

TEST_CASE("a drive that may not be opened is not looked at, the others are measured", "[not-looked-at]") {
  MeasuredStep step = drives("n1");
  step.status = "measured";
  const auto part = [](const char* drive, const Json& result) {
    return Json{{"subject", drive}, {"like", "x"}, {"result", result}};
  };
  Json closed = {{"check", "drives"},
                 {"outcome", "unavailable"},
                 {"error", "no permission to open vda"},
                 {"blame", Json::array()},
                 {"metrics", Json::object()},
                 {"detail", {{"not_looked_at", "no permission to open vda"}}}};
  step.result = measured("drives", {}, {});
  step.result["parts"] = {part("S1", closed),
                          part("S2", measured("drives", {{"read_mbps", {900, "MB/s"}}}, {}))};
  const auto checks = judge_measurements({step}).at("n1");
  CHECK(verdict_of(checks, "drives/data") == Verdict::not_looked_at);
  CHECK(checks.front().subject == "S1");
  CHECK(std::count_if(checks.begin(), checks.end(), [](const Check& c) { return c.subject == "S1"; }) == 1);
  CHECK(std::any_of(checks.begin(), checks.end(), [](const Check& c) {
    return c.subject == "S2" && c.name == "drives/data" && c.verdict == Verdict::pass;
  }));
  // Without that reason, or of a GPU, it was not run.
  step.result["parts"] = {part("S1", closed)};
  step.result["parts"][0]["result"]["detail"] = Json::object();
  CHECK(verdict_of(judge_measurements({step}).at("n1"), "drives/data") != Verdict::not_looked_at);
  step.result["parts"] = {part("S1", closed)};
  step.on_gpus = true;
  CHECK(verdict_of(judge_measurements({step}).at("n1"), "drives/data") != Verdict::not_looked_at);
}

TEST_CASE(
    "what is absent without that reason is not run, and a node of which nothing was looked at is not "
    "accepted",
    "[not-looked-at]") {
  const auto blind = judge_measurements({counters("n1", {{"gpu_xids", "needs root"}})}).at("n1");
  CHECK(verdict_of(blind, "counters/drive_errors") == Verdict::skipped);
  NodeReport node;
  node.checks = blind;
  CHECK(obstacle(node).find("counters/drive_errors was not run") != std::string::npos);
  // A kernel that did not measure cannot excuse its metrics either.
  MeasuredStep dead = counters("n1", kNoLog);
  dead.result["outcome"] = "unavailable";
  CHECK(verdict_of(judge_measurements({dead}).at("n1"), "counters/gpu_xids") == Verdict::skipped);
  const Report nothing = report_of({drives("n1")});
  CHECK(nothing.nodes[0].verdict == NodeVerdict::failed);
}

TEST_CASE("the title counts the checks, not the nodes; JUnit skips them, and each form shows them",
          "[not-looked-at]") {
  const Report report = report_of(
      {load("n1"), drives("n1"), counters("n1", kNoLog), load("n2"), drives("n2"), counters("n2", kNoLog)});
  CHECK(title(report) == "gaggle: 2 of 2 nodes accepted, 3 checks not looked at");
  CHECK(totals(report).count(Verdict::not_looked_at) == 6);
  const std::string junit = render_junit(report);
  CHECK(junit.find("<skipped message=\"not looked at: needs root\"/>") != std::string::npos);
  CHECK(junit.find("errors=\"0\"") != std::string::npos);
  CHECK(render_html(report).find("badge b-not_looked_at") != std::string::npos);
  CHECK(render_text(report).find("not looked at: needs root (drives/data)") != std::string::npos);
  const auto flat = parse_json(render_flat(report).substr(0, render_flat(report).find('\n')));
  CHECK(flat->at("failures").empty());
  CHECK(flat->at("not_looked_at") == "drives.data, counters.drive_errors, counters.gpu_xids");
  const auto read = report_from_json(parse_json(to_json_text(report)).value());
  REQUIRE(read.ok());
  CHECK(to_json_text(*read) == to_json_text(report));
  // One node without them is a whole one.
  CHECK(title(report_of({step("n1", "x", "x", "", nullptr, measured("x", {}))})) ==
        "gaggle: 1 of 1 node accepted");
}

TEST_CASE("a test of GPUs that needs root is not held to have run; one without that is", "[not-looked-at]") {
  MeasuredStep gpus = drives("n1");
  gpus.on_gpus = true;
  CHECK(verdict_of(judge_measurements({gpus}).at("n1"), "drives/data") == Verdict::not_looked_at);
  gpus.status = "incomplete";
  CHECK(verdict_of(judge_measurements({gpus}).at("n1"), "drives/data") == Verdict::skipped);
}

TEST_CASE("a node is only unrun where no check found a fault", "[not-looked-at]") {
  const auto check = [](Verdict verdict, const char* outcome, bool mandatory = true) {
    Check out;
    out.name = "gpu bf16/data";
    out.verdict = verdict;
    out.mandatory = mandatory;
    if (*outcome) out.evidence = {{"outcome", outcome}};
    return out;
  };
  const auto unrun = [](std::vector<Check> checks) {
    NodeReport node;
    node.checks = std::move(checks);
    return only_unrun(node);
  };
  CHECK(unrun({check(Verdict::fail, "unavailable"), check(Verdict::pass, "measured")}));
  CHECK(unrun({check(Verdict::skipped, "")}));
  CHECK_FALSE(unrun({check(Verdict::fail, "unavailable"), check(Verdict::fail, "corrupt")}));
  CHECK_FALSE(unrun({check(Verdict::fail, "")}));
  CHECK_FALSE(unrun({check(Verdict::skipped, "", false)}));
  CHECK_FALSE(unrun({}));
}
