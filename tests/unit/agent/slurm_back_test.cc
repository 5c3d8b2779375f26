// A node that is given back to Slurm while Slurm's controller may be starting.
#include "agent/step.h"
#include "agent/steps/step_modules.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

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

}  // namespace

TEST_CASE("slurm: a node is given back when the controller answers again, with patience", "[steps]") {
  FakeMachine machine;
  machine.put("/slurm/node01", "drained|muster reimage");
  const StepModule* one = find_step_module("slurm_node");
  REQUIRE(one);
  Json back = params("resume", 30);
  back["only_reason"] = "muster";
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
