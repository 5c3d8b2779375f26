// The way back to the system of before, by request.
#include <algorithm>

#include "controller/plan/lint.h"
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

PlannerInput rollback(const std::string& node = "node02") {
  PlannerInput in = at_work();
  fill_other_slot(in, node);
  in.request = {RequestKind::rollback, {node}};
  return in;
}

}  // namespace

TEST_CASE("rollback: as in place, without a write", "[plan]") {
  PlannerInput in = rollback();
  add_pauses(in);
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::rollback);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
  CHECK(ids_of(plan, "node02", false) == std::vector<std::string>{"pause", "boot", "configure", "shared-2",
                                                                  "look", "accept", "commit", "resume"});
  CHECK(ids_of(plan, "node02", true) == std::vector<std::string>{"return", "resume-old", "look-old"});
  CHECK(plan.find("node02/boot")->params["slot"] == "b");
  CHECK(plan.find("node02/boot")->params["digest"] == "sha256:before");
  CHECK(plan.find("node02/commit")->params["steps"][0]["params"]["digest"] == "sha256:before");
  CHECK(plan.find("node02/return")->params["digest"] == "sha256:cpu");
  CHECK(plan.destroys.empty());
  CHECK(lint_plan(plan).empty());
  const auto again = plan_from_json(to_json(plan));
  REQUIRE(again.ok());
  CHECK(again->kind == PlanKind::rollback);
}

TEST_CASE("rollback: the image that it leaves need not be there", "[plan]") {
  PlannerInput in = rollback();
  in.images.clear();
  CHECK(refusals_of(in).empty());
}

TEST_CASE("rollback: behind it `up` has nothing to do, and says which build runs", "[plan]") {
  PlannerInput in = rollback();
  const Plan plan = planned(in);
  NodeObservation& seen = in.nodes["node02"];
  seen.facts->boot.running = "b";
  seen.image_digest = "sha256:before";
  seen.config_digest = plan.config_digests.at("node02");
  in.request = {RequestKind::up, {"node02"}};
  const Plan up = planned(in);
  CHECK(up.empty());
  CHECK(up.unchanged == std::vector<std::string>{"node02"});
  CHECK(has_note(up, "older build of image 'cpu'"));
}

TEST_CASE("rollback: refused where the other slot is none to boot", "[plan]") {
  PlannerInput in = rollback();
  NodeObservation& seen = in.nodes["node02"];
  BootFacts& boot = seen.facts->boot;
  SlotFacts& other = boot.slots["b"];
  SECTION("nothing was ever written there") { other = {}; }
  SECTION("nothing is known of it") { boot.slots.erase("b"); }
  SECTION("half written") { other.stage = "writing"; }
  SECTION("another image") { other.image = "gpu"; }
  SECTION("no image's name") { other.image.clear(); }
  SECTION("a system that does not go back by itself") { other.trial = false; }
  SECTION("another address") { other.address = "10.20.0.99/24"; }
  SECTION("no boot of it can be had") { boot.no_trial = "the firmware keeps no variables"; }
  SECTION("not committed") { seen.image_digest = "sha256:before"; }
  SECTION("no slots") { boot = {}; }
  SECTION("never accepted") { seen.state = NodeState::discovered; }
  SECTION("drained") { seen.state = NodeState::drained; }
  SECTION("not online") { seen.online = false; }
  SECTION("in the RAM system") { seen.mode = wire::Mode::ram; }
  SECTION("never seen") { in.nodes.erase("node02"); }
  SECTION("its disks were written since") { seen.facts.reset(); }
  SECTION("of a database that was put back") { seen.doubtful = true; }
  SECTION("the OS disk is not ours") { seen.facts->disks[0].muster_node = "node03"; }
  SECTION("a data disk would be formatted") { seen.facts->disks[3] = disk("BULKnew", 2ull << 30); }
  SECTION("adopted") {
    for (auto& n : in.spec.nodes)
      if (n.name == "node02") n.adopt.host = "10.20.0.12";
  }
  CHECK(refusals_of(in) == std::set<std::string>{"rollback"});
  // Forced by name it is refused, too: there is nothing to boot.
  in.request.force = {"node02"};
  CHECK(refusals_of(in) == std::set<std::string>{"rollback"});
}

TEST_CASE("rollback: the refusal of a system that does not go back by itself says when one works", "[plan]") {
  PlannerInput in = rollback();
  auto& slots = in.nodes["node02"].facts->boot.slots;
  slots["b"].trial = false;
  const auto message = [&] { return make_plan(in)->refusals.at(0).message; };
  CHECK(message().find("re-image the node in place once") != std::string::npos);
  slots["a"].trial = false;  // it would be the other one then
  CHECK(message().find("re-image the node in place twice") != std::string::npos);
}

TEST_CASE("rollback: of a node that a run quarantined in its new system", "[plan]") {
  PlannerInput in = rollback();
  add_pauses(in);
  NodeObservation& seen = in.nodes["node02"];
  seen.state = NodeState::quarantined;
  seen.held_by = HeldBy::run;
  const Plan plan = planned(in);
  // Its services go on running: it may have jobs.
  CHECK(ids_of(plan, "node02", false) == std::vector<std::string>{"pause", "boot", "configure", "shared-2",
                                                                  "look", "accept", "commit", "resume"});
  CHECK(ids_of(plan, "node02", true) == std::vector<std::string>{"return", "resume-old", "look-old"});
  CHECK(plan.find("node02/return")->params["state"] == "quarantined");
  // A re-image of it is none in place, and what an operator holds is held.
  in.request.kind = RequestKind::reimage;
  CHECK(planned(in).find("node02/image"));
  in.request.kind = RequestKind::rollback;
  seen.held_by = HeldBy::an_operator;
  CHECK(refusals_of(in) == std::set<std::string>{"node-held"});
}

TEST_CASE("rollback: the image of before is configured with what the spec has baked since", "[plan]") {
  PlannerInput in = rollback();
  const auto installs = [](const Plan& plan) {
    const Json& steps = plan.find("node02/configure")->params["steps"];
    return std::any_of(steps.begin(), steps.end(), [](const Json& s) { return s["id"] == "base/packages"; });
  };
  CHECK(installs(planned(in)));
  in.request.kind = RequestKind::reimage;
  CHECK(!installs(planned(in)));
}

TEST_CASE("rollback: of named nodes only, and within the trial", "[plan]") {
  PlannerInput in = rollback();
  in.nodes["node02"].accept_took = in.spec.limits.trial + 1;
  CHECK(refusals_of(in) == std::set<std::string>{"trial-short"});
  in.request.nodes.clear();
  CHECK(refusals_of(in) == std::set<std::string>{"error"});
}

TEST_CASE("rollback: storage is checked as for a re-image", "[plan]") {
  PlannerInput in = rollback("node01");
  if (GENERATE(false, true)) in.nodes["node01"].state = NodeState::quarantined;  // it serves all the same
  CHECK(refusals_of(in) == std::set<std::string>{"storage-needed"});
  in.request.force = {"node01"};
  CHECK(refusals_of(in).empty());
}
