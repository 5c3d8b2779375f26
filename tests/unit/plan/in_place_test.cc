// A node re-imaged in place: when, in which order, and what is done where it fails.
#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include "controller/engines/ceph_engine.h"
#include "controller/plan/lint.h"
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

PlannerInput reimage(std::vector<std::string> nodes) {
  PlannerInput in = at_work();
  in.request = {RequestKind::reimage, std::move(nodes)};
  return in;
}

StorageSpec& shared(PlannerInput& in) {
  for (auto& s : in.spec.storage)
    if (s.name == "shared") return s;
  throw std::logic_error("the fixture has no storage 'shared'");
}

NodeSpec& node_of(PlannerInput& in, const std::string& name) {
  for (auto& n : in.spec.nodes)
    if (n.name == name) return n;
  throw std::logic_error("the fixture has no such node");
}

bool in_place(const Plan& plan, const std::string& node) { return plan.find(node + "/write") != nullptr; }

}  // namespace

TEST_CASE("in place: written beside its jobs, booted once, committed last", "[plan]") {
  const Plan plan = planned(reimage({"node02"}));
  CHECK(plan.kind == PlanKind::reimage);
  CHECK(plan.destroys.empty());
  CHECK(ids_of(plan, "node02", false) ==
        std::vector<std::string>{"write", "boot", "configure", "shared-2", "look", "accept", "commit"});
  CHECK(ids_of(plan, "node02", true) == std::vector<std::string>{"return", "look-old"});
  CHECK(lint_plan(plan).empty());

  const auto job = wire::slot_job_from_json(plan.find("node02/write")->params.json());
  REQUIRE(job.ok());
  CHECK(job->slot == "b");
  CHECK(job->image.allow_ours);
  CHECK(job->image.content_hash.empty());
  CHECK(job->image.digest == "sha256:cpu");
  CHECK(job->image.hostname == "node02");
  CHECK(job->programs.size() == 1);
  CHECK(job->bytes_per_second == 0);
  const Action& boot = *plan.find("node02/boot");
  const auto once = wire::boot_slot_job_from_json(boot.params.json());
  REQUIRE(once.ok());
  CHECK(once->slot == "b");
  CHECK(once->digest == "sha256:cpu");
  CHECK(once->trial == 120 * kMinute);
  CHECK(boot.kind == ActionKind::boot_slot);
  CHECK(boot.max_attempts == 1);
  CHECK(boot.timeout == 40 * kMinute);  // less than the trial of those that wait for it
  CHECK(boot.behind == -1);
  const Json& commit = plan.find("node02/commit")->params["steps"];
  REQUIRE(commit.size() == 1);
  CHECK(commit[0]["module"] == "slot");
  CHECK(commit[0]["params"] == Json{{"slot", "b"}, {"digest", "sha256:cpu"}});
  const Action& back = *plan.find("node02/return");
  CHECK(back.kind == ActionKind::return_slot);
  CHECK(back.params == Json{{"slot", "a"}, {"digest", "sha256:cpu"}, {"state", "accepted"}});
  CHECK(back.after.empty());
  CHECK(has_note(plan, "node02 is re-imaged in place"));
  CHECK(plan_from_json(to_json(plan)).ok());
}

TEST_CASE("in place: what goes back is what the node was", "[plan]") {
  PlannerInput in = reimage({"node02"});
  in.nodes["node02"].state = NodeState::degraded;
  auto& boot = in.nodes["node02"].facts->boot;
  boot.running = boot.standing = "b";
  std::swap(boot.slots["a"], boot.slots["b"]);
  const Plan plan = planned(in);
  CHECK(plan.find("node02/write")->params["slot"] == "a");
  CHECK(plan.find("node02/return")->params ==
        Json{{"slot", "b"}, {"digest", "sha256:cpu"}, {"state", "degraded"}});
}

TEST_CASE("in place: everything else goes through the RAM system, and the plan says why", "[plan]") {
  PlannerInput in = reimage({"node02"});
  NodeObservation& seen = in.nodes["node02"];
  BootFacts& boot = seen.facts->boot;
  SECTION("as requested") { in.request.through_ram = true; }
  SECTION("an agent that does not say where it runs") { boot = {}; }
  SECTION("no variable of the firmware") { boot.no_trial = "the firmware has no variable for it"; }
  SECTION("an image without a trial") { in.images["cpu"].trial = false; }
  SECTION("no agent to put beside it") { in.programs.clear(); }
  SECTION("never accepted") { seen.state = NodeState::discovered; }
  SECTION("quarantined") { seen.state = NodeState::quarantined; }
  SECTION("drained") { seen.state = NodeState::drained; }
  SECTION("not online") { seen.online = false; }
  SECTION("in the RAM system") { seen.mode = wire::Mode::ram; }
  SECTION("of a database that was put back") { seen.doubtful = true; }
  SECTION("another address") { boot.slots["a"].address = "10.20.0.99/24"; }
  SECTION("another prefix") { boot.slots["a"].address = in.spec.node("node02")->address + "/16"; }
  SECTION("runs what no slot is noted to hold") { seen.image_digest = "sha256:by-hand"; }
  SECTION("runs a slot that does not stand") {
    fill_other_slot(in, "node02");
    seen.image_digest = "sha256:before";
  }
  SECTION("the OS disk is not ours") {
    seen.facts->disks[0].partitions.pop_back();
    for (auto& n : in.spec.nodes) n.disks["os"].policy = DiskPolicy::format;
  }
  SECTION("a data disk is formatted") { seen.facts->disks[3] = disk("BULKnew", 2ull << 30); }
  SECTION("a machine of another UUID, forced") {
    seen.product_uuid = "uuid-of-before";
    in.request.force = {"node02"};
  }
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  REQUIRE(made->refusals.empty());
  CHECK(!in_place(made->plan, "node02"));
  CHECK(made->plan.find("node02/image"));
  CHECK(!made->plan.find("node02/commit"));
  CHECK(ids_of(made->plan, "node02", true).empty());
  CHECK(has_note(made->plan, "node02 is re-imaged through the RAM system: "));
}

TEST_CASE("in place: the machine that the controller runs on and adopted ones are refused as ever",
          "[plan]") {
  PlannerInput in = reimage({"node02"});
  SECTION("own") {
    in.own.addresses.insert(in.spec.node("node02")->address);
    CHECK(refusals_of(in) == std::set<std::string>{"own-machine"});
  }
  SECTION("adopted") {
    node_of(in, "node02").adopt.host = "10.20.0.12";
    CHECK(refusals_of(in) == std::set<std::string>{"adopted-node"});
  }
}

TEST_CASE("in place: a look from before the commit, and one from before the way back, do not mislead",
          "[plan]") {
  PlannerInput in = reimage({"node02"});
  fill_other_slot(in, "node02");
  NodeObservation& seen = in.nodes["node02"];
  seen.facts->boot.running = "b";  // looked at in its trial; slot a stood
  SECTION("committed since: it runs what it ran when it was looked at") {
    seen.image_digest = "sha256:before";
    const Plan plan = planned(in);
    CHECK(plan.find("node02/write")->params["slot"] == "a");
    CHECK(plan.find("node02/return")->params["slot"] == "b");
    CHECK(plan.find("node02/return")->params["digest"] == "sha256:before");
  }
  SECTION("gone back since") {
    const Plan plan = planned(in);
    CHECK(plan.find("node02/write")->params["slot"] == "b");
    CHECK(plan.find("node02/return")->params["slot"] == "a");
  }
}

TEST_CASE("in place: nothing is measured while any node's image is written", "[plan]") {
  PlannerInput in = reimage({"node01", "node02", "node03"});
  in.request.force = {"node01", "node02", "node03"};
  SECTION("all in place") {}
  SECTION("one through the RAM system") { in.nodes["node03"].facts->boot = {}; }
  SECTION("with pauses") {
    add_pauses(in);
    shared(in).copies = 3;
    in.request = {RequestKind::reimage, {"node02", "node03"}};  // forced ones have none
  }
  const Plan plan = planned(in);
  std::set<std::string> writes, slow;
  for (const auto& a : plan.actions) {
    if (a.kind == ActionKind::write_slot) writes.insert(a.id);
    if (a.kind == ActionKind::write_slot || a.phase == "pause" || a.kind == ActionKind::boot_disk)
      slow.insert(a.id);
  }
  REQUIRE(writes.size() >= 2);
  for (const auto& a : plan.actions) {
    const auto before = all_before(plan, a.id);
    if (a.kind == ActionKind::check)
      CHECK(std::includes(before.begin(), before.end(), writes.begin(), writes.end()));
    // A trial has an end: it waits for no jobs and no firmware of another node.
    if (a.kind == ActionKind::boot_slot)
      CHECK(std::includes(before.begin(), before.end(), slow.begin(), slow.end()));
  }
  CHECK(lint_plan(plan).empty());
}

TEST_CASE("in place: taken from its work before, and given back to it in whichever system it ends",
          "[plan]") {
  PlannerInput in = reimage({"node02"});
  add_pauses(in);
  in.spec.limits.drain_timeout = 3 * 60 * kMinute;
  const Plan plan = planned(in);
  CHECK(ids_of(plan, "node02", false) == std::vector<std::string>{"write", "pause", "boot", "configure",
                                                                  "shared-2", "look", "accept", "commit",
                                                                  "resume"});
  CHECK(ids_of(plan, "node02", true) == std::vector<std::string>{"return", "resume-old", "look-old"});
  const Action& pause = *plan.find("node02/pause");
  CHECK(pause.phase == "pause");
  CHECK(pause.max_attempts == 1);
  CHECK(pause.timeout >= 3 * 60 * kMinute);
  REQUIRE(pause.params["steps"].size() == 2);
  CHECK(pause.params["steps"][0]["id"] == "shared/pause");
  CHECK(pause.params["steps"][0]["params"]["deadline_seconds"] == 3 * 3600);
  CHECK(plan.find("node02/resume")->params["steps"][0]["id"] == "base/resume");
  CHECK(plan.find("node02/resume-old")->params == plan.find("node02/resume")->params);
  // What it is given back to may restart as well: a minute of it takes no good system out.
  for (const char* id : {"node02/resume", "node02/resume-old"}) CHECK(plan.find(id)->max_attempts == 60);
  // The same for one that goes through the RAM system, which can stay while its jobs are waited for.
  in.request.through_ram = true;
  const Plan ram = planned(in);
  CHECK(ids_of(ram, "node02", false) == std::vector<std::string>{"pause", "netboot", "image", "boot",
                                                                 "configure", "shared-2", "look", "accept",
                                                                 "resume"});
  CHECK(ids_of(ram, "node02", true) == std::vector<std::string>{"return", "resume-old", "look-old"});
  // One that has no work is not taken from it.
  in.nodes["node02"].state = NodeState::drained;
  CHECK(!planned(in).find("node02/pause"));
}

TEST_CASE("in place: steps know who is away, and the digest of the configuration does not", "[plan]") {
  PlannerInput in = reimage({"node02"});
  const std::string digest = planned(in).config_digests.at("node02");
  PlaybookStep given = step("given back", "node", {{"x", "y"}});
  given.when = "{{^paused}}yes{{/paused}}";
  in.playbooks["base"].steps.push_back(given);
  const auto configured = [](const Plan& plan) {
    return plan.find("node02/configure")->params["steps"].size();
  };
  const Plan plan = planned(in);
  in.request = {RequestKind::up, {"node02"}, {"node02"}};
  const Plan applied = planned(in);
  CHECK(configured(applied) == configured(plan) + 1);
  CHECK(applied.config_digests.at("node02") == plan.config_digests.at("node02"));
  CHECK(plan.config_digests.at("node02") != digest);
}

TEST_CASE("in place: a trial that is shorter than the last acceptance is refused", "[plan]") {
  PlannerInput in = reimage({"node02"});
  in.nodes["node02"].accept_took = 2 * 60 * kMinute;
  CHECK(refusals_of(in).empty());
  in.nodes["node02"].accept_took += 1;
  CHECK(refusals_of(in) == std::set<std::string>{"trial-short"});
  in.request.through_ram = true;  // no trial
  CHECK(refusals_of(in).empty());
}

TEST_CASE("in place: the plan names what ends a hang", "[plan]") {
  PlannerInput in = reimage({"node02"});
  const auto title = [&] { return planned(in).find("node02/boot")->title; };
  CHECK(title().find("BMC") != std::string::npos);
  for (const std::string driver : {"manual", "ssh"}) {
    node_of(in, "node02").power.driver = driver;
    CHECK(title().find("an operator has to") != std::string::npos);
    CHECK(title().find("BMC") == std::string::npos);
  }
  node_of(in, "node02").power.driver = "sakura-phy";
  CHECK(title().find("provider") != std::string::npos);
}

TEST_CASE("in place: a slow write has the time it needs", "[plan]") {
  PlannerInput in = reimage({"node02"});
  CHECK(planned(in).find("node02/write")->timeout == 45 * kMinute);
  in.spec.limits.image_write_rate = 1'000'000;  // 16 GiB take almost five hours
  const Plan plan = planned(in);
  const Action& write = *plan.find("node02/write");
  CHECK(write.timeout >= 2 * 17'179 * kSecond);
  CHECK(write.params["bytes_per_second"] == 1'000'000);
}

TEST_CASE("in place: a new machine without a system is installed as ever, and nothing is said about ways",
          "[plan]") {
  PlannerInput in = at_work();
  in.nodes["node02"] = seen_in_ram("node02");
  in.request.reimage = true;
  const Plan plan = planned(in);
  CHECK(plan.find("node02/image"));
  CHECK(!has_note(plan, "is re-imaged through the RAM system"));
}

TEST_CASE("in place: a storage section that cannot miss the node refuses it, unless forced by name",
          "[plan]") {
  PlannerInput in = reimage({"node01"});
  const auto forced = [&] {
    in.request.force = {in.request.nodes.begin(), in.request.nodes.end()};
    return refusals_of(in);
  };
  SECTION("its only master") {}
  SECTION("its only master, through the RAM system") { in.request.through_ram = true; }
  SECTION("more at once than there are copies to spare") { in.request.nodes = {"node02", "node03"}; }
  SECTION("another one is away already") {
    in.request.nodes = {"node02"};
    in.nodes["node03"].online = false;
  }
  SECTION("one copy of everything") {
    in.request.nodes = {"node02"};
    shared(in).copies = 1;
  }
  CHECK(refusals_of(in) == std::set<std::string>{"storage-needed"});
  CHECK(forced().empty());
  CHECK(has_note(planned(in), "because of --force"));
}

TEST_CASE("in place: a section misses what its copies and its quorum allow", "[plan]") {
  PlannerInput in = reimage({"node02"});
  CHECK(refusals_of(in).empty());
  shared(in).copies = 3;
  in.request.nodes = {"node02", "node03"};
  CHECK(refusals_of(in).empty());
  shared(in).engine = "ceph";
  for (auto& [name, seen] : in.nodes) {
    DiskFacts& bulk = seen.facts->disks[3];
    bulk.signatures = {"ceph_bluestore uuid=" + ceph_osd_uuid(ceph_fsid("gaggle", "shared"), bulk.serial)};
  }
  CHECK(refusals_of(in) == std::set<std::string>{"storage-needed"});
  in.request.nodes = {"node01"};  // no monitor is special
  CHECK(refusals_of(in).empty());
}

TEST_CASE("in place: what a section can miss is said by its engine, not by the copies alone", "[plan]") {
  PlannerInput in = five_at_work();
  in.request = {RequestKind::reimage, {"node04", "node05"}};
  shared(in).copies = 3;
  CHECK(refusals_of(in).empty());  // MooseFS serves from the last copy
  shared(in).engine = "ceph";      // which stops below two of three; none of these two is a monitor
  for (auto& [name, seen] : in.nodes) {
    DiskFacts& bulk = seen.facts->disks[3];
    bulk.signatures = {"ceph_bluestore uuid=" + ceph_osd_uuid(ceph_fsid("gaggle", "shared"), bulk.serial)};
  }
  CHECK(refusals_of(in) == std::set<std::string>{"storage-needed"});
  in.request.nodes = {"node04"};
  CHECK(refusals_of(in).empty());
  SECTION("another one is away") { in.nodes["node05"].online = false; }
  SECTION("another one is quarantined, serves, and leaves as well") {
    in.nodes["node05"].state = NodeState::quarantined;
    in.request.nodes = {"node04", "node05"};
  }
  SECTION("another one is about to go back from its trial") { in.nodes["node05"].on_trial = true; }
  CHECK(refusals_of(in) == std::set<std::string>{"storage-needed"});
  shared(in).copies = 4;  // two of four are enough
  CHECK(refusals_of(in).empty());
}

TEST_CASE("in place: a machine of another UUID is installed as forced, and the plan says so", "[plan]") {
  PlannerInput in = reimage({"node02"});
  in.nodes["node02"].product_uuid = "uuid-of-before";
  CHECK(refusals_of(in) == std::set<std::string>{"node-swapped"});
  in.request.force = {"node02"};
  CHECK(has_note(planned(in), "although a different machine now has"));
}

TEST_CASE("in place: the commit outlives a boot", "[plan]") {
  PlannerInput in = reimage({"node02"});
  in.spec.limits.boot = 30 * kMinute;
  CHECK(planned(in).find("node02/commit")->timeout >= 35 * kMinute);
}

TEST_CASE("in place: lint sees what must not be", "[plan]") {
  const Plan good = planned(reimage({"node02"}));
  const auto changed = [&](const std::function<void(Plan&)>& change) {
    Plan bad = good;
    change(bad);
    return !lint_plan(bad).empty();
  };
  const auto action = [](Plan& plan, const std::string& id) -> Action& {
    return *std::find_if(plan.actions.begin(), plan.actions.end(),
                         [&](const Action& a) { return a.id == id; });
  };
  CHECK(lint_plan(good).empty());
  CHECK(changed([&](Plan& p) { action(p, "node02/commit").after.push_back({"node02/return", true}); }));
  CHECK(changed([&](Plan& p) { action(p, "node02/return").after.push_back({"node02/commit", true}); }));
  CHECK(changed([&](Plan& p) { action(p, "node02/return").when_failed = false; }));
  CHECK(changed([&](Plan& p) { action(p, "node02/accept").when_failed = true; }));
  CHECK(changed([&](Plan& p) { action(p, "node02/boot").max_attempts = 2; }));
  CHECK(changed([&](Plan& p) {
    change_params(action(p, "node02/write"), [](Json& params) { params["image"]["allow_ours"] = false; });
  }));
  CHECK(changed([&](Plan& p) { p.barriers.push_back({"node02/return"}); }));
  CHECK(changed([&](Plan& p) { action(p, "node02/look-old").behind = 0; }));
  CHECK(changed([&](Plan& p) { std::swap(p.actions.front(), p.actions.back()); }));
}
