// Causes of recorded reports: of a quickstart's three nodes, and of the same machines as a larger cluster.
#include "base/json.h"
#include "controller/report/report_causes.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

#include <fmt/format.h>

using namespace muster;

namespace {

Report recorded(const std::string& file) {
  const auto json = parse_json(text_of(std::string(source_dir()) + "/tests/golden/" + file));
  REQUIRE(json.ok());
  auto report = report_from_json(*json);
  REQUIRE(report.ok());
  return std::move(*report);
}

// The recorded node as another machine: with a name, a switch and a serial number of its own.
NodeReport another(const NodeReport& node, int number) {
  NodeReport out = node;
  out.name = fmt::format("gpu{:02}", number);
  out.network_switch = fmt::format("leaf{}", number / 31);
  out.serial = fmt::format("S{}", number);
  return out;
}

const NodeReport& with_verdict(const Report& report, NodeVerdict verdict) {
  for (const NodeReport& node : report.nodes)
    if (node.verdict == verdict) return node;
  FAIL("no such node was recorded");
  return report.nodes.front();
}

}  // namespace

TEST_CASE("recorded causes: one node of a quickstart that failed has none in common", "[report]") {
  const Report report = recorded("report/lab.json");
  REQUIRE(report.nodes.size() == 3);
  CHECK(causes_in(report).empty());
}

TEST_CASE("recorded causes: 31 such nodes behind one switch are one", "[report]") {
  const Report lab = recorded("report/lab.json");
  Report report = lab;
  report.nodes.clear();
  for (int i = 0; i < 93; ++i)
    report.nodes.push_back(
        another(with_verdict(lab, i / 31 == 1 ? NodeVerdict::quarantined : NodeVerdict::accepted), i));
  const auto causes = causes_in(report);
  REQUIRE(causes.size() == 1);
  CHECK(causes.front().common == "switch");
  CHECK(causes.front().common_value == "leaf1");
  CHECK(causes.front().nodes.size() == 31);
  CHECK(!causes.front().next.empty());

  // Without labels their reason is what they have in common, as it was recorded.
  for (NodeReport& node : report.nodes) node.network_switch.clear();
  const auto unlabelled = causes_in(report);
  REQUIRE(unlabelled.size() == 1);
  CHECK(unlabelled.front().common == "reason");
  CHECK(unlabelled.front().nodes.size() == 31);
  CHECK(unlabelled.front().detail == with_verdict(lab, NodeVerdict::quarantined).reason);
}

TEST_CASE("recorded causes: nodes that failed and returned for one reason are one", "[report]") {
  const auto causes = causes_in(recorded("records/report.json"));
  REQUIRE(causes.size() == 1);
  CHECK(causes.front().common == "reason");
  CHECK(causes.front().nodes == std::vector<NodeName>{"gpu03", "gpu04"});
}
