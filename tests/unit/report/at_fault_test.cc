// What the reason of a node says of its parts: which are at fault, and that a lab stands in for them.
#include "base/standin.h"
#include "controller/report/verdict.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;
using Parts = std::vector<std::string>;

namespace {

Check failed(const std::string& name, const std::string& reason, Parts faulty_parts,
             const std::string& subject = "") {
  Check check;
  check.name = name;
  check.subject = subject;
  check.verdict = Verdict::fail;
  check.reason = reason;
  check.faulty_parts = std::move(faulty_parts);
  return check;
}

size_t times(const std::string& text, const std::string& what) {
  size_t out = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++out;
  return out;
}

bool says_simulated(const std::string& text) { return text.find(kSimulatedGpu) != std::string::npos; }

HardwareFacts with_stand_ins() {
  HardwareFacts out;
  out.gpus = standin_facts({2}, "abcd");
  return out;
}

// One measurement of node n1 against ceilings of 0.
std::vector<Check> counted(const std::map<std::string, double>& metrics, Json detail) {
  Json expect = Json::object();
  std::map<std::string, std::pair<double, std::string>> values;
  for (const auto& [metric, value] : metrics) {
    expect[metric] = {{"max", 0}};
    values[metric] = {value, ""};
  }
  return judge_measurements(
             {step("n1", "counters", "", "", expect, measured("counters", values, std::move(detail)))})
      .at("n1");
}

Parts with_faulty_part(const std::vector<Check>& checks, const std::string& name) {
  for (const auto& check : checks)
    if (check.name == name) return check.faulty_parts;
  FAIL("no check " << name);
  return {};
}

}  // namespace

TEST_CASE("why a node is not accepted names the parts at fault, failed and slow ones alike") {
  NodeReport node;
  node.checks = {failed("gpu counters/gpus_lost", "1 GPU is above 0 GPUs", {"GPU GPU-1"}),
                 failed("links/located", "", {"link of node02 (eth0), sending"})};
  const std::string why = obstacle(node);
  CHECK(times(why, "GPU GPU-1") == 1);
  CHECK(times(why, "link of node02 (eth0), sending") == 1);
  CHECK(reason_of(node.checks[0]).find("GPU GPU-1") != std::string::npos);
  for (auto& check : node.checks) check.verdict = Verdict::degraded;
  CHECK(obstacle(node).empty());
  CHECK(times(shortfall(node), "GPU GPU-1") == 1);
  CHECK(times(shortfall(node), "link of node02 (eth0), sending") == 1);
}

TEST_CASE("a part that the check names anyway is not named again, and of many the rest is counted") {
  CHECK(times(reason_of(failed("pcie/lanes_lost", "8 lanes", {"0000:65:00.0"}, "0000:65:00.0")),
              "0000:65:00.0") == 1);
  CHECK(times(reason_of(failed("dgemm/data", "cpu 3 product 7 is wrong", {"cpu 3"})), "cpu 3") == 1);
  CHECK(times(reason_of(failed("dgemm/data", "cpu 31 product 7 is wrong", {"cpu 3", "cpu 31"})), "cpu 3") ==
        2);
  const std::string five =
      reason_of(failed("x/y", "wrong", {"part a", "part b", "part c", "part d", "part e"}));
  CHECK(times(five, "part ") == 3);
  CHECK(five.find("2 more") != std::string::npos);
  CHECK(reason_of(failed("x/y", "wrong", {"a", "b", "c"})).find("more") == std::string::npos);
}

TEST_CASE("of counters only the parts that one of them moved on are at fault for it") {
  const Json moved = {{"GPU 0000:3b:00", {{"gpu_xids", 2}}},
                      {"GPU 0000:5e:00", {{"gpu_xids", 1}, {"nvlink_replay", 4}}},
                      {"NIC 52:54:00:20:00:01", {{"link_down", 1}}}};
  const auto checks =
      counted({{"gpu_xids", 3}, {"link_down", 1}, {"memory_uncorrected", 0}},
              {{"moved", moved}, {"part", "GPU 0000:3b:00, GPU 0000:5e:00, NIC 52:54:00:20:00:01"}});
  CHECK(with_faulty_part(checks, "counters/gpu_xids") == Parts{"GPU 0000:3b:00", "GPU 0000:5e:00"});
  CHECK(with_faulty_part(checks, "counters/link_down") == Parts{"NIC 52:54:00:20:00:01"});
  CHECK(with_faulty_part(checks, "counters/memory_uncorrected").empty());
  // A measurement of one part names it; what an agent says in another form is no list of parts.
  CHECK(with_faulty_part(counted({{"x", 1}}, {{"part", "drive S1"}}), "counters/x") == Parts{"drive S1"});
  CHECK(with_faulty_part(counted({{"x", 1}}, {{"moved", {{"a", 7}}}}), "counters/x").empty());
}

TEST_CASE("checks of GPUs that a lab stands in for say so, whatever they found; others do not", "[standin]") {
  std::vector<Check> checks = {failed("counters/gpu_xids", "12 lines is above 0 lines", {}),
                               failed("gpu counters/nvlink_inactive", "not measured", {}),
                               failed("counters/link_down", "1 is above 0", {})};
  for (auto& check : checks) check.title = check.name.substr(0, check.name.find('/'));
  checks[0].measured_text = "12 lines";
  checks[2].measured_text = "1";
  Check none = failed("gpu bf16/data", "", {});
  none.verdict = Verdict::not_applicable;
  checks.push_back(none);

  auto said = checks;
  say_simulated(with_stand_ins(), said);
  CHECK(says_simulated(said[0].reason));
  CHECK(says_simulated(said[0].measured_text));
  CHECK(said[0].title == "counters");
  CHECK(says_simulated(said[1].reason));
  CHECK(says_simulated(said[1].title));
  CHECK_FALSE(says_simulated(said[2].reason + said[2].measured_text + said[2].title));
  CHECK(says_simulated(said[3].measured_text));
  for (size_t i = 0; i < checks.size(); ++i) CHECK(said[i].verdict == checks[i].verdict);
  say_simulated(with_stand_ins(), said);
  CHECK(times(said[0].reason, kSimulatedGpu) == 1);

  HardwareFacts real = with_stand_ins();
  for (auto& gpu : real.gpus) gpu.simulated = false;
  auto unsaid = checks;
  say_simulated(real, unsaid);
  for (const auto& check : unsaid)
    CHECK_FALSE(says_simulated(check.reason + check.measured_text + check.title));
}

TEST_CASE("hardware that is not as declared: what is said of stand-ins says so", "[standin]") {
  NodeSpec node;
  node.hardware.gpus = 8;
  node.hardware.gpu_model = "*A100*";
  node.hardware.pcie = "5.0 x16";
  const HardwareFacts facts = with_stand_ins();
  size_t found = 0;
  for (const auto& check : judge_hardware(node, &facts)) {
    if (!check.name.starts_with("hardware/gpu") && check.name != "hardware/pcie") continue;
    CAPTURE(check.name);
    CHECK((check.verdict == Verdict::fail || check.verdict == Verdict::skipped));
    for (const auto& text : {check.title, check.measured_text, check.reason}) CHECK(says_simulated(text));
    ++found;
  }
  CHECK(found == 3);
}
