// What each number is held to and by which source; and what nothing could be held to.
#include <algorithm>

#include "controller/report/history.h"
#include "controller/report/verdict.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

const Json kBf16 = Json::parse(
    R"({"tflops":{"derive":"gpu_bf16_tflops","ratio":0.93,"fleet_min_ratio":0.93,"history_min_ratio":0.93,
        "unit":"TFLOP/s"}})");

MeasuredStep gpu(const std::string& node, const std::string& model, double tflops,
                 const std::string& uuid = "GPU-1") {
  MeasuredStep out = step(node, "gpu bf16", "GPU products", "", kBf16, nullptr);
  const Json part = {{"subject", uuid},
                     {"like", model},
                     {"result", measured("gpu-gemm", {{"tflops", {tflops, "TFLOP/s"}}})}};
  out.result["parts"] = Json::array();
  out.result["parts"].push_back(part);
  return out;
}

Report report_of(const std::vector<MeasuredStep>& steps, const Comparison& with = {}) {
  Report out;
  out.cluster = "gaggle";
  out.kind = "accept";
  for (auto& [node, checks] : judge_measurements(steps, with)) {
    NodeReport one;
    one.name = node;
    one.verdict = NodeVerdict::accepted;
    one.checks = checks;
    out.nodes.push_back(std::move(one));
  }
  settle(out);
  return out;
}

const Check& of(const Report& report, const std::string& node, const std::string& name) {
  for (const auto& one : report.nodes)
    for (const auto& check : one.checks)
      if (one.name == node && check.name == name) return check;
  FAIL("no check " << name << " of " << node);
  return report.nodes.front().checks.front();
}

}  // namespace

TEST_CASE("a GPU that the table does not have is not judged: no pass, no blame, and the title counts it",
          "[held-to]") {
  const Report report = report_of({gpu("n1", "NVIDIA X900", 10), gpu("n2", "NVIDIA X900", 9)});
  const Check& check = of(report, "n1", "gpu bf16/tflops");
  CHECK(check.verdict == Verdict::not_judged);
  CHECK(check.reason == "the GPU table does not have NVIDIA X900");
  CHECK(check.faulty_parts.empty());
  CHECK(report.nodes[0].verdict == NodeVerdict::accepted);
  CHECK(report.nodes[1].verdict == NodeVerdict::accepted);
  CHECK(title(report) == "gaggle: 2 of 2 nodes accepted, 1 check not judged: no figure for NVIDIA X900");
  CHECK(totals(report).count(Verdict::not_judged) == 2);
  CHECK(totals(report).count(Verdict::pass) == 2);  // the data checks
}

TEST_CASE("the title names the first two things without a figure and counts the others, also when it is read",
          "[held-to]") {
  std::vector<MeasuredStep> steps;
  for (const char* model : {"NVIDIA X900", "NVIDIA X901", "NVIDIA X902", "NVIDIA X903"})
    steps.push_back(gpu("n1", model, 10, std::string("GPU-") + model));
  const Report report = report_of(steps);
  CHECK(totals(report).no_figure_for.size() == 4);
  CHECK(
      title(report) ==
      "gaggle: 1 of 1 node accepted, 1 check not judged: no figure for NVIDIA X900, NVIDIA X901 and 2 more");
  const auto read = report_from_json(parse_json(to_json_text(report)).value());
  REQUIRE(read.ok());
  CHECK(title(*read) == title(report));
  // A figure that is of no single thing: by the check.
  MeasuredStep slow =
      step("n1", "memory", "", "", Json::parse(R"({"mbps":{"derive":"dimm_bandwidth","ratio":1}})"),
           measured("stream", {{"mbps", {10, "MB/s"}}}));
  CHECK(totals(report_of({slow})).no_figure_for == std::vector<std::string>{"memory/mbps"});
}

TEST_CASE("what only lacks other nodes to compare with is said in the check, and not in the title",
          "[held-to]") {
  const Json compared = Json::parse(R"({"mbps":{"fleet_min_ratio":0.85,"history_min_ratio":0.8}})");
  const auto drive = [&](const std::string& node) {
    MeasuredStep out = step(node, "drives", "Drives", "", compared, nullptr);
    out.result = measured("drives", {{"mbps", {100, "MB/s"}}});
    return out;
  };
  const Report small = report_of({drive("n1"), drive("n2")});
  const Check& check = of(small, "n1", "drives/mbps");
  CHECK(check.verdict == Verdict::not_judged);
  CHECK(check.uncompared);
  CHECK_FALSE(check.reason.empty());
  CHECK(title(small) == "gaggle: 2 of 2 nodes accepted");
  CHECK(totals(small).count(Verdict::not_judged) == 2);
  CHECK(render_text(small).find("2 not judged") != std::string::npos);
  CHECK(render_text(small).find("(drives/mbps)") != std::string::npos);
  const auto read = report_from_json(parse_json(to_json_text(small)).value());
  REQUIRE(read.ok());
  CHECK(title(*read) == title(small));
  // A figure that is missing as well is counted; and so is one in a report with both.
  CHECK_FALSE(of(report_of({gpu("n1", "NVIDIA X900", 10)}), "n1", "gpu bf16/tflops").uncompared);
  CHECK(title(report_of({drive("n1"), gpu("n1", "NVIDIA X900", 10)})) ==
        "gaggle: 1 of 1 node accepted, 1 check not judged: no figure for NVIDIA X900");
  CHECK_FALSE(of(report_of({drive("n1"), drive("n2"), drive("n3")}), "n1", "drives/mbps").uncompared);
}

TEST_CASE("each form of the report says what was not judged, and why", "[held-to]") {
  const Report report = report_of({gpu("n1", "NVIDIA X900", 10)});
  const char* why = "the GPU table does not have NVIDIA X900";
  CHECK(render_text(report).find(std::string("not judged: ") + why + " (gpu bf16/tflops)") !=
        std::string::npos);
  const std::string junit = render_junit(report);
  CHECK(junit.find(std::string("<skipped message=\"not judged: ") + why + "\">") != std::string::npos);
  CHECK(junit.find("skipped=\"1\"") != std::string::npos);
  CHECK(junit.find("failures=\"0\" errors=\"0\"") != std::string::npos);
  CHECK(render_html(report).find("badge b-not_judged") != std::string::npos);
  CHECK(render_html(report).find(why) != std::string::npos);
  const auto flat = parse_json(render_flat(report).substr(0, render_flat(report).find('\n')));
  CHECK(flat->at("not_judged") == "gpu bf16.tflops[GPU-1]");
  CHECK(flat->at("failures").empty());
  const auto read = report_from_json(parse_json(to_json_text(report)).value());
  REQUIRE(read.ok());
  CHECK(to_json_text(*read) == to_json_text(report));
}

TEST_CASE("where another rule has something to compare with, the GPU is judged by that", "[held-to]") {
  const Report fleet =
      report_of({gpu("n1", "NVIDIA X900", 10), gpu("n2", "NVIDIA X900", 10), gpu("n3", "NVIDIA X900", 5)});
  CHECK(of(fleet, "n1", "gpu bf16/tflops").verdict == Verdict::pass);
  CHECK(of(fleet, "n3", "gpu bf16/tflops").verdict == Verdict::degraded);
  CHECK(title(fleet) == "gaggle: 2 of 3 nodes accepted, 1 degraded");
  // What was not judged is the reference of the part's next run.
  Report before = report_of({gpu("n1", "NVIDIA X900", 10)});
  History history;
  REQUIRE(add_history(history, 1, measured_text(before)).ok());
  Comparison with;
  with.history = &history;
  const Report slower = report_of({gpu("n1", "NVIDIA X900", 5)}, with);
  CHECK(of(slower, "n1", "gpu bf16/tflops").verdict == Verdict::degraded);
  CHECK(of(slower, "n1", "gpu bf16/tflops").source == "its own history");
}

TEST_CASE("two models in one node are each held to their own figure", "[held-to]") {
  HardwareFacts facts;
  facts.gpus.resize(2);
  facts.gpus[0].model = "NVIDIA H200";
  facts.gpus[1].model = "NVIDIA A100-SXM4-80GB";
  Comparison with;
  with.facts["n1"] = &facts;
  MeasuredStep both = gpu("n1", "NVIDIA H200", 690);
  both.result["parts"].push_back(gpu("n1", "NVIDIA A100-SXM4-80GB", 260, "GPU-2").result["parts"][0]);
  const auto judged = judge_measurements({both}, with);
  for (const auto& check : judged.at("n1")) CHECK(check.verdict == Verdict::pass);
  // A collective is as fast as the slowest; of a model that the table lacks, nothing is known.
  const auto bound = [&](const char* other) {
    facts.gpus[1].model = other;
    MeasuredStep nccl =
        step("n1", "nccl", "", "", Json::parse(R"({"busbw":{"derive":"nccl_bus","ratio":1}})"),
             measured("gpu-nccl", {{"busbw", {100, "GB/s"}}, {"ranks", {1, ""}}, {"gpus", {2, ""}}}));
    return judge_measurements({nccl}, with).at("n1").back();
  };
  CHECK(bound("NVIDIA A100-SXM4-80GB").expected == 231);
  CHECK(bound("NVIDIA H200").expected == 480);
  CHECK(bound("NVIDIA X900").verdict == Verdict::not_judged);
}

TEST_CASE("each number is held to something because of a rule, with its source", "[held-to]") {
  const auto held = [](const char* expectation, double value) {
    const auto checks = judge_measurements({step("n1", "x", "", "", {{"speed", Json::parse(expectation)}},
                                                 measured("x", {{"speed", {value, "MB/s"}}}))});
    return checks.at("n1").back();
  };
  const Check floor = held(R"({"min":10})", 5);
  CHECK(floor.because == "the profile's `min`, 10 MB/s");
  CHECK(floor.source == "the acceptance profile");
  CHECK(held_to(floor) ==
        "held to at least 10 MB/s, because of the profile's `min`, 10 MB/s (source: the acceptance profile)");
  CHECK(held(R"({"min":10,"set_by":"lab"})", 5).source == "the spec's lab section");
  const Check range = held(R"({"degraded_below":10,"max":20})", 15);
  CHECK(range.because == "the profile's `degraded_below`, 10 MB/s; the profile's `max`, 20 MB/s");
  CHECK(range.source == "the acceptance profile");
  // Only the rule that holds: the lower of two floors is not the reason.
  CHECK(held(R"({"min":10,"degraded_below":12})", 15).because == "the profile's `degraded_below`, 12 MB/s");
  // Shown only: no rule, and so nothing that was missing.
  const Check shown = held(R"({"unit":"MB/s"})", 15);
  CHECK(shown.verdict == Verdict::pass);
  CHECK(held_to(shown).empty());
  const Report report = report_of({gpu("n1", "NVIDIA H200", 600)});
  const Check& slow = of(report, "n1", "gpu bf16/tflops");
  CHECK(slow.because == "0.93 x derived (healthy NVIDIA H200 reach 695, data sheet 989)");
  CHECK(slow.source.find("muster's own run") == 0);
  CHECK(render_text(report).find(held_to(slow)) != std::string::npos);
  CHECK(to_json_text(report).find("\"source\": \"muster's own run") != std::string::npos);
}

TEST_CASE("every check of the sample report that expects a number says why and by which source",
          "[held-to]") {
  size_t numbers = 0;
  for (const auto& node : report_sample::full().nodes)
    for (const auto& check : node.checks) {
      if (!check.expected) continue;
      CAPTURE(node.name, check.name);
      ++numbers;
      CHECK_FALSE(check.because.empty());
      CHECK_FALSE(check.source.empty());
    }
  CHECK(numbers > 20);
}
