// A node that is given back to Slurm while Slurm's controller may be starting.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"
#include "tests/source_dir.h"

using namespace muster;
using tests::FakeMachine;

namespace {

// Its Slurm does not answer so many calls.
struct Late : Process {
  explicit Late(FakeMachine& of) : machine(of) {}
  Result<Output> run(const Command& command) override {
    if (silent-- <= 0) return machine.run(command);
    Output out;
    out.exit_code = 1;
    out.err = "slurm_load_node: Unable to contact slurm controller";
    return out;
  }
  FakeMachine& machine;
  int silent = 1;
};

Json params(const std::string& state, int deadline) {
  return {{"node", "node01"}, {"state", state}, {"deadline_seconds", deadline}};
}

// The shipped playbook's step for Slurm in that phase, for node01.
Json shipped(const std::string& phase) {
  std::ifstream in(source_dir() + "/playbooks/scheduler.yaml");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto steps = parse_playbook(text).playbook.steps;
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const PlaybookStep& s) {
    return s.phase == phase && s.module == "slurm_node";
  });
  REQUIRE(found != steps.end());
  Json out = found->params;
  out["node"] = "node01";
  out["deadline_seconds"] = 0;
  return out;
}

}  // namespace

TEST_CASE("slurm: the phase resume gives back what the phase pause took out, and nothing else", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const Json pause = shipped("pause"), resume = shipped("resume");
  SECTION("at work") {
    machine.put("/slurm/node01", "idle|none");
    REQUIRE(one.apply(context, pause).ok());
    CHECK(one.check(context, resume)->holds == Holds::no);
    REQUIRE(one.apply(context, resume).ok());
    CHECK(machine.get("/slurm/node01") == "idle|none");
  }
  SECTION("drained before, by another") {
    const std::string reason = GENERATE("muster health: memory_uncorrected +3", "muster drain", "muster",
                                        "bad DIMM, ask Ann", "not for muster reimage");
    machine.put("/slurm/node01", "drained|" + reason);
    CHECK(one.check(context, pause)->holds == Holds::yes);  // so that it keeps the reason
    CHECK(one.check(context, resume)->holds == Holds::yes);
    REQUIRE(one.apply(context, resume).ok());
    CHECK(machine.get("/slurm/node01") == "drained|" + reason);
    CHECK_FALSE(machine.called("scontrol"));
  }
}

TEST_CASE("slurm: a node is given back when the controller answers again, with patience", "[steps]") {
  FakeMachine machine;
  machine.put("/slurm/node01", "drained|muster reimage");
  const StepModule* one = find_step_module("slurm_node");
  REQUIRE(one);
  Json back = params("resume", 30);
  back["only_reason"] = "muster reimage";
  Late late(machine);
  StepContext context{machine.context().files, late, "node01"};
  SECTION("it is looked at") {
    const auto looked = one->check(context, back);
    REQUIRE(looked.ok());
    CHECK(looked->holds == Holds::no);
  }
  SECTION("it is given back") {
    CHECK(one->apply(context, back).ok());
    CHECK(machine.get("/slurm/node01") == "idle|none");
  }
  SECTION("not for ever") {
    late.silent = 1000;
    back["deadline_seconds"] = 0;
    CHECK_FALSE(one->apply(context, back).ok());
    CHECK(machine.get("/slurm/node01") == "drained|muster reimage");
  }
  SECTION("a node that it does not know is none to wait for") {
    late.silent = 0;
    back["node"] = "node09";
    CHECK(one->check(context, back).error().code == Code::not_found);
    CHECK(one->apply(context, back).error().code == Code::not_found);
  }
  SECTION("what is not given back only is not waited for") {
    CHECK_FALSE(one->check(context, params("drain", 30)).ok());
    late.silent = 1;
    CHECK_FALSE(one->apply(context, params("drain", 30)).ok());
  }
}

TEST_CASE("slurm: a node with a suspended job is not drained yet", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  machine.put("/slurm/node01", "idle|none");
  machine.put("/slurm-suspended/node01", "17\n18\n");
  const Status paused = one.apply(context, shipped("pause"));
  REQUIRE_FALSE(paused.ok());
  CHECK(paused.error().code == Code::timeout);
  const auto looked = one.check(context, shipped("pause"));
  REQUIRE(looked.ok());
  CHECK(looked->holds == Holds::no);
  CHECK(looked->diff.find("17,18") != std::string::npos);
  machine.put("/slurm-suspended/node01", "");
  CHECK(one.check(context, shipped("pause"))->holds == Holds::yes);
}
