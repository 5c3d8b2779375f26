// Shipped acceptance profiles on virtual machines: what the spec's lab section changes of them, and that
// nothing changes without it.
#include "controller/plan/simulated.h"

#include <algorithm>

#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::testing;

namespace {

// Its id is not what it is known by.
PlannedStep planned(const std::string& name, const char* params, const char* expect) {
  wire::Step step;
  step.id = "profile/step[" + name + "]";
  step.params = Json::parse(params);
  step.expect = Json::parse(expect);
  return {name, std::make_shared<const RenderedStep>(std::move(step))};
}

// The first node's steps of all its orders for the acceptance, by id.
std::map<std::string, Json> steps_of(const Plan& plan) {
  std::map<std::string, Json> out;
  for (const auto& action : plan.actions)
    if (action.node == plan.nodes.front() && action.params.is_object() && action.params.contains("steps"))
      for (const auto& step : action.params["steps"]) out[step["id"].get<std::string>()] = step;
  return out;
}

std::string lab_spec(const std::string& acceptance) {
  const std::string text =
      replaced(text_of(source_dir() + "/lab/quickstart.yaml"), "ssh-ed25519 LAB_SSH_KEY", kKey);
  return replaced(replaced(text, "profile: lab }", "profile: quick }"), "lab:\n", "lab:\n" + acceptance);
}

std::string errors_of(const std::string& acceptance) {
  std::string out;
  for (const auto& e : parse_spec(lab_spec(acceptance)).errors) out += to_string(e, "f") + "\n";
  return out;
}

}  // namespace

TEST_CASE("a lab's limits take the place of the profile's, and its comparisons go on demand",
          "[plan][simulated]") {
  LabAcceptance lab;
  lab.limits["dgemm/gflops"] = Json{{"min", 0.001}};
  lab.limits["links/rtt_ms"] = Json::object();
  lab.limits["dgmm/gflops"] = Json{{"min", 1}};
  std::vector<PlannedStep> steps = {
      planned(
          "dgemm", "{}",
          R"({"gflops":{"min":20,"derive":"cpu_peak","ratio":0.4,"fleet_min_ratio":0.9,"unit":"GFLOP/s"}})"),
      planned("links", "{}", R"({"rtt_ms":{"degraded_above":2,"unit":"ms"},"send_mbps":{"min":20}})")};
  SECTION("compared") {
    Simulated simulated(lab);
    simulated.change(steps);
    CHECK(steps[0].step().expect["gflops"] ==
          Json::parse(R"({"min":0.001,"derive":"cpu_peak","ratio":0.4,"fleet_min_ratio":0.9,
                          "unit":"GFLOP/s","set_by":"lab"})"));
    CHECK(steps[1].step().expect["rtt_ms"] == Json::parse(R"({"unit":"ms","set_by":"lab"})"));
    CHECK(steps[1].step().expect["send_mbps"] == Json::parse(R"({"min":20})"));
    const auto notes = simulated.notes("quick");
    REQUIRE(notes.size() == 2);
    CHECK(notes[0].find("dgemm/gflops {\"min\":0.001}") != std::string::npos);
    CHECK(notes[1].find("'dgmm/gflops'") != std::string::npos);
  }
  SECTION("not compared") {
    lab.compare = false;
    Simulated(lab).change(steps);
    CHECK(steps[0].step().expect["gflops"] ==
          Json::parse(R"({"min":0.001,"unit":"GFLOP/s","set_by":"lab"})"));
    CHECK(steps[1].step().expect["send_mbps"] == Json::parse(R"({"min":20})"));
  }
}

TEST_CASE("a lab that compares nothing may still hold file systems to their drives, by a share of its own",
          "[plan][simulated]") {
  LabAcceptance lab;
  lab.compare = false;
  lab.limits["local storage/read_mbps"] = Json{{"of_raw_reads", 0.001}, {"otherwise_min", 0.05}};
  std::vector<PlannedStep> steps = {planned(
      "local storage", "{}",
      R"({"read_mbps":{"of_raw_reads":0.3,"otherwise_min":800,"derive":"drive_models","ratio":0.5,"unit":"MB/s"},
          "write_mbps":{"of_raw_reads":0.1,"otherwise_min":400,"unit":"MB/s"},
          "random_read_iops":{"derive":"drive_models","ratio":0.5,"fail_ratio":0.2,"unit":"1/s"}})")};
  Simulated simulated(lab);
  simulated.change(steps);
  const Json& expect = steps[0].step().expect;
  CHECK(expect["read_mbps"] ==
        Json::parse(R"({"of_raw_reads":0.001,"otherwise_min":0.05,"unit":"MB/s","set_by":"lab"})"));
  CHECK(expect["write_mbps"] == Json::parse(R"({"unit":"MB/s"})"));
  CHECK(expect["random_read_iops"] == Json::parse(R"({"unit":"1/s"})"));
  CHECK(simulated.notes("quick").front().find("\"of_raw_reads\":0.001") != std::string::npos);
}

TEST_CASE("a lab's scale shortens times and sizes, never to nothing and never deadlines",
          "[plan][simulated]") {
  LabAcceptance lab;
  lab.time_scale = 0.01;
  lab.options["training load"] = Json{{"model", 32}};
  std::vector<PlannedStep> steps = {
      planned("dgemm", R"({"deadline_seconds":7500,"options":{"seconds":7200,"n":256}})", "null"),
      planned("local storage", R"({"options":{"size":8192,"random-seconds":10,"timeout":150}})", "null"),
      planned("links", R"({"seconds":"60","serve_seconds":900})", "null"),
      planned("training load", R"({"max_bytes":67108864,"options":{"model":512,"heads":8}})", "null"),
      planned("short", R"({"seconds":"0.6","options":{"seconds":0.5}})", "null"),
      planned("starts", R"({"kernel":"containers","options":{"seconds":60}})", "null")};
  Simulated(lab).change(steps);
  CHECK(steps[0].step().params ==
        Json::parse(R"({"deadline_seconds":7500,"options":{"seconds":72,"n":256}})"));
  CHECK(steps[1].step().params == Json::parse(R"({"options":{"size":82,"random-seconds":1,"timeout":150}})"));
  CHECK(steps[2].step().params == Json::parse(R"({"seconds":"1","serve_seconds":900})"));
  CHECK(steps[3].step().params == Json::parse(R"({"max_bytes":1048576,"options":{"model":32,"heads":8}})"));
  CHECK(steps[4].step().params == Json::parse(R"({"seconds":"0.6","options":{"seconds":0.5}})"));
  CHECK(steps[5].step().params == Json::parse(R"({"kernel":"containers","options":{"seconds":60}})"));
}

TEST_CASE("every node is measured by the lab's limits, and the plan says which", "[plan][simulated]") {
  const auto plan_of = [](const std::string& acceptance) {
    PlannerInput in = shipped_input(lab_spec(acceptance));
    in.lab = true;
    return planned_of(in);
  };
  const Plan shipped = plan_of("");
  const Plan changed = plan_of(
      "  acceptance:\n    time_scale: 0.5\n    limits: { dgemm/gflops: { min: 0.5 }, no such/check: {} }\n");
  const auto before = steps_of(shipped), after = steps_of(changed);
  CHECK(before.at("quick/dgemm")["expect"]["gflops"]["min"] == 20);
  CHECK(before.at("quick/dgemm")["params"]["options"]["seconds"] == 10);
  CHECK(after.at("quick/dgemm")["expect"]["gflops"]["min"] == 0.5);
  CHECK(after.at("quick/dgemm")["params"]["options"]["seconds"] == 5);
  const auto said = [](const Plan& plan, const std::string& text) {
    return std::any_of(plan.notes.begin(), plan.notes.end(),
                       [&](const std::string& note) { return note.find(text) != std::string::npos; });
  };
  CHECK(said(changed, "dgemm/gflops {\"min\":0.5}"));
  CHECK(said(changed, "'no such/check'"));
  CHECK_FALSE(said(shipped, "lab section"));
}

TEST_CASE("what a lab asks of acceptance is checked with the spec", "[spec][simulated]") {
  CHECK(errors_of("  acceptance: { time_scale: 0.1, compare: false }\n").empty());
  CHECK(errors_of("  acceptance: { time_scale: 0 }\n").find("lab.acceptance.time_scale") !=
        std::string::npos);
  CHECK(errors_of("  acceptance: { time_scale: 2 }\n").find("lab.acceptance.time_scale") !=
        std::string::npos);
  CHECK(errors_of("  acceptance: { limits: { dgemm: { min: 1 } } }\n").find("lab.acceptance.limits.dgemm") !=
        std::string::npos);
  CHECK(errors_of("  acceptance: { limits: { dgemm/gflops: { mn: 1 } } }\n").find("limits.dgemm/gflops.mn") !=
        std::string::npos);
  // The share of raw drives goes with the floor that holds where they were not measured.
  const auto scratch = [](const std::string& limit) {
    return errors_of("  acceptance: { limits: { local storage/read_mbps: " + limit + " } }\n");
  };
  CHECK(scratch("{ of_raw_reads: 0.01, otherwise_min: 0.1 }").empty());
  CHECK(scratch("{ of_raw_reads: 0.01 }").find("must be given together") != std::string::npos);
  CHECK(scratch("{ otherwise_min: 0.01 }").find("must be given together") != std::string::npos);
  CHECK(scratch("{ of_raw_reads: 0, otherwise_min: 1 }").find("limits.local storage/read_mbps") !=
        std::string::npos);
  CHECK(scratch("{ of_raw_reads: 2, otherwise_min: 1 }").find("of_raw_reads") != std::string::npos);
  CHECK(scratch("{ min: 2, max: 1 }").find("limits.local storage/read_mbps") != std::string::npos);
  const std::string once = scratch("{ of_raws: 2 }");
  CHECK(std::count(once.begin(), once.end(), '\n') == 1);
  CHECK(errors_of("  acceptance: { floors: {} }\n").find("lab.acceptance.floors") != std::string::npos);
}
