// A node that runs a system on trial takes part in no plan: what is done to that system is lost with it. And
// what a run leaves that was cancelled meanwhile.
#include <algorithm>

#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

// All accepted in slot a; then the image was rebuilt, and node02 boots it from slot b on trial. The run
// was cancelled: its row says degraded (NodeTurn::stand_down).
PlannerInput cancelled() {
  PlannerInput in = at_work();
  for (const auto& [name, digest] : planned(in).config_digests) in.nodes[name].config_digest = digest;
  in.images["cpu"].digest = "sha256:new";
  NodeObservation& seen = in.nodes["node02"];
  seen.state = NodeState::degraded;
  seen.on_trial = true;
  seen.slot = "b";
  seen.image_digest = "sha256:new";
  return in;
}

// The inventory of the system on trial.
void looked_at(NodeObservation& seen) {
  BootFacts& boot = seen.facts->boot;
  boot.running = "b";
  boot.slots["b"] = boot.slots["a"];
  boot.slots["b"].digest = "sha256:new";
}

}  // namespace

TEST_CASE("on trial: `up` leaves the node out, and says what becomes of it", "[plan]") {
  PlannerInput in = cancelled();
  SECTION("its inventory is of the old system") {}
  SECTION("its inventory is of the new one") { looked_at(in.nodes["node02"]); }
  const Plan plan = planned(in);
  CHECK(plan.empty());
  CHECK(plan.left_out == std::vector<std::string>{"node02"});
  CHECK(plan.left_out_rules.at("node02") == "on-trial");
  CHECK(has_note(plan,
                 "node02 is left out: it runs slot b on trial and rolls back by itself unless the system "
                 "is committed; run `muster up` after the trial"));
  const auto again = plan_from_json(to_json(plan));
  REQUIRE(again.ok());
  CHECK(again->left_out_rules == plan.left_out_rules);
}

TEST_CASE("on trial: a plan of any kind that names the node is refused", "[plan]") {
  PlannerInput in = cancelled();
  looked_at(in.nodes["node02"]);
  in.request.kind =
      GENERATE(RequestKind::up, RequestKind::reimage, RequestKind::rollback, RequestKind::accept,
               RequestKind::admit, RequestKind::drain, RequestKind::undrain);
  in.request.nodes = {"node02"};
  CHECK(refusals_of(in) == std::set<std::string>{"on-trial"});
  in.request.force = {"node02"};
  CHECK(refusals_of(in) == std::set<std::string>{"on-trial"});
  // What an operator holds is held, whatever it runs.
  in.nodes["node02"].held_by = HeldBy::an_operator;
  CHECK(refusals_of(in) == std::set<std::string>{"node-held"});
}

TEST_CASE("on trial: back in its old slot it is configured there, and nothing is installed", "[plan]") {
  PlannerInput in = cancelled();
  NodeObservation& seen = in.nodes["node02"];
  SECTION("its inventory is of the old system") {}
  SECTION("its inventory is of the new one") { looked_at(seen); }
  seen.on_trial = false;
  seen.slot = "a";
  seen.image_digest = "sha256:cpu";
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::apply);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
  CHECK(plan.find("node02/configure"));
  CHECK(std::none_of(plan.actions.begin(), plan.actions.end(), [](const Action& a) {
    return a.kind == ActionKind::netboot || a.kind == ActionKind::image || a.kind == ActionKind::write_slot ||
           a.kind == ActionKind::boot_slot;
  }));
  CHECK(has_note(plan, "older build of image 'cpu'"));
}

TEST_CASE("on trial: behind its commit a node whose run was cancelled is configured in its new system",
          "[plan]") {
  PlannerInput in = cancelled();
  NodeObservation& seen = in.nodes["node02"];
  looked_at(seen);
  seen.on_trial = false;
  SECTION("re-imaged") {}
  SECTION("rolled back, to a build that is not the newest") { in.images["cpu"].digest = "sha256:newest"; }
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::apply);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
}

TEST_CASE("on trial: it serves no others meanwhile, and counts as away", "[plan]") {
  PlannerInput in = at_work();
  in.nodes["node02"].on_trial = true;
  in.request = {RequestKind::reimage, {"node03"}};
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  REQUIRE(made->refusals.size() == 1);
  CHECK(made->refusals[0].rule == "storage-needed");
  CHECK(made->refusals[0].message.find("node02 (on trial: the node may restart by itself)") !=
        std::string::npos);
}
