// The check `containers` as the shipped profiles judge it.
#include <algorithm>

#include "controller/report/report.h"
#include "controller/report/verdict.h"
#include "tests/catch.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;

namespace {

// Of an engine, as muster-accept prints it. `moved`: {PART: {METRIC: n}}.
Json engine(double gpus_missing, double rdma_missing, Json moved = Json::object()) {
  return measured("containers",
                  {{"gpus_missing", {gpus_missing, "GPUs"}}, {"rdma_missing", {rdma_missing, "devices"}}},
                  {{"absent", Json::array()}, {"moved", std::move(moved)}});
}
Json starts_nothing(Json detail) {
  return {{"check", "containers"},
          {"outcome", "unavailable"},
          {"error", "docker starts no container"},
          {"metrics", Json::object()},
          {"detail", std::move(detail)}};
}

NodeReport judged(const std::string& profile, Json results) {
  const auto playbooks = testing::shipped_playbooks();
  const auto& steps = playbooks.at("acceptance/" + profile).steps;
  const auto planned =
      std::find_if(steps.begin(), steps.end(), [](const auto& step) { return step.name == "containers"; });
  REQUIRE(planned != steps.end());
  Json parts = Json::array();
  for (const auto& [name, result] : results.items()) parts.push_back({{"subject", name}, {"result", result}});
  MeasuredStep step = report_sample::step("node01", "containers", "containers", "", planned->expect,
                                          {{"check", "containers"}, {"parts", parts}});
  step.mandatory = planned->mandatory;
  step.blocks = planned->blocks;
  const MeasuredStep load = report_sample::step("node01", "dgemm", "dgemm", "", {{"gflops", {{"min", 1}}}},
                                                measured("dgemm", {{"gflops", {5, ""}}}));
  Report report;
  report.kind = "accept";
  report.profile = profile;
  NodeReport node;
  node.name = "node01";
  node.verdict = NodeVerdict::accepted;
  node.checks = judge_measurements({step, load}).at("node01");
  report.nodes = {node};
  settle(report);
  return report.nodes.front();
}

const Check& check_of(const NodeReport& node, const std::string& name, const std::string& subject) {
  const auto found = std::find_if(node.checks.begin(), node.checks.end(), [&](const Check& check) {
    return check.name == name && check.subject == subject;
  });
  REQUIRE(found != node.checks.end());
  return *found;
}

}  // namespace

TEST_CASE("containers: a missing device stops the node and is named with its engine", "[containers]") {
  for (const char* profile : {"quick", "standard", "burn", "lab"}) {
    CAPTURE(profile);
    const NodeReport node =
        judged(profile, {{"docker", engine(1, 0, {{"/dev/nvidia3 in docker", {{"gpus_missing", 1}}}})},
                         {"podman", engine(0, 2, {{"all RDMA devices in podman", {{"rdma_missing", 2}}}})}});
    CHECK(node.verdict == NodeVerdict::failed);
    const Check& gpus = check_of(node, "containers/gpus_missing", "docker");
    CHECK((gpus.verdict == Verdict::fail && gpus.mandatory));
    CHECK(gpus.faulty_parts == std::vector<std::string>{"/dev/nvidia3 in docker"});
    CHECK(check_of(node, "containers/gpus_missing", "podman").verdict == Verdict::pass);
    CHECK(check_of(node, "containers/rdma_missing", "podman").verdict == Verdict::fail);
    // What `muster why` shows.
    CHECK(node.reason.find("/dev/nvidia3 in docker") != std::string::npos);
    CHECK(node.reason.find("all RDMA devices in podman") != std::string::npos);
  }
}

TEST_CASE("containers: an engine that cannot be used is nothing against the node", "[containers]") {
  const NodeReport broken = judged("standard", {{"docker", starts_nothing(Json::object())}});
  CHECK(broken.verdict == NodeVerdict::accepted);
  CHECK(check_of(broken, "containers/data", "docker").verdict == Verdict::skipped);
  const NodeReport denied =
      judged("standard", {{"docker", starts_nothing({{"not_looked_at", "permission denied"}})}});
  CHECK(denied.verdict == NodeVerdict::accepted);
  CHECK(check_of(denied, "containers/data", "docker").verdict == Verdict::not_looked_at);

  Json unoffered = engine(0, 0);
  unoffered["metrics"].erase("gpus_missing");
  unoffered["detail"]["not_looked_at"]["gpus_missing"] = "no file offers nvidia.com/gpu";
  const NodeReport node = judged("standard", {{"podman", unoffered}});
  CHECK(node.verdict == NodeVerdict::accepted);
  CHECK(check_of(node, "containers/gpus_missing", "podman").verdict == Verdict::not_looked_at);
}

TEST_CASE("containers: a node without engines or devices has nothing to judge", "[containers]") {
  const NodeReport none = judged("standard", Json::object());
  CHECK(none.verdict == NodeVerdict::accepted);
  CHECK(check_of(none, "containers/data", "").verdict == Verdict::not_applicable);
  Json bare = engine(0, 0);
  bare["metrics"] = Json::object();
  bare["detail"]["absent"] = Json::array({"gpus_missing", "rdma_missing"});
  const NodeReport node = judged("standard", {{"docker", bare}});
  CHECK(node.verdict == NodeVerdict::accepted);
  CHECK(check_of(node, "containers/gpus_missing", "docker").verdict == Verdict::not_applicable);
}

TEST_CASE("containers: they are no load, and the profile beside jobs starts none", "[containers]") {
  NodeReport node = judged("standard", {{"docker", engine(0, 0)}});
  CHECK(ran_load(node));
  std::erase_if(node.checks, [](const Check& check) { return check.name.starts_with("dgemm/"); });
  CHECK_FALSE(ran_load(node));
  const auto playbooks = testing::shipped_playbooks();
  for (const auto& step : playbooks.at("acceptance/beside-jobs").steps)
    CHECK(step.params.value("kernel", "") != "containers");
}
