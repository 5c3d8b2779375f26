// Which floors are put to the operator, and which nodes stay failed.
#include "controller/report/floors.h"

#include "controller/report/verdict.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

struct Value {
  const char* node;
  const char* metric;
  double value;
  const char* like = "";
  Json detail = Json::object();
};

struct Requested {
  std::map<std::string, std::vector<Check>> checks;
  std::vector<std::string> questions;
  // Verdicts of the metric, in the order measured.
  std::vector<Verdict> of(const std::string& node, const std::string& metric) const {
    std::vector<Verdict> out;
    for (const auto& check : checks.at(node))
      if (check.name == "drives/" + metric) out.push_back(check.verdict);
    return out;
  }
};

Requested request(const std::vector<Value>& values, const Json& expectation, bool mandatory = true,
                  const History& history = {}) {
  std::vector<MeasuredStep> steps;
  int serial = 0;
  for (const auto& v : values) {
    steps.push_back(step(v.node, "drives", "drives", "S" + std::to_string(++serial),
                         {{v.metric, expectation}},
                         measured("drives", {{v.metric, {v.value, "MB/s"}}}, v.detail)));
    steps.back().like = v.like;
    steps.back().mandatory = mandatory;
  }
  Requested out;
  out.checks = judge_measurements(steps);
  out.questions = question_floors(out.checks, "ours", history);
  return out;
}

const Json kFloor = {{"min", 50}, {"unit", "MB/s"}};
using Verdicts = std::vector<Verdict>;

}  // namespace

TEST_CASE("a floor is in question when every value of at least two nodes is below it", "[floors]") {
  const Requested all = request({{"a", "read", 40}, {"a", "read", 30}, {"b", "read", 20}}, kFloor);
  CHECK(all.of("a", "read") == Verdicts{Verdict::degraded, Verdict::degraded});
  CHECK(all.of("b", "read") == Verdicts{Verdict::degraded});
  REQUIRE(all.questions.size() == 1);
  CHECK(all.questions[0].find("20 MB/s to 40 MB/s") != std::string::npos);
  // One drive that reaches it answers the question for all.
  const Requested one = request({{"a", "read", 40}, {"a", "read", 60}, {"b", "read", 20}}, kFloor);
  CHECK(one.of("a", "read") == Verdicts{Verdict::fail, Verdict::pass});
  CHECK(one.of("b", "read") == Verdicts{Verdict::fail});
  CHECK(one.questions.empty());
  const Requested alone = request({{"a", "read", 40}, {"a", "read", 30}}, kFloor);
  CHECK(alone.of("a", "read") == Verdicts{Verdict::fail, Verdict::fail});
  CHECK(alone.questions.empty());
}

TEST_CASE("the floors of one kind of part are in question by themselves", "[floors]") {
  const Requested requested = request({{"a", "read", 40, "disk"},
                                       {"a", "read", 6000, "nvme"},
                                       {"b", "read", 45, "disk"},
                                       {"b", "read", 10, "nvme"}},
                                      kFloor);
  CHECK(requested.of("a", "read") == Verdicts{Verdict::degraded, Verdict::pass});
  CHECK(requested.of("b", "read") == Verdicts{Verdict::degraded, Verdict::fail});  // a slow NVMe drive is one
  REQUIRE(requested.questions.size() == 1);
  CHECK(requested.questions[0].find("(disk)") != std::string::npos);
}

TEST_CASE(
    "ceilings, soft limits and checks that block no node are never in question; a floor that is derived is",
    "[floors]") {
  const Requested high = request({{"a", "errors", 40}, {"b", "errors", 30}}, {{"max", 0}});
  CHECK(high.of("a", "errors") == Verdicts{Verdict::fail});
  CHECK(high.questions.empty());
  CHECK(request({{"a", "read", 40}, {"b", "read", 30}}, {{"degraded_below", 50}}).questions.empty());
  CHECK(request({{"a", "read", 40}, {"b", "read", 30}}, kFloor, false).questions.empty());
  const Json ports = {{"own_port", {{"interface", "eno1"}, {"speed_mbps", 10000}}}};
  const Json derived = {{"derive", "nic_payload"}, {"fail_ratio", 0.5}};
  CHECK(request({{"a", "read", 40, "", ports}, {"b", "read", 30, "", ports}}, derived).questions.size() == 1);
  CHECK(request({{"a", "read", 40, "", ports}, {"b", "read", 1000, "", ports}}, derived).questions.empty());
}

// Floors by model differ: what is enough for a small drive's is no word on a large one's.
TEST_CASE("a lower floor that others reach does not answer for a higher one", "[floors]") {
  const double others = GENERATE(100.0, 3500.0);
  Check missed;
  missed.name = "local storage/read_mbps";
  missed.measured = 2000;
  missed.missed_floor = 3000;
  missed.verdict = Verdict::fail;
  Check passed = missed;
  passed.measured = others;
  passed.missed_floor = std::nullopt;
  passed.verdict = Verdict::pass;
  std::map<std::string, std::vector<Check>> checks = {
      {"a", {missed}}, {"b", {missed}}, {"c", {passed}}, {"d", {passed}}};
  const auto questions = question_floors(checks, "ours", History());
  CHECK(questions.size() == (others < 3000 ? 1 : 0));
  CHECK(checks["a"][0].verdict == (others < 3000 ? Verdict::degraded : Verdict::fail));
  CHECK(checks["c"][0].verdict == Verdict::pass);
}

TEST_CASE("a floor that other nodes have reached before is not in question for two that miss it",
          "[floors]") {
  const std::vector<Value> two = {{"a", "read", 40, "M1"}, {"b", "read", 20, "M1"}};
  const auto past = [](const std::string& node, double value, bool good, const std::string& like) {
    History history;
    history.nodes[node][{"drives/read", "S9"}] = {PastValue{3, value, good, false, like}};
    return history;
  };
  CHECK(request(two, kFloor, true, past("c", 60, true, "M1")).questions.empty());
  CHECK(request(two, kFloor, true, past("c", 60, true, "M1")).of("a", "read") == Verdicts{Verdict::fail});
  CHECK(request(two, kFloor, true, past("c", 45, true, "M1")).questions.size() ==
        1);  // below this floor, under another profile
  CHECK(request(two, kFloor, true, past("c", 60, false, "M1")).questions.size() ==
        1);  // of a node that was not handed over
  CHECK(request(two, kFloor, true, past("c", 60, true, "M2")).questions.size() ==
        1);  // another kind of drive
  CHECK(request(two, kFloor, true, past("a", 60, true, "M1")).questions.size() == 1);  // itself
}
