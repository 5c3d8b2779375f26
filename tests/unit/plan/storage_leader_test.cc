// What a plan does when the data of a shared file system is there and its metadata may not be: the leader's
// machine lost its disk, or the spec names another one first. And that a first bring-up which was interrupted
// anywhere goes on by itself.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "controller/engines/ceph_engine.h"
#include "controller/plan/disk_selection.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

PlannerInput with_engine(const std::string& engine, NodeObservation (*make)(const std::string&)) {
  PlannerInput in = with_nodes(make);
  in.spec.storage.back().engine = engine;
  PlaybookStep begin = step("begin", "cluster", {{"may_create", "{{item.may_create}}"}}, 1, "leader");
  begin.for_each = "storage_" + engine;
  PlaybookStep copy = step("copy", "cluster", {{"of", "{{item.leader.address}}"}}, 2, "others");
  copy.for_each = begin.for_each;
  in.playbooks["shared"].steps = {begin, copy};
  if (engine == "ceph")
    for (auto& [name, seen] : in.nodes)
      if (DiskFacts& bulk = seen.facts->disks[3]; !bulk.blank)
        bulk.signatures = {"ceph_bluestore uuid=" +
                           ceph_osd_uuid(ceph_fsid("gaggle", "shared"), bulk.serial)};
  return in;
}

std::vector<Refusal> refusals(const PlannerInput& in) {
  auto made = make_plan(in);
  REQUIRE(made.ok());
  return made->refusals;
}
std::string refused(const PlannerInput& in) {
  const auto all = refusals(in);
  return all.empty() ? "nothing" : all[0].node + " " + all[0].rule;
}

bool creates(const PlannerInput& in, const std::string& node = "node01") {
  const Plan plan = planned(in);
  const Action* action = plan.find(node + "/shared-1");
  REQUIRE(action != nullptr);
  return action->params["steps"][0]["params"]["may_create"].get<bool>();
}

// Its operating system's disk was replaced; it was looked at from the RAM system.
void new_os_disk(PlannerInput& in, const std::string& node) {
  NodeObservation fresh = seen_in_ram(node);
  for (size_t i = 1; i < fresh.facts->disks.size(); ++i)
    fresh.facts->disks[i] = in.nodes[node].facts->disks[i], fresh.facts->disks[i].mounted = false;
  fresh.image_digest = in.nodes[node].image_digest;  // it ran one of this controller's
  fresh.product_uuid = in.nodes[node].product_uuid;
  in.nodes[node] = fresh;
}
void remove_first(PlannerInput& in) {
  in.nodes.erase(in.spec.nodes.front().name);
  in.spec.nodes.erase(in.spec.nodes.begin());
}

// With the shipped playbook: node01 is the master, and the spec says that node02 is to be.
PlannerInput from_node01_to_node02() {
  std::ifstream file(source_dir() + "/playbooks/storage-shared.yaml");
  const auto parsed = parse_playbook({std::istreambuf_iterator<char>(file), {}});
  REQUIRE(parsed.errors.empty());
  PlannerInput in = with_nodes(installed);
  for (auto& [name, seen] : in.nodes) seen.facts->storage_metadata["moosefs"] = name == "node01";
  in.playbooks["storage-shared"] = parsed.playbook;
  in.spec.roles["cpu"] = {"base", "storage", "storage-shared"};
  in.spec.storage.back().server = "node02";
  return in;
}

}  // namespace

TEST_CASE(
    "metadata is begun where no member's disk holds data, and the digest of a configuration does not depend "
    "on that",
    "[plan]") {
  for (const std::string engine : {"moosefs", "ceph"}) {
    INFO(engine);
    PlannerInput in = with_engine(engine, seen_in_ram);
    CHECK(creates(in));
    const auto before = planned(in).config_digests;
    // Another member's disk alone says it, whatever became of the leader's.
    in.nodes["node03"].facts->disks[3] = with_engine(engine, installed).nodes["node03"].facts->disks[3];
    in.nodes["node03"].facts->disks[3].mounted = false;
    in.request = {RequestKind::up, {"node01"}};
    CHECK_FALSE(creates(in));
    CHECK(planned(in).config_digests.at("node01") == before.at("node01"));
    // So does what was seen of it last, though an image was written since and its disks are to be looked at
    // again.
    in.nodes["node03"].machine = in.nodes["node03"].facts;
    in.nodes["node03"].facts.reset();
    CHECK_FALSE(creates(in));
  }
}

TEST_CASE("a leader with a new system disk is only installed by name, and begins nothing", "[plan]") {
  PlannerInput in = with_engine("moosefs", installed);
  new_os_disk(in, "node01");
  const auto all = refusals(in);
  REQUIRE(all.size() == 1);
  CHECK(all[0].node == "node01");
  CHECK(all[0].rule == "storage-leader");
  CHECK(all[0].message.find("node01, node02, node03 hold data") != std::string::npos);
  CHECK(all[0].message.find("muster up --limit node01") != std::string::npos);
  for (const RequestKind kind : {RequestKind::up, RequestKind::reimage, RequestKind::admit}) {
    in.request = {kind, {"node01"}};
    CHECK_FALSE(creates(in));
    const Plan plan = planned(in);
    CHECK(std::any_of(plan.notes.begin(), plan.notes.end(), [](const std::string& n) {
      return n.find("will not start with empty metadata") != std::string::npos;
    }));
  }
}

TEST_CASE("another node in the leader's place is refused while it has data and no metadata", "[plan]") {
  PlannerInput in = with_engine("moosefs", installed);
  for (auto& [name, seen] : in.nodes) seen.facts->storage_metadata["moosefs"] = name == "node01";
  CHECK(refused(in) == "nothing");
  remove_first(in);
  CHECK(refused(in) == "node02 storage-leader");
  SECTION("one that sorts first and is new") {
    in = with_engine("moosefs", installed);
    in.nodes["node01"] = seen_in_ram("node01");
    CHECK(refused(in) == "node01 storage-leader");
  }
  SECTION("one that got a copy of the metadata leads") {
    in.nodes["node02"].facts->storage_metadata["moosefs"] = true;
    CHECK(refused(in) == "nothing");
    CHECK_FALSE(creates(in, "node02"));
  }
  SECTION("named, it reports what it has by now") {
    in.request = {RequestKind::up, {"node02"}};
    CHECK_FALSE(creates(in, "node02"));
  }
  SECTION("measuring begins nothing") {
    in.request = {RequestKind::accept, {}};
    CHECK(refused(in) == "nothing");
  }
}

TEST_CASE("what was seen before a first bring-up was interrupted refuses nothing", "[plan]") {
  // The section was added to running nodes. The leader's disk was blank when it was looked at, and it had no
  // metadata yet.
  PlannerInput in = with_engine("moosefs", installed);
  for (auto& [name, seen] : in.nodes) seen.facts->storage_metadata["moosefs"] = false;
  in.nodes["node01"].facts->disks[3] = seen_in_ram("node01").facts->disks[3];
  CHECK(refused(in) == "nothing");
  CHECK_FALSE(creates(in));  // the leader's agent finds what it made
}

TEST_CASE("a leader re-imaged with its state goes on", "[plan]") {
  for (const std::string engine : {"moosefs", "ceph"}) {
    PlannerInput in = with_engine(engine, installed);
    in.nodes["node01"].mode = wire::Mode::ram;
    in.nodes["node01"].facts->disks[0].mounted = in.nodes["node01"].facts->disks[0].is_os_ancestor = false;
    CHECK(refused(in) == "nothing");
    CHECK_FALSE(creates(in));
  }
}

TEST_CASE("ceph: of two nodes the only monitor is not created again elsewhere, of three any may join",
          "[plan]") {
  PlannerInput in = with_engine("ceph", installed);
  new_os_disk(in, "node01");
  CHECK(refused(in) == "nothing");
  CHECK_FALSE(creates(in));
  in = with_engine("ceph", installed);
  for (auto& [name, seen] : in.nodes) seen.facts->storage_metadata["ceph"] = false;
  remove_first(in);
  CHECK(refused(in) == "node02 storage-leader");
  in.nodes["node02"].facts->storage_metadata["ceph"] = true;
  CHECK(refused(in) == "nothing");
}

TEST_CASE("the leader of a storage section is its first member, whichever node leads the cluster", "[plan]") {
  PlannerInput in = with_engine("moosefs", seen_in_ram);
  in.spec.nodes[0].disks.erase("bulk");
  const Plan plan = planned(in);
  CHECK(plan.find("node01/shared-1") == nullptr);
  CHECK(plan.find("node02/shared-1") != nullptr);
  CHECK(plan.find("node02/shared-2") == nullptr);
  for (const char* other : {"node01/shared-2", "node03/shared-2"}) {
    const Action* action = plan.find(other);
    REQUIRE(action != nullptr);
    CHECK(action->params["steps"][0]["params"]["of"] == in.spec.nodes[1].address);
    CHECK(std::any_of(action->after.begin(), action->after.end(),
                      [](const Dependency& d) { return d.action == "node02/shared-1" && d.hard; }));
  }
}

// What may_create rests on: a disk with a label says that there was metadata.
TEST_CASE("the shipped playbook gives no disk a label before a master answers", "[plan]") {
  std::ifstream file(source_dir() + "/playbooks/storage-shared.yaml");
  const auto parsed = parse_playbook({std::istreambuf_iterator<char>(file), {}});
  REQUIRE(parsed.errors.empty());
  PlannerInput in = with_nodes(seen_in_ram);
  in.playbooks["storage-shared"] = parsed.playbook;
  in.spec.roles["cpu"] = {"base", "storage", "storage-shared"};
  const Plan plan = planned(in);
  size_t formats = 0;
  for (const auto& action : plan.actions) {
    bool answered = false;
    for (const auto& one : action.params.value("steps", Json::array())) {
      answered = answered || (one["module"] == "wait_for" && one["params"].value("port", 0) == 9421);
      if (one["module"] != "moosefs_disks") continue;
      ++formats;
      CHECK(answered);
      CHECK(action.params["stop_on_failure"] == true);
      const auto master = [](const Dependency& d) { return d.action == "node01/storage-shared-3" && d.hard; };
      CHECK((action.node == "node01" || std::any_of(action.after.begin(), action.after.end(), master)));
    }
  }
  CHECK(formats == 3);
  const Action* master = plan.find("node01/storage-shared-3");
  REQUIRE(master != nullptr);
  CHECK(master->params["steps"][0]["module"] == "moosefs_master");
  // Who may mount: every other declared node, by its address.
  const Json step = master->params["steps"][0]["params"];
  CHECK(step["address"] == in.spec.nodes[0].address);
  REQUIRE(step["clients"].size() == in.spec.nodes.size() - 1);
  for (size_t i = 1; i < in.spec.nodes.size(); ++i)
    CHECK(step["clients"][i - 1]["address"] == in.spec.nodes[i].address);
  CHECK(step["members"].size() == in.spec.nodes.size());
}

TEST_CASE("a node that is new to a shared file system is let in by its server, to which nothing else happens",
          "[plan]") {
  std::ifstream file(source_dir() + "/playbooks/storage-shared.yaml");
  const auto parsed = parse_playbook({std::istreambuf_iterator<char>(file), {}});
  PlannerInput in = with_nodes(seen_in_ram);
  in.playbooks["storage-shared"] = parsed.playbook;
  in.spec.roles["cpu"] = {"base", "storage", "storage-shared"};
  in.request.nodes = {"node03"};
  NodeObservation& server = in.nodes["node01"];
  server.mode = wire::Mode::installed;
  server.image_digest = in.images["cpu"].digest;
  server.state = NodeState::accepted;
  server.config_digest = "of before";
  const Plan plan = planned(in);
  CHECK(plan.serving == std::vector<std::string>{"node01"});
  CHECK(plan.nodes == std::vector<std::string>{"node01", "node03"});
  CHECK(plan.config_digests.at("node01") == "of before");  // what else changed there is still to be done
  std::vector<const Action*> there;
  for (const auto& action : plan.actions)
    if (action.node == "node01") there.push_back(&action);
  REQUIRE(there.size() == 1);
  REQUIRE(there[0]->params["steps"].size() == 1);
  CHECK(there[0]->params["steps"][0]["module"] == "moosefs_master");
  for (const auto& d : plan.destroys) CHECK(d.node == "node03");
  CHECK(plan_from_json(to_json(plan))->serving == plan.serving);
  // Configured like this already: it is left in peace.
  in.request.nodes = {};
  const Plan all = planned(in);
  in.request.nodes = {"node03"};
  in.nodes["node01"].config_digest = all.config_digests.at("node01");
  CHECK(planned(in).nodes == std::vector<std::string>{"node03"});
  in.nodes["node01"].online = false;
  in.nodes["node01"].config_digest = "of before";
  CHECK(planned(in).nodes == std::vector<std::string>{"node03"});
}

TEST_CASE("the declared server leads, and may take over where a node merely first by name may not",
          "[plan][takeover]") {
  PlannerInput in = with_engine("moosefs", installed);
  for (auto& [name, seen] : in.nodes) seen.facts->storage_metadata["moosefs"] = name == "node01";
  in.spec.storage.back().server = "node02";
  REQUIRE(refused(in) == "nothing");
  const Plan plan = planned(in);
  CHECK(plan.find("node02/shared-1") != nullptr);
  CHECK(plan.find("node01/shared-1") == nullptr);
  for (const char* other : {"node01/shared-2", "node03/shared-2"}) {
    REQUIRE(plan.find(other) != nullptr);
    CHECK(plan.find(other)->params["steps"][0]["params"]["of"] == in.spec.nodes[1].address);
  }
  CHECK_FALSE(creates(in, "node02"));
  // Its machine lost the disk the copy would be on: certain.
  new_os_disk(in, "node02");
  CHECK(refused(in) == "node02 storage-leader");
}

TEST_CASE("a master is not stopped by a plan in which its successor has no part", "[plan][takeover]") {
  PlannerInput in = with_engine("moosefs", installed);
  for (auto& [name, seen] : in.nodes) seen.facts->storage_metadata["moosefs"] = name == "node01";
  in.spec.storage.back().server = "node02";
  in.request.nodes = {"node01"};
  CHECK(refused(in) == "node01 storage-leader");
  in.request.nodes = {"node03"};
  CHECK(refused(in) == "nothing");
  // It is back after another one took over: that one is the master, and need not be in the plan.
  in.request.nodes = {"node01"};
  in.nodes["node02"].facts->storage_metadata["moosefs"] = true;
  in.nodes["node02"].state = GENERATE(NodeState::accepted, NodeState::degraded);
  CHECK(refused(in) == "nothing");
  in.nodes["node02"].online = false;
  CHECK(refused(in) == "node01 storage-leader");
  // It is the declared one that is back, released, with what it knew then: node01 leads meanwhile.
  in.nodes["node02"].online = true;
  in.nodes["node02"].state = NodeState::discovered;
  CHECK(refused(in) == "node01 storage-leader");
}

TEST_CASE("a master is not stopped by a plan in which its successor only lets others mount",
          "[plan][takeover]") {
  PlannerInput in = from_node01_to_node02();
  in.nodes["node02"].state = NodeState::accepted;
  in.nodes["node02"].config_digest = "of before";
  in.request.nodes = {"node01"};  // node02 comes along, without the look for metadata to begin with
  const auto all = refusals(in);
  REQUIRE(all.size() == 1);
  CHECK(all[0].node == "node01");
  CHECK(all[0].rule == "storage-leader");
  // It leads already: it only lets node01 in.
  in.nodes["node02"].facts->storage_metadata["moosefs"] = true;
  CHECK(refusals(in).empty());
  // A plan about both asks the new one first.
  in.nodes["node02"].facts->storage_metadata["moosefs"] = false;
  in.request.nodes = {"node01", "node02"};
  CHECK(refusals(in).empty());
}

TEST_CASE("consent to an older copy is named in the request, and in no digest", "[plan][takeover]") {
  PlannerInput in = with_engine("moosefs", installed);
  in.playbooks["shared"].steps[0].params["accept_old"] = "{{item.accept_old}}";
  in.spec.storage.back().server = "node02";
  const auto accepts = [&] {
    return planned(in).find("node02/shared-1")->params["steps"][0]["params"]["accept_old"].get<bool>();
  };
  CHECK_FALSE(accepts());
  const auto before = planned(in).config_digests;
  in.request.force = {"node02"};
  CHECK(accepts());
  CHECK(planned(in).config_digests == before);
}

TEST_CASE("a master gets who else was seen with a master's metadata, and no digest depends on that",
          "[plan][takeover]") {
  PlannerInput in = with_engine("moosefs", installed);
  in.playbooks["shared"].steps[0].params["others"] = "{{item.other_masters}}";
  in.spec.storage.back().server = "node01";
  const auto others = [&] {
    return planned(in).find("node01/shared-1")->params["steps"][0]["params"]["others"];
  };
  for (auto& [name, seen] : in.nodes) seen.facts->storage_metadata["moosefs"] = name == "node01";
  CHECK(others() == Json::array());  // after the whole cluster was off, too
  const auto before = planned(in).config_digests;
  // It died, and node02 took over; now it is back and declared again.
  in.nodes["node02"].facts->storage_metadata["moosefs"] = true;
  CHECK(others() == Json::array({"node02"}));
  CHECK(planned(in).config_digests == before);
  // That one is gone by now: what was last seen of it counts.
  in.nodes["node02"].online = false;
  in.nodes["node02"].machine = in.nodes["node02"].facts;
  in.request.nodes = {"node01"};
  CHECK(others() == Json::array({"node02"}));
}

TEST_CASE("the shipped playbook stops the former master behind the new one's look and before its start",
          "[plan][takeover]") {
  PlannerInput in = from_node01_to_node02();
  const Plan plan = planned(in);
  const auto module_of = [&](const std::string& id) -> std::string {
    const Action* action = plan.find(id);
    return action ? action->params["steps"][0]["module"].get<std::string>() : "";
  };
  const auto follows = [&](const std::string& id, const std::string& before) {
    const Action* action = plan.find(id);
    return action && std::any_of(action->after.begin(), action->after.end(),
                                 [&](const Dependency& d) { return d.action == before && d.hard; });
  };
  CHECK(module_of("node02/storage-shared-1") == "moosefs_heir");
  CHECK(module_of("node02/storage-shared-3") == "moosefs_master");
  for (const std::string node : {"node01", "node03"}) {
    CHECK(module_of(node + "/storage-shared-2") == "moosefs_retired");
    CHECK(follows(node + "/storage-shared-2", "node02/storage-shared-1"));
    CHECK(follows(node + "/storage-shared-4", "node02/storage-shared-3"));
  }
  // Behind all of them that take part; who fails to stop its master answers, and the new one does not begin.
  const Action* begins = plan.find("node02/storage-shared-3");
  REQUIRE(begins != nullptr);
  REQUIRE(begins->behind >= 0);
  const auto& before = plan.barriers[static_cast<size_t>(begins->behind)];
  for (const std::string node : {"node01", "node03"})
    CHECK(std::count(before.begin(), before.end(), node + "/storage-shared-2") == 1);
}
