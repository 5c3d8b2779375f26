// A node at work that leaves its system: what it is taken from before, by which agent, and where it is not.
#include <algorithm>

#include "controller/plan/lint.h"
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

using Ids = std::vector<std::string>;

PlannerInput leaving(std::vector<std::string> nodes = {"node02"}) {
  PlannerInput in = at_work();
  add_pauses(in);
  for (auto& s : in.spec.storage)
    if (s.name == "shared") s.copies = 3;
  in.request = {RequestKind::reimage, std::move(nodes)};
  return in;
}

void drop_pauses(Playbook& playbook) {
  std::erase_if(playbook.steps,
                [](const PlaybookStep& s) { return s.phase == "pause" || s.phase == "resume"; });
}

Json steps_of(const Plan& plan, const std::string& id) {
  const Action* action = plan.find(id);
  REQUIRE(action);
  return action->params["steps"];
}

}  // namespace

TEST_CASE("leaving work: an agent of before has no order with a module that it has not", "[plan]") {
  PlannerInput in = leaving();
  const std::string module = GENERATE("ceph_noout", "moosefs_maintenance");
  for (auto& s : in.playbooks["shared"].steps)
    if (s.phase == "pause" || s.phase == "resume") s.module = module;
  CHECK(steps_of(planned(in), "node02/pause").size() == 2);
  in.nodes["node02"].facts->boot = {};
  const Plan plan = planned(in);
  CHECK(plan.find("node02/image"));
  for (const char* id : {"node02/pause", "node02/resume", "node02/resume-old"}) {
    REQUIRE(steps_of(plan, id).size() == 1);
    CHECK(steps_of(plan, id)[0]["module"] == "file");
  }
  CHECK(ids_of(plan, "node02", true) == Ids{"resume-old", "look-old"});
  CHECK(has_note(plan, "an agent of an earlier version"));
  CHECK(lint_plan(plan).empty());
  drop_pauses(in.playbooks["base"]);
  const Plan alone = planned(in);
  CHECK(!alone.find("node02/pause"));
  CHECK(!alone.find("node02/resume"));
  CHECK(ids_of(alone, "node02", true).empty());
}

TEST_CASE("leaving work: where no slot is known, the last action says what the node was", "[plan]") {
  PlannerInput in = leaving();
  in.nodes["node02"].facts->boot = {};
  const std::string state = GENERATE("accepted", "degraded");
  if (state == "degraded") in.nodes["node02"].state = NodeState::degraded;
  SECTION("with steps that give it back") {}
  SECTION("without") {
    for (auto& [name, playbook] : in.playbooks)
      std::erase_if(playbook.steps, [](const PlaybookStep& s) { return s.phase == "resume"; });
  }
  const Plan plan = planned(in);
  CHECK(plan.find("node02/pause"));
  CHECK(!plan.find("node02/return"));
  CHECK(plan.find("node02/look-old")->params == Json{{"state", state}});
  CHECK(plan.find("node02/look-old")->phase == "return");
  CHECK(lint_plan(plan).empty());
}

TEST_CASE("leaving work: its slot's own digest, where it said none at its boot", "[plan]") {
  PlannerInput in = leaving();
  in.nodes["node02"].image_digest.clear();
  const Plan plan = planned(in);
  CHECK(plan.find("node02/image"));
  CHECK(plan.find("node02/return")->params["digest"] == "sha256:cpu");
}

TEST_CASE("leaving work: a node that is forced is not taken from it", "[plan]") {
  PlannerInput in = leaving({"node02", "node03"});
  PlaybookStep given = step("given back", "node", {{"x", "y"}});
  given.when = "{{^paused}}yes{{/paused}}";
  in.playbooks["base"].steps.push_back(given);
  in.request.force = {"node02"};
  const auto gives_back = [](const Plan& plan, const std::string& node) {
    const Json steps = steps_of(plan, node + "/configure");
    return std::any_of(steps.begin(), steps.end(),
                       [](const Json& s) { return s["id"] == "base/given back"; });
  };
  const Plan plan = planned(in);
  CHECK(!plan.find("node02/pause"));
  CHECK(!plan.find("node02/resume"));
  CHECK(ids_of(plan, "node02", true) == Ids{"return", "look-old"});
  CHECK(gives_back(plan, "node02"));
  CHECK(has_note(plan, "node02 is not drained first, because of --force"));
  CHECK(plan.find("node03/pause"));
  CHECK(plan.find("node03/resume"));
  CHECK(!gives_back(plan, "node03"));
  CHECK(!has_note(plan, "node03 is not drained"));
  in.request.through_ram = true;
  const Plan ram = planned(in);
  CHECK(!ram.find("node02/pause"));
  CHECK(ids_of(ram, "node02", true).empty());
}

TEST_CASE("leaving work: those that wait for each other are named", "[plan]") {
  const char* words = "re-imaged in place reboot together";
  PlannerInput in = leaving({"node02", "node03"});
  CHECK(has_note(planned(in), words));
  in.request.nodes = {"node02"};
  CHECK(!has_note(planned(in), words));
  in.request.nodes = {"node02", "node03"};
  in.request.through_ram = true;  // no trial that another one's jobs would wait for
  CHECK(!has_note(planned(in), words));
  in.request.through_ram = false;
  for (auto& [name, playbook] : in.playbooks) drop_pauses(playbook);
  CHECK(!has_note(planned(in), words));
}
