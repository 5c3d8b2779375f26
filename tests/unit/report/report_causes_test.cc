// What several nodes of a report have in common is one line of it.
#include "controller/report/report_causes.h"

#include <fmt/format.h>

#include "tests/catch.h"

using namespace muster;

namespace {

NodeReport node(int number, NodeVerdict verdict, const std::string& reason = "") {
  NodeReport out;
  out.name = fmt::format("gpu{:02}", number);
  out.role = "gpu";
  out.verdict = verdict;
  out.reason = reason;
  out.rack = fmt::format("r{}", number % 4);
  out.network_switch = fmt::format("leaf{}", number / 8);
  out.firmware = "2.1";
  Check check;
  check.name = "dgemm/gflops";
  check.title = "DGEMM";
  check.verdict = verdict == NodeVerdict::accepted ? Verdict::pass : Verdict::fail;
  out.checks.push_back(check);
  return out;
}

// 32 nodes behind four switches; those of leaf2 failed, each for a reason of its own.
Report with_a_dead_switch() {
  Report out;
  out.cluster = "gaggle";
  out.kind = "accept";
  for (int i = 0; i < 32; ++i)
    out.nodes.push_back(
        i / 8 == 2 ? node(i, NodeVerdict::quarantined, fmt::format("{}: {}", i, std::string(1 + i, 'x')))
                   : node(i, NodeVerdict::accepted));
  return out;
}

Check located(const std::vector<std::string>& parts) {
  Check out;
  out.name = "links/located";
  out.verdict = Verdict::degraded;
  out.faulty_parts = parts;
  return out;
}

}  // namespace

TEST_CASE("report causes: nodes behind one switch are one", "[report]") {
  const Report report = with_a_dead_switch();
  const auto causes = causes_in(report);
  REQUIRE(causes.size() == 1);
  CHECK(causes.front().common == "switch");
  CHECK(causes.front().common_value == "leaf2");
  CHECK(causes.front().nodes.size() == 8);
  CHECK(causes.front().next == "muster accept --limit gpu[16-23]");

  const Json json = to_json(report);
  REQUIRE(json["causes"].size() == 1);
  CHECK(json["causes"][0]["nodes"].size() == 8);
  for (const std::string& text : {render_html(report), render_text(report)})
    CHECK(text.find(causes.front().what) != std::string::npos);

  // They are derived, also from a report that was read.
  const auto read = report_from_json(json);
  REQUIRE(read.ok());
  CHECK(causes_in(*read).front().id == causes.front().id);
  Json forged = json;
  forged["causes"] = Json::array();
  CHECK(to_json(report_from_json(forged).value())["causes"] == json["causes"]);
}

TEST_CASE("report causes: one sick node is none", "[report]") {
  Report report = with_a_dead_switch();
  for (int i = 0; i < 32; ++i)
    if (i != 17) report.nodes[static_cast<size_t>(i)] = node(i, NodeVerdict::accepted);
  CHECK(causes_in(report).empty());
  CHECK(!to_json(report).contains("causes"));
  CHECK(render_html(report).find("<h2>Causes") == std::string::npos);
}

TEST_CASE("report causes: a part located between two nodes is one of both", "[report]") {
  Report report;
  report.kind = "accept";
  for (int i = 0; i < 12; ++i) report.nodes.push_back(node(i, NodeVerdict::accepted));
  for (const size_t i : {1, 10}) {
    report.nodes[i].verdict = NodeVerdict::degraded;
    report.nodes[i].reason = fmt::format("slow {}", std::string(i, 'x'));
    report.nodes[i].checks.push_back(located({"link of gpu01, sending", "link of gpu10, receiving"}));
  }
  auto causes = causes_in(report);
  REQUIRE(causes.size() == 1);
  CHECK(causes.front().kind == CauseKind::node_degraded);
  CHECK(causes.front().common == "part");

  // Parts that only read alike, each in its own node, are not one.
  for (const size_t i : {1, 10}) report.nodes[i].checks.back().name = "counters/gpu_xids";
  CHECK(causes_in(report).empty());
}

TEST_CASE("report causes: the command is one that there is", "[report]") {
  Report report = with_a_dead_switch();
  report.running = true;
  CHECK(causes_in(report).front().next == "muster accept --hosts gpu[16-23]");
  report.running = false;
  report.kind = "install";
  CHECK(causes_in(report).front().next == "muster up --limit gpu[16-23]");
}

TEST_CASE("report causes: names that are too long to be read are not in the command", "[report]") {
  Report report = with_a_dead_switch();
  for (size_t i = 16; i < 24; ++i) report.nodes[i].name = fmt::format("{}-of-this-hall", "abcdefgh"[i - 16]);
  CHECK(causes_in(report).front().nodes.size() == 8);
  CHECK(causes_in(report).front().next == "muster accept");
}
