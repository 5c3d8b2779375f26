// What the shipped playbooks do before a node at work leaves its system, and when it is back.
#include "controller/engines/ceph_engine.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

PlannerInput with_shipped(const std::string& storage) {
  PlannerInput in = at_work();
  in.playbooks["shared"] = shipped_playbooks().at(storage);
  in.playbooks["scheduler"] = shipped_playbooks().at("scheduler");
  in.spec.roles["cpu"].push_back("scheduler");
  in.request = {RequestKind::reimage, {"node02"}};
  return in;
}

PlannerInput with_ceph() {
  PlannerInput in = with_shipped("storage-ceph");
  in.spec.storage.back().engine = "ceph";
  for (auto& [name, seen] : in.nodes) {
    DiskFacts& bulk = seen.facts->disks[3];
    bulk.signatures = {"ceph_bluestore uuid=" + ceph_osd_uuid(ceph_fsid("gaggle", "shared"), bulk.serial)};
  }
  return in;
}

Json steps_of(const Plan& plan, const std::string& action) {
  const Action* found = plan.find(action);
  REQUIRE(found);
  return found->params["steps"];
}

bool has_step(const Plan& plan, const std::string& node, const std::string& id) {
  for (const auto& a : plan.actions)
    for (const Json& s : a.params.value("steps", Json::array()))
      if (a.node == node && s["id"] == id) return true;
  return false;
}

}  // namespace

TEST_CASE("pause: out of Slurm first, then the storage; resume: the other way round", "[plan]") {
  PlannerInput in = with_shipped("storage-shared");
  const Plan plan = planned(in);
  const Json pause = steps_of(plan, "node02/pause"), resume = steps_of(plan, "node02/resume");
  REQUIRE(pause.size() == 2);
  CHECK(pause[0]["module"] == "slurm_node");
  CHECK(pause[0]["params"] == Json{{"node", "node02"},
                                   {"state", "drain"},
                                   {"reason", "muster reimage"},
                                   {"only_reason", ""},
                                   {"deadline_seconds", 24 * 3600}});
  CHECK(pause[1]["module"] == "moosefs_maintenance");
  CHECK(pause[1]["params"]["state"] == "on");
  CHECK(pause[1]["params"]["address"] == in.spec.node("node02")->address);
  CHECK(pause[1]["params"]["master"] == in.spec.node("node01")->address);
  REQUIRE(resume.size() == 2);
  CHECK(resume[0]["module"] == "moosefs_maintenance");
  CHECK(resume[0]["params"]["state"] == "off");
  CHECK(resume[1]["module"] == "slurm_node");
  CHECK(resume[1]["params"]["state"] == "resume");
  // What an operator or the health check ("muster health: ...") took out stays out.
  CHECK(resume[1]["params"]["only_reason"] == pause[0]["params"]["reason"]);
  CHECK(steps_of(plan, "node02/resume-old") == resume);
  CHECK(!has_note(plan, "Slurm's controller"));
}

TEST_CASE("pause: only a drain of its own counts for a rollout", "[plan][batch]") {
  PlannerInput in = with_shipped("storage-shared");
  in.request.batch = BatchTerms{{}, kMinute, 60 * kMinute, 0};
  const Plan plan = planned(in);
  const Json pause = steps_of(plan, "node02/pause")[0];
  REQUIRE(pause["module"] == "slurm_node");
  CHECK(pause["params"]["only_reason"] == pause["params"]["reason"]);
  CHECK(steps_of(plan, "node02/boot")[0] == pause);  // looked at again in the order to reboot
}

TEST_CASE("pause: no job comes to a node that is not accepted yet, and `up` gives one back", "[plan]") {
  PlannerInput in = with_shipped("storage-shared");
  CHECK(!has_step(planned(in), "node02", "scheduler/given back"));
  in.request = {RequestKind::up, {"node02"}};
  CHECK(has_step(planned(in), "node02", "scheduler/given back"));
  // The leader does not wait for the others to take jobs while this plan keeps them from it.
  for (auto& s : in.spec.storage)
    if (s.name == "shared") s.copies = 3;
  in.request = {RequestKind::reimage, {"node01", "node02"}, {"node01"}};
  const Plan both = planned(in);
  for (const Json& s : steps_of(both, "node01/scheduler-5")) CHECK(s["module"] == "not_applicable");
  CHECK(has_note(both, "node01 runs Slurm's controller"));
}

TEST_CASE("pause: a plan says that the new image's Slurm does not read the leader's data", "[plan]") {
  PlannerInput in = with_shipped("storage-shared");
  for (auto& s : in.spec.storage)
    if (s.name == "shared") s.copies = 3;
  in.request = {RequestKind::reimage, {"node01", "node02"}, {"node01"}};
  struct Sample {
    const char *before, *image;
    bool noted;
  };
  const auto& [before, image, noted] =
      GENERATE(Sample{"22.05.8-4+deb12u3", "24.11.5-4", true}, Sample{"24.11.5-4", "22.05.8-4+deb12u3", true},
               Sample{"24.11.5-4", "24.11.5-5", false}, Sample{"23.02.1-1", "24.11.5-4", false},
               Sample{"", "24.11.5-4", false}, Sample{"22.05.8-4+deb12u3", "", false});
  in.nodes["node01"].slurm = before;
  in.nodes["node02"].slurm = "22.05.8-4";  // the data is on the leader
  for (auto& [name, built] : in.images) built.slurm = image;
  CHECK(has_note(planned(in), "node01: its queue and accounting are of Slurm") == noted);
}

TEST_CASE("pause: what a run left of it in the storage is ended by `up`, where the agent can", "[plan]") {
  const bool ceph = GENERATE(false, true);
  PlannerInput in = ceph ? with_ceph() : with_shipped("storage-shared");
  in.playbooks["shared"].name = "shared";  // as the role names it
  const std::string ends = ceph ? "shared/stores count[shared]" : "shared/not in maintenance[shared]";
  CHECK(!has_step(planned(in), "node02", ends));  // it is taken from its work, and is not to come back yet
  in.request = {RequestKind::up, {"node02"}};
  CHECK(has_step(planned(in), "node02", ends));
  // Its agent would refuse the whole order. Reinstalled, it has another one.
  in.nodes["node02"].facts->boot = {};
  CHECK(!has_step(planned(in), "node02", ends));
  in.request = {RequestKind::reimage, {"node02"}, {"node02"}};  // not paused, as forced
  CHECK(has_step(planned(in), "node02", ends));
}

TEST_CASE("pause: no all-reduce runs through Slurm meanwhile, for the reason that there is", "[plan]") {
  PlannerInput in = with_shipped("storage-shared");
  for (auto& s : in.spec.storage)
    if (s.name == "shared") s.copies = 3;
  in.request = {RequestKind::reimage, {"node01", "node02"}, {"node01"}};
  std::string why = "no node has the playbook mpi as well";
  SECTION("no node could run it") {}
  SECTION("nodes of the plan take no jobs") {
    in.playbooks["mpi"] = {"mpi", "", {step("open mpi", "node", Json::object())}};
    in.spec.roles["cpu"].push_back("mpi");
    why = "nodes of this plan stay drained until they are accepted";
  }
  std::vector<std::string> reasons;
  const Plan plan = planned(in);
  for (const auto& a : plan.actions)
    for (const Json& s : a.params.value("steps", Json::array()))
      if (s["id"] == "scheduler/all-reduce through srun") reasons.push_back(s["params"].value("reason", ""));
  CHECK(reasons == std::vector<std::string>{why});
}

TEST_CASE("pause: Ceph copies nothing of a node that is away for a while", "[plan]") {
  const Plan plan = planned(with_ceph());
  CHECK(steps_of(plan, "node02/pause")[1]["module"] == "ceph_noout");
  CHECK(steps_of(plan, "node02/pause")[1]["params"] == Json{{"node", "node02"}, {"state", "set"}});
  CHECK(steps_of(plan, "node02/resume")[0]["params"]["state"] == "unset");
  CHECK(steps_of(plan, "node02/pause").size() == 2);  // nothing is emptied
}
