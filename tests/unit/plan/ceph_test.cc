// What a plan says of the engines ceph and beegfs.
#include <algorithm>

#include "controller/engines/ceph_engine.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/lint.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

PlannerInput with_engine(const std::string& engine, NodeObservation (*make)(const std::string&)) {
  PlannerInput in = with_nodes(make);
  in.spec.storage.back().engine = engine;
  PlaybookStep one = step("one", "cluster", {{"disks", "{{item.disks}}"}, {"source", "{{item.source}}"}});
  one.for_each = "storage_" + engine;
  if (engine == "ceph")
    one.params.update({{"fsid", "{{item.fsid}}"},
                       {"mons", "{{item.mons}}"},
                       {"memory", "{{item.osd_memory}}"},
                       {"least", "{{item.min_copies}}"},
                       {"standbys", "{{item.standbys}}"}});
  in.playbooks["shared"].steps = {one, step("leaves", "drain", {{"node", "{{node.name}}"}})};
  return in;
}

std::string refused(const PlannerInput& in) {
  auto made = make_plan(in);
  if (!made.ok()) return "error: " + made.error().message;
  return made->refusals.empty() ? "nothing" : made->refusals[0].rule;
}

}  // namespace

TEST_CASE("ceph: monitors, names and memory come with the plan, and disks by name", "[plan]") {
  PlannerInput in = with_engine("ceph", seen_in_ram);
  for (auto& [name, seen] : in.nodes) seen.facts->memory_bytes = 6ull << 30;
  const Plan plan = planned(in);
  const Json params = plan.find("node02/shared-1")->params["steps"][0]["params"];
  const std::string fsid = ceph_fsid("gaggle", "shared");
  CHECK(params["fsid"] == fsid);
  CHECK(params["source"] == "muster@" + fsid + ".shared=/");
  CHECK(params["mons"].size() == 3);
  CHECK(params["memory"] == 1536 << 20);
  CHECK(params["least"] == 1);
  CHECK(params["standbys"] == 1);
  CHECK(params["disks"][0]["uuid"] == ceph_osd_uuid(fsid, "BULKnode02"));
  CHECK(std::any_of(plan.destroys.begin(), plan.destroys.end(), [](const Destruction& d) {
    return d.serial == "BULKnode02" && d.why == "ceph for /shared";
  }));
  CHECK(lint_plan(plan).empty());
  // Two nodes cannot outvote each other.
  in.spec.nodes.pop_back();
  in.nodes.erase("node03");
  CHECK(planned(in).find("node02/shared-1")->params["steps"][0]["params"]["mons"].size() == 1);
}

TEST_CASE("ceph: its own object store is used again, another one's is foreign", "[plan]") {
  PlannerInput in = with_engine("ceph", installed);
  const std::string fsid = ceph_fsid("gaggle", "shared");
  for (auto& [name, seen] : in.nodes) {
    DiskFacts& bulk = seen.facts->disks[3];
    bulk.mounted = false;
    bulk.signatures = {"ceph_bluestore uuid=" + ceph_osd_uuid(fsid, bulk.serial)};
  }
  const Plan plan = planned(in);
  CHECK(plan.destroys.empty());
  CHECK(plan.find("node01/shared-1")->params["steps"][0]["params"]["disks"][0]["content_hash"] == "");
  DiskFacts& bulk = in.nodes["node01"].facts->disks[3];
  for (const std::string& other :
       {ceph_osd_uuid(ceph_fsid("other", "shared"), bulk.serial), ceph_osd_uuid(fsid, "BULKnode02")}) {
    bulk.signatures = {"ceph_bluestore uuid=" + other};
    CHECK(refused(in) == "disk-foreign");
  }
  bulk.signatures = {"ceph_bluestore uuid=" + ceph_osd_uuid(fsid, bulk.serial), "xfs label=shared uuid=1"};
  CHECK(refused(in) == "disk-foreign");
}

TEST_CASE("ceph: any of three nodes may be drained, of two not the one with the monitor", "[plan]") {
  PlannerInput in = with_engine("ceph", installed);
  for (auto& [name, seen] : in.nodes) seen.state = NodeState::accepted;
  in.request = {RequestKind::drain, {"node01"}};
  CHECK(refused(in) == "nothing");
  in.spec.nodes.pop_back();
  in.nodes.erase("node03");
  CHECK(refused(in) == "drain-leader");
}

TEST_CASE("beegfs: a plan says that nothing is kept twice, and no node of it can be emptied", "[plan]") {
  PlannerInput in = with_engine("beegfs", seen_in_ram);
  const Plan plan = planned(in);
  CHECK(std::any_of(plan.notes.begin(), plan.notes.end(), [](const std::string& n) {
    return n.find("'shared' (engine beegfs) has no redundancy") != std::string::npos;
  }));
  CHECK(plan.find("node02/shared-1")->params["steps"][0]["params"]["source"] == "beegfs_nodev");
  in = with_engine("beegfs", installed);
  for (auto& [name, seen] : in.nodes) seen.state = NodeState::accepted;
  in.request = {RequestKind::drain, {"node02"}};
  CHECK(refused(in) == "drain-leader");
}
