// A node at work that goes through the RAM system: while its jobs are waited for it can still stay as it is.
#include <algorithm>
#include <utility>

#include "controller/plan/lint.h"
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

using Ids = std::vector<std::string>;

PlannerInput through_ram(std::vector<std::string> nodes = {"node02"}) {
  PlannerInput in = at_work();
  add_pauses(in);
  in.request = {RequestKind::reimage, std::move(nodes)};
  in.request.through_ram = true;
  return in;
}

const Ids kOrdinary = {"pause",    "netboot", "image",  "boot",  "configure",
                       "shared-2", "look",    "accept", "resume"};

}  // namespace

TEST_CASE("paused for the RAM system: where its jobs do not end, it is given back as it was", "[plan]") {
  const PlannerInput in = through_ram();
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::reimage);
  CHECK(ids_of(plan, "node02", false) == kOrdinary);
  CHECK(ids_of(plan, "node02", true) == Ids{"return", "resume-old", "look-old"});
  const Action& back = *plan.find("node02/return");
  CHECK(back.kind == ActionKind::return_slot);
  CHECK(back.params == Json{{"slot", "a"}, {"digest", "sha256:cpu"}, {"state", "accepted"}});
  CHECK(back.after.empty());
  CHECK(back.behind == -1);
  const Action& resume = *plan.find("node02/resume-old");
  CHECK(resume.kind == ActionKind::steps);
  CHECK(resume.phase == "resume");
  CHECK(resume.params == plan.find("node02/resume")->params);
  REQUIRE(resume.params["steps"].size() == 2);
  CHECK(resume.params["steps"][0]["id"] == "base/resume");
  CHECK(resume.params["steps"][1]["id"] == "shared/resume");
  CHECK(plan.find("node02/look-old")->kind == ActionKind::inventory);
  for (const char* name : {"node02/write", "node02/commit"}) CHECK(!plan.find(name));
  for (const auto& a : plan.actions) CHECK(a.kind != ActionKind::boot_slot);
  CHECK(lint_plan(plan).empty());
  const auto read = plan_from_json(to_json(plan));
  REQUIRE(read.ok());
  CHECK(ids_of(*read, "node02", true) == ids_of(plan, "node02", true));
}

TEST_CASE("paused for the RAM system: for whichever reason it takes that way", "[plan]") {
  PlannerInput in = through_ram();
  in.request.through_ram = false;
  NodeObservation& seen = in.nodes["node02"];
  std::string slot = "a", digest = "sha256:cpu", state = "accepted";
  SECTION("an image that does not take itself back") { in.images["cpu"].trial = false; }
  SECTION("a firmware without a variable for it") { seen.facts->boot.no_trial = "no variable"; }
  SECTION("no program to put beside the image") { in.programs.clear(); }
  SECTION("another address is declared") { seen.facts->boot.slots["a"].address = "10.20.0.99/24"; }
  SECTION("degraded, and in the other slot") {
    in.request.through_ram = true;
    auto& boot = seen.facts->boot;
    boot.running = boot.standing = slot = "b";
    std::swap(boot.slots["a"], boot.slots["b"]);
    seen.state = NodeState::degraded;
    state = "degraded";
  }
  SECTION("looked at in a trial of slot b, and gone back since") {
    in.request.through_ram = true;
    fill_other_slot(in, "node02");
    seen.facts->boot.running = "b";
  }
  SECTION("looked at in a trial of slot b, and committed since") {
    in.request.through_ram = true;
    fill_other_slot(in, "node02");
    seen.facts->boot.running = slot = "b";
    seen.image_digest = digest = "sha256:before";
  }
  const Plan plan = planned(in);
  CHECK(ids_of(plan, "node02", false) == kOrdinary);
  CHECK(ids_of(plan, "node02", true) == Ids{"return", "resume-old", "look-old"});
  CHECK(plan.find("node02/return")->params == Json{{"slot", slot}, {"digest", digest}, {"state", state}});
  CHECK(lint_plan(plan).empty());
}

TEST_CASE("paused for the RAM system: given back, and not to an unknown slot", "[plan]") {
  PlannerInput in = through_ram();
  NodeObservation& seen = in.nodes["node02"];
  BootFacts& boot = seen.facts->boot;
  SECTION("an agent that does not tell its slots") { boot = {}; }
  SECTION("one that tells a slot that there is not") { boot.running = "c"; }
  SECTION("it runs what no slot is noted to hold") { seen.image_digest = "sha256:by-hand"; }
  SECTION("it runs a slot that does not stand") {
    fill_other_slot(in, "node02");
    seen.image_digest = "sha256:before";
  }
  const Plan plan = planned(in);
  CHECK(ids_of(plan, "node02", false) == kOrdinary);  // it is paused all the same
  CHECK(ids_of(plan, "node02", true) == Ids{"resume-old", "look-old"});
  CHECK(plan.find("node02/look-old")->params == Json{{"state", "accepted"}});
  CHECK(lint_plan(plan).empty());
}

TEST_CASE("paused for the RAM system: the way back is there for the pause alone", "[plan]") {
  PlannerInput in = through_ram();
  for (auto& [name, playbook] : in.playbooks)
    playbook.steps.erase(
        std::remove_if(playbook.steps.begin(), playbook.steps.end(),
                       [](const PlaybookStep& s) { return s.phase == "pause" || s.phase == "resume"; }),
        playbook.steps.end());
  auto& steps = in.playbooks["base"].steps;
  Ids wanted;
  SECTION("nothing is paused") {}
  SECTION("it has steps for its return alone") { steps.push_back(step("resume", "resume", {{"x", "y"}})); }
  SECTION("it has none for its return") {
    steps.push_back(step("pause", "pause", {{"x", "y"}}));
    wanted = {"return", "look-old"};
  }
  const Plan plan = planned(in);
  CHECK((plan.find("node02/pause") != nullptr) == !wanted.empty());
  CHECK(ids_of(plan, "node02", true) == wanted);
  CHECK(lint_plan(plan).empty());
}

TEST_CASE("paused for the RAM system: a node without work has nothing to go back to", "[plan]") {
  PlannerInput in = through_ram();
  NodeObservation& seen = in.nodes["node02"];
  SECTION("drained") { seen.state = NodeState::drained; }
  SECTION("never accepted") { seen.state = NodeState::discovered; }
  SECTION("an installation that did not come to its end") { seen.state = NodeState::installing; }
  SECTION("in the RAM system") { seen.mode = wire::Mode::ram; }
  SECTION("not online") { seen.online = false; }
  const Plan plan = planned(in);
  CHECK(plan.find("node02/image"));
  CHECK(!plan.find("node02/pause"));
  CHECK(ids_of(plan, "node02", true).empty());
  CHECK(lint_plan(plan).empty());
}

TEST_CASE("paused for the RAM system: a node that may be at work, whether it is accepted or not", "[plan]") {
  PlannerInput in = through_ram();
  NodeObservation& seen = in.nodes["node02"];
  seen.state = GENERATE(NodeState::quarantined, NodeState::installing);
  seen.config_digest = "sha256:conf";  // it was accepted once
  const Plan plan = planned(in);
  CHECK(ids_of(plan, "node02", false) == kOrdinary);
  CHECK(ids_of(plan, "node02", true) == Ids{"return", "resume-old", "look-old"});
  CHECK(plan.find("node02/return")->params["state"] == std::string(to_string(seen.state)));
  CHECK(lint_plan(plan).empty());
}

TEST_CASE("paused for the RAM system: beside a node that is re-imaged in place", "[plan]") {
  PlannerInput in = through_ram({"node02", "node03"});
  in.request.through_ram = false;
  for (auto& s : in.spec.storage)
    if (s.name == "shared") s.copies = 3;
  in.nodes["node02"].facts->boot.no_trial = "no variable";
  const Plan plan = planned(in);
  REQUIRE(plan.find("node03/write"));
  REQUIRE(plan.find("node02/netboot"));
  for (const std::string node : {"node02", "node03"})
    CHECK(ids_of(plan, node, true) == Ids{"return", "resume-old", "look-old"});
  // Nothing waits for what is done only where a node failed.
  for (const auto& a : plan.actions)
    if (!a.when_failed)
      for (const std::string& before : all_before(plan, a.id)) CHECK(!plan.find(before)->when_failed);
  CHECK(lint_plan(plan).empty());
}
