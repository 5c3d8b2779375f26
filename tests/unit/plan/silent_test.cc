// Nodes that are installed and silent: they are looked for before anything is decided about them, and never
// reinstalled without a request.
#include "controller/plan/lint.h"
#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

Plan made(const PlannerInput& in) {
  auto outcome = make_plan(in);
  INFO((outcome.ok() ? "" : outcome.error().message));
  REQUIRE(outcome.ok());
  for (const auto& r : outcome->refusals) UNSCOPED_INFO(r.node + " " + r.rule + ": " + r.message);
  REQUIRE(outcome->refusals.empty());
  CHECK(lint_plan(outcome->plan).empty());
  return outcome->plan;
}

// All accepted as they are declared.
PlannerInput accepted() {
  PlannerInput in = with_nodes(installed);
  const Plan plan = made(in);
  for (auto& [name, seen] : in.nodes) {
    seen.state = NodeState::accepted;
    seen.config_digest = plan.config_digests.at(name);
  }
  REQUIRE(made(in).empty());
  return in;
}

std::vector<ActionKind> kinds(const Plan& plan, const std::string& node) {
  std::vector<ActionKind> out;
  for (const auto& a : plan.actions)
    if (a.node == node) out.push_back(a.kind);
  return out;
}

}  // namespace

TEST_CASE("an installed node that is silent is woken, and nothing is written", "[plan][silent]") {
  PlannerInput in = accepted();
  in.nodes["node02"].online = false;
  SECTION("accepted") {}
  SECTION("released, or woken before") { in.nodes["node02"].state = NodeState::discovered; }
  SECTION("a run was cancelled") { in.nodes["node02"].state = NodeState::installing; }
  SECTION("another image is declared since") { in.images["cpu"].digest = "sha256:newer"; }
  const Plan plan = made(in);
  CHECK(plan.kind == PlanKind::wake);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
  CHECK(kinds(plan, "node02") == std::vector<ActionKind>{ActionKind::wake});
  CHECK(plan.destroys.empty());
  CHECK(plan_from_json(to_json(plan)).value().find("node02/wake")->kind == ActionKind::wake);
}

TEST_CASE("a node that stayed silent is left out until a request names it", "[plan][silent]") {
  PlannerInput in = accepted();
  in.nodes["node02"].online = false;
  in.nodes["node02"].state = NodeState::quarantined;
  const Plan plan = made(in);
  CHECK(plan.empty());
  CHECK(plan.left_out == std::vector<std::string>{"node02"});
  REQUIRE_FALSE(plan.notes.empty());
  CHECK(plan.notes.front().find("muster reimage node02") != std::string::npos);
  in.request.nodes = {"node02"};
  CHECK(made(in).kind == PlanKind::wake);
  in.request.kind = RequestKind::reimage;  // asked for
  const Plan again = made(in);
  CHECK(again.kind == PlanKind::reimage);
  CHECK(kinds(again, "node02").front() == ActionKind::netboot);
  // When it answers it is what it is: measured again, not written.
  in.request = {};
  in.nodes["node02"].online = true;
  const Plan back = made(in);
  CHECK(back.kind == PlanKind::apply);
  CHECK(back.nodes == std::vector<std::string>{"node02"});
}

TEST_CASE("a node whose installation was cut off is not taken for an installed one", "[plan][silent]") {
  PlannerInput in = accepted();
  in.nodes["node02"].online = false;
  in.nodes["node02"].state = NodeState::quarantined;
  in.nodes["node02"].machine = in.nodes["node02"].facts;
  in.nodes["node02"].facts.reset();  // its disks were written since it was looked at
  const Plan plan = made(in);
  CHECK(plan.kind == PlanKind::discover);
  CHECK(kinds(plan, "node02").front() == ActionKind::netboot);
}

TEST_CASE("on an older copy of the database no silent node is installed", "[plan][silent]") {
  PlannerInput in = with_nodes(seen_in_ram);
  SECTION("the copy knows it in RAM") {}
  SECTION("the copy was taken while it was written") { in.nodes["node02"].facts.reset(); }
  SECTION("the copy never heard of it") { in.nodes["node02"] = NodeObservation{}; }
  in.nodes["node02"].online = false;
  in.nodes["node02"].doubtful = true;
  const Plan plan = made(in);
  CHECK(plan.kind == PlanKind::wake);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
  CHECK(kinds(plan, "node02") == std::vector<ActionKind>{ActionKind::wake});
}

TEST_CASE("an installed system that answers shows its hardware itself: it is not netbooted for that",
          "[plan][silent]") {
  PlannerInput in = accepted();
  in.nodes["node02"].facts.reset();
  in.nodes["node02"].state = NodeState::installing;
  const Plan plan = made(in);
  CHECK(plan.kind == PlanKind::discover);
  CHECK(kinds(plan, "node02") == std::vector<ActionKind>{ActionKind::inventory});
}

TEST_CASE("the same plan behind another run, or on another history, is another plan", "[plan][silent]") {
  PlannerInput in = accepted();
  for (const auto& [name, seen] : in.nodes) in.request.force.insert(name);
  in.follows = "h1/4";
  const Plan plan = made(in);
  CHECK(plan_digest(made(in)) == plan_digest(plan));
  CHECK(plan_digest(plan_from_json(to_json(plan)).value()) == plan_digest(plan));
  in.follows = "h1/5";
  CHECK(plan_digest(made(in)) != plan_digest(plan));
  in.follows = "h2/4";
  CHECK(plan_digest(made(in)) != plan_digest(plan));
}

TEST_CASE("lint: nodes are woken in a plan of that alone", "[plan][silent]") {
  PlannerInput in = accepted();
  in.nodes["node02"].online = false;
  Plan plan = made(in);
  SECTION("another kind") { plan.kind = PlanKind::apply; }
  SECTION("another action") { plan.actions[0].kind = ActionKind::netboot; }
  CHECK_FALSE(lint_plan(plan).empty());
}

TEST_CASE("a node that a person switches is waited for when it is named, or nothing else is to be done",
          "[plan][silent][manual]") {
  PlannerInput in = with_nodes(installed);
  Spec spec = in.spec;
  spec.nodes[1].power = PowerSpec();
  spec.nodes[1].power.driver = "manual";
  spec.nodes[1].power.address = "rack 3";
  spec.nodes[1].power.within = 60 * kMinute;
  PlannerInput by_hand = in;
  by_hand.spec = spec;
  const auto left_out = [](const Plan& plan) { return plan.left_out == std::vector<std::string>{"node02"}; };
  SECTION("never seen, and others are there: not discovered first") {
    by_hand.nodes["node02"] = {};
    const Plan plan = made(by_hand);
    CHECK(plan.kind != PlanKind::discover);
    CHECK(left_out(plan));
    CHECK(std::count(plan.nodes.begin(), plan.nodes.end(), "node02") == 0);
    by_hand.request.nodes = {"node02"};
    const Plan named = made(by_hand);
    CHECK(named.kind == PlanKind::discover);
    CHECK(kinds(named, "node02").front() == ActionKind::netboot);
  }
  SECTION("none was ever seen: those with a BMC are looked for") {
    for (auto& [name, seen] : by_hand.nodes) seen = {};
    CHECK(made(by_hand).nodes == std::vector<std::string>{"node01", "node03"});
  }
  SECTION("none was ever seen, and there are no others") {
    by_hand.spec.nodes = {spec.nodes[1]};
    by_hand.nodes.clear();
    const Plan plan = made(by_hand);
    CHECK(plan.kind == PlanKind::discover);
    CHECK(plan.nodes == std::vector<std::string>{"node02"});
  }
  SECTION("installed and silent") {
    by_hand.nodes["node02"].online = false;
    const Plan plan = made(by_hand);
    CHECK(plan.kind != PlanKind::wake);
    CHECK(left_out(plan));
    by_hand.request.nodes = {"node02"};
    CHECK(made(by_hand).kind == PlanKind::wake);
  }
}
