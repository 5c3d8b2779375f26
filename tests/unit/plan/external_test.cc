// Plans about storage of the site, and about arrays that lack a drive.
#include <fstream>
#include <set>

#include "controller/plan/context.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

Playbook shipped(const std::string& name) {
  auto parsed = parse_playbook(text_of(source_dir() + "/playbooks/" + name + ".yaml"));
  REQUIRE(parsed.errors.empty());
  return parsed.playbook;
}

StorageSpec site(const std::string& source, bool writable) {
  StorageSpec out;
  out.name = "data";
  out.engine = "external";
  out.mount = "/data";
  out.fstype = "nfs4";
  out.source = source;
  out.options = "nconnect=8";
  out.writable = writable;
  out.roles = {"cpu"};
  return out;
}

PlannerInput with_site(const StorageSpec& section, const std::string& profile = "quick") {
  PlannerInput in = with_nodes(installed);
  in.spec.storage.push_back(section);
  in.playbooks["storage-external"] = shipped("storage-external");
  in.playbooks["acceptance/" + profile] = shipped("acceptance/" + profile);
  in.spec.acceptance_profile = profile;
  in.spec.roles["cpu"].push_back("storage-external");
  return in;
}

// Steps that are about this mount, by their id.
std::map<std::string, Json> steps_at(const Plan& plan, const std::string& node, const std::string& mount) {
  std::map<std::string, Json> out;
  for (const auto& action : plan.actions) {
    if (action.node != node) continue;
    for (const Json& step : action.params.value("steps", Json::array())) {
      const Json params = step["params"];
      const Json options = params.value("options", Json());
      const bool at =
          params.value("target", "") == mount || (options.is_object() && options.value("path", "") == mount);
      if (at) out[step["id"].get<std::string>()] = step;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("what the site serves is mounted by every node of the section, after what a node does alone",
          "[plan]") {
  const Plan plan = planned(with_site(site("10.0.0.5:/export", false)));
  for (const auto& node : plan.nodes) {
    const auto steps = steps_at(plan, node, "/data");
    REQUIRE(steps.count("storage-external/mount[data]"));
    CHECK(steps.at("storage-external/mount[data]")["params"] == Json({{"name", "data"},
                                                                      {"fstype", "nfs4"},
                                                                      {"source", "10.0.0.5:/export"},
                                                                      {"server", "10.0.0.5"},
                                                                      {"target", "/data"},
                                                                      {"options", "nconnect=8"},
                                                                      {"writable", false}}));
    CHECK(steps.size() == 1);  // no node may write there: nothing of the acceptance does
  }
  CHECK(plan.destroys.empty());
}

TEST_CASE("acceptance writes to the site's storage where that is declared, and holds its speed to no floor",
          "[plan][acceptance]") {
  const std::string profile = GENERATE(as<std::string>{}, "quick", "standard", "burn", "lab");
  CAPTURE(profile);
  PlannerInput in = with_site(site("[fd00::5]:/export", true), profile);
  const Plan plan = planned(in);
  for (const auto& node : plan.nodes) {
    const auto steps = steps_at(plan, node, "/data");
    const std::string prefix = profile + "/";
    std::set<std::string> ids;
    for (const auto& [id, step] : steps) ids.insert(id);
    CAPTURE(node, Json(ids).dump());
    CHECK(steps.size() == 4);
    REQUIRE(steps.count(prefix + "site storage[data]"));
    CHECK_FALSE(steps.count(prefix + "shared storage[data]"));
    const Json& speed = steps.at(prefix + "site storage[data]");
    CHECK(speed["params"]["options"]["fstype"] == "nfs4");
    CHECK(speed["params"]["options"]["source"] == "[[]fd00::5[]]:/export");
    CHECK(speed["mandatory"] == false);
    for (const auto& [metric, expected] : speed["expect"].items())
      if (metric != "blocks") {
        CHECK_FALSE(expected.contains("min"));
        CHECK(expected.contains("fleet_min_ratio"));
      }
    CHECK(speed["expect"]["blocks"] == Json::array({"data"}));
    CHECK(steps_at(plan, node, "/shared").count(prefix + "shared storage[shared]"));
    CHECK_FALSE(steps_at(plan, node, "/shared").count(prefix + "site storage[shared]"));
  }
}

TEST_CASE("a node with storage of the site can be drained: nothing on it is the node's", "[plan]") {
  PlannerInput in = with_site(site("10.0.0.5:/export", true));
  in.spec.storage.erase(in.spec.storage.begin(), in.spec.storage.end() - 1);
  in.playbooks["shared"].steps = {step("leaves", "drain", {{"node", "{{node.name}}"}})};
  in.request.kind = RequestKind::drain;
  in.request.nodes = {"node01"};
  const auto plan = make_plan(in);
  CHECK(plan.ok());
}

TEST_CASE(
    "a new drive among the members of an array with redundancy is refused, and nothing is to be created "
    "again",
    "[plan]") {
  for (const std::string level : {"raid0", "raid1"}) {
    CAPTURE(level);
    PlannerInput in = with_nodes(installed);
    in.spec.storage.front().level = level;
    auto& disks = in.nodes["node02"].facts->disks;
    disks[2] = disk("FASTnew", 2ull << 30);
    in.request.force = {"node02"};
    const auto plan = make_plan(in);
    REQUIRE(plan.ok());
    const auto degraded = std::count_if(plan->refusals.begin(), plan->refusals.end(),
                                        [](const Refusal& r) { return r.rule == "array-degraded"; });
    CHECK(degraded == (level == "raid1" ? 1 : 0));
    if (level == "raid0") continue;
    const Refusal& refusal = plan->refusals.front();
    CHECK(refusal.node == "node02");
    CHECK(refusal.message.find("FASTnew") != std::string::npos);
  }
}

TEST_CASE("a drive that is missing from an array with redundancy is said to be one", "[plan]") {
  for (const std::string level : {"raid0", "raid1"}) {
    PlannerInput in = with_nodes(installed);
    in.spec.storage.front().level = level;
    in.nodes["node02"].facts->disks.erase(in.nodes["node02"].facts->disks.begin() + 2);
    const auto plan = make_plan(in);
    REQUIRE(plan.ok());
    REQUIRE(plan->refusals.size() == 1);
    CHECK(plan->refusals[0].rule == "disk-count");
    CHECK((plan->refusals[0].message.find("to replace the drive, see") != std::string::npos) ==
          (level == "raid1"));
  }
}
