#include "controller/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "controller/plan/disk_selection.h"
#include "controller/plan/lint.h"
#include "controller/spec/hardware.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

// MUSTER_ACCEPT=1 rewrites the file.
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = source_dir() + "/tests/golden/plan/" + name;
  if (std::getenv("MUSTER_ACCEPT")) std::ofstream(path) << text;
  CHECK(text_of(path) == text);
}

std::string refused(const PlannerInput& in) {
  auto made = make_plan(in);
  if (!made.ok()) return "error: " + made.error().message;
  return made->refusals.empty() ? "nothing" : made->refusals[0].rule;
}

std::vector<std::string> ids(const Plan& plan, const std::string& node) {
  std::vector<std::string> out;
  for (const auto& a : plan.actions)
    if (a.node == node) out.push_back(a.id.substr(node.size() + 1));
  return out;
}

bool depends(const Plan& plan, const std::string& action, const std::string& on, bool hard) {
  const Action& a = *plan.find(action);
  for (const auto& d : a.after)
    if (d.action == on && d.hard == hard) return true;
  if (hard || a.behind < 0) return false;
  const auto& barrier = plan.barriers.at(static_cast<size_t>(a.behind));
  return std::find(barrier.begin(), barrier.end(), on) != barrier.end();
}

}  // namespace

TEST_CASE("nodes that were never seen are discovered first, and nothing else happens", "[plan]") {
  PlannerInput in = input();
  in.nodes["node01"] = seen_in_ram("node01");
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::discover);
  CHECK(plan.nodes == std::vector<std::string>{"node02", "node03"});
  CHECK(ids(plan, "node02") == std::vector<std::string>{"netboot", "inventory"});
  CHECK(plan.destroys.empty());
}

TEST_CASE("a node that could not be found does not hold the others, and is looked for again at last",
          "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.nodes["node03"] = NodeObservation{};
  in.nodes["node03"].state = NodeState::quarantined;
  const Plan install = planned(in);
  CHECK(install.kind == PlanKind::install);
  CHECK(install.nodes == std::vector<std::string>{"node01", "node02"});
  CHECK(install.notes.front().find("node03") == 0);
  for (const std::string name : {"node01", "node02"}) {
    in.nodes[name] = installed(name);
    in.nodes[name].state = NodeState::accepted;
    in.nodes[name].config_digest = install.config_digests.at(name);
  }
  const Plan again = planned(in);
  CHECK(again.kind == PlanKind::discover);
  CHECK(again.nodes == std::vector<std::string>{"node03"});
}

TEST_CASE("an install plan, whole", "[plan]") {
  const Plan plan = planned(with_nodes(seen_in_ram));
  CHECK(plan.kind == PlanKind::install);
  CHECK(ids(plan, "node01") == std::vector<std::string>{"image", "boot", "configure", "shared-1", "shared-2",
                                                        "look", "accept", "accept-1"});
  CHECK(ids(plan, "node02") ==
        std::vector<std::string>{"image", "boot", "configure", "shared-2", "look", "accept"});
  CHECK(plan.destroys.size() == 12);
  CHECK(lint_plan(plan).empty());
  check_golden("install.json", to_json(plan).dump(1) + "\n");
  check_golden("install.txt", render_plan(plan, false));
}

TEST_CASE("a node that is off is netbooted before it is imaged", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.nodes["node02"].online = false;
  CHECK(ids(planned(in), "node02").front() == "netboot");
  CHECK(ids(planned(in), "node01").front() == "image");
}

TEST_CASE("how long a node may boot is the spec's to say", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.nodes["node02"].online = false;
  CHECK(planned(in).find("node02/netboot")->timeout == 20 * kMinute);
  CHECK(planned(in).find("node02/boot")->timeout == 20 * kMinute);
  in.spec.limits.netboot = 12 * kMinute;
  in.spec.limits.boot = 15 * kMinute;
  const Plan plan = planned(in);
  CHECK(plan.find("node02/netboot")->timeout == 12 * kMinute);
  CHECK(plan.limits.netboot == 12 * kMinute);  // for actions that netboot their node on their own
  CHECK(plan.find("node02/boot")->timeout == 15 * kMinute);
}

TEST_CASE("steps with a restart among them wait for the firmware, too", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  const DurationMs without = planned(in).find("node01/configure")->timeout;
  in.playbooks["base"].steps.push_back(step("restart", "node", Json::object()));
  in.playbooks["base"].steps.back().module = "reboot";
  CHECK(planned(in).find("node01/configure")->timeout == without + in.spec.limits.boot);
}

TEST_CASE("kernel options of the controller come before those of the spec", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  const auto options_of = [&in](const std::string& node) {
    return planned(in).find(node + "/image")->params["kernel_options"].get<std::string>();
  };
  in.kernel_options = "no_timer_check";
  CHECK(options_of("node01") == "no_timer_check");
  in.spec.vars["kernel_options"] = "panic=0";
  CHECK(options_of("node01") == "no_timer_check panic=0");
  in.kernel_options.clear();
  CHECK(options_of("node01") == "panic=0");
}

TEST_CASE("stages are barriers: soft across nodes, hard on the leader", "[plan]") {
  const Plan plan = planned(with_nodes(seen_in_ram));
  CHECK(depends(plan, "node01/shared-1", "node01/configure", true));
  CHECK(depends(plan, "node01/shared-1", "node02/configure", false));
  CHECK(depends(plan, "node02/shared-2", "node01/shared-1", true));
  CHECK(depends(plan, "node02/shared-2", "node03/configure", false));
  CHECK(depends(plan, "node03/accept", "node02/look", false));
}

TEST_CASE("steps come out rendered, one per element, without those whose condition says no", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.spec.roles["cpu"].push_back("optional");
  in.spec.vars["enabled"] = "no";
  const Plan plan = planned(in);
  const Json& steps = plan.find("node02/configure")->params["steps"];
  REQUIRE(steps.size() == 2);  // image-phase steps of a baked playbook are in the image
  CHECK(steps[0]["id"] == "base/hostname");
  CHECK(steps[0]["params"]["content"] == "node02\n");
  CHECK(steps[1]["id"] == "storage/array[scratch]");
  CHECK(steps[1]["params"]["disks"].size() == 2);
  CHECK(steps[1]["params"]["disks"][0]["content_hash"] == "sha256:blank-FASTanode02");
  in.spec.images["cpu"].bake.clear();
  CHECK(planned(in).find("node02/configure")->params["steps"].size() == 3);
}

TEST_CASE("a step whose list is empty says why, a GPU that is declared but not found is none of these",
          "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  PlaybookStep answers = step("every GPU answers", "node", {{"count", "{{item.gpus}}"}});
  answers.for_each = "own_gpus";
  answers.otherwise = "no GPU";
  in.playbooks["gpu"] = {"gpu", "", {answers}};
  in.spec.roles["cpu"].push_back("gpu");
  const auto last = [&] { return Json(planned(in).find("node02/configure")->params["steps"].back()); };
  CHECK(last()["id"] == "gpu/every GPU answers");
  CHECK(last()["module"] == "not_applicable");
  CHECK(last()["params"]["reason"] == "no GPU");
  CHECK(last()["mandatory"] == false);
  for (auto& node : in.spec.nodes) {
    node.hardware.gpus = 8;
    in.request.force.insert(node.name);  // else no image is written where they are missing
  }
  in.request.nodes = {"node01", "node02", "node03"};
  CHECK(last()["module"] == "file");
  CHECK(last()["params"]["count"] == 8);
}

TEST_CASE("a step whose condition is false says why, in every phase, and an optional variable may be unset",
          "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  PlaybookStep part = step("part", "node", {{"content", "{{vars.part_url}}"}});
  part.when = "{{#vars.part_url}}yes{{/vars.part_url}}";
  part.otherwise = "the variable part_url isn't set";
  in.playbooks["parts"] = {"parts", "", {part}};
  in.playbooks["parts"].optional_vars = {{"part_url", "part_sha256"}};
  in.spec.roles["cpu"].push_back("parts");
  const auto last = [&] { return Json(planned(in).find("node02/configure")->params["steps"].back()); };
  CHECK(last()["module"] == "not_applicable");
  CHECK(last()["params"]["reason"] == part.otherwise);
  in.spec.vars["part_url"] = "https://mirror.example/part";
  CHECK(last()["params"]["content"] == "https://mirror.example/part");
  // Of another playbook, and undeclared, it is an error as ever.
  in.spec.vars.clear();
  in.playbooks["other"] = {"other", "", {part}};
  in.spec.roles["cpu"].push_back("other");
  CHECK_FALSE(make_plan(in).ok());
}

TEST_CASE("containers lie on the node's own storage, and Docker where the node's variable has it", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.playbooks["containers"] = {
      "containers",
      "",
      {step("where", "node", {{"content", "{{has_containers}} {{container_root}} {{docker_root}}"}}),
       step("what", "node", {{"content", "{{#container_mounts}}{{mount}} {{/container_mounts}}"}})}};
  in.spec.roles["cpu"].push_back("containers");
  const auto content = [&](const std::string& name) {
    const Json steps = planned(in).find("node02/configure")->params["steps"];
    for (const Json& one : steps)
      if (one["id"] == "containers/" + name) return one["params"]["content"].get<std::string>();
    return std::string();
  };
  CHECK(content("where") == "true /scratch/containers /scratch/containers/docker");
  CHECK(content("what").starts_with("/scratch "));
  in.spec.vars["docker_data_root"] = "/data/docker";
  CHECK(content("where") == "true /scratch/containers /data/docker");
  in.spec.vars.clear();
  std::erase_if(in.spec.storage, [](const StorageSpec& s) { return s.engine == "local"; });
  CHECK(content("where") == "true /var/lib/muster/containers ");
}

TEST_CASE("an accepted cluster that is as declared is left alone", "[plan]") {
  const Plan first = planned(with_nodes(seen_in_ram));
  PlannerInput in = with_nodes(installed);
  for (auto& [name, seen] : in.nodes) {
    seen.state = NodeState::accepted;
    seen.config_digest = first.config_digests.at(name);  // what is on the disks is not part of it
  }
  const Plan again = planned(in);
  CHECK(again.kind == PlanKind::none);
  CHECK(again.empty());
  CHECK(again.unchanged.size() == 3);
  in.playbooks["base"].steps[1].params["content"] = "other";
  const Plan changed = planned(in);
  CHECK(changed.kind == PlanKind::apply);
  CHECK(changed.destroys.empty());
  CHECK(ids(changed, "node02") == std::vector<std::string>{"configure", "shared-2", "look", "accept"});
}

TEST_CASE("a new drive in a running node is named in the destruction list", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.nodes["node03"].facts->disks[3] = disk("BULKnew", 2ull << 30);
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::apply);
  REQUIRE(plan.destroys.size() == 1);
  CHECK(plan.destroys[0].serial == "BULKnew");
}

TEST_CASE("a re-image keeps data disks and destroys nothing on muster's own layout", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.request = {RequestKind::reimage, {"node02"}};
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::reimage);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
  CHECK(plan.destroys.empty());
  CHECK(ids(plan, "node02").front() == "netboot");
  CHECK(plan.find("node02/image")->params["allow_ours"] == true);
  CHECK(plan.find("node02/configure")->params["steps"].size() == 2);
}

TEST_CASE("the system of a node of the same name in another cluster is foreign", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  auto& disks = in.nodes["node02"].facts->disks;
  make_ours(disks[0], "node02");
  SECTION("of another cluster") { disks[0].muster_cluster = "flock"; }
  SECTION("of this cluster, but of another node") { disks[0].muster_node = "node03"; }
  SECTION("of the same names, of another site's controller") {
    disks[0].muster_authority = "sha256:ca-of-another";
  }
  SECTION("of a controller that it does not name, on a machine never installed from here") {
    disks[0].muster_authority.clear();
  }
  SECTION("of an unnamed cluster, on a machine never installed from here") {
    disks[0].muster_cluster.clear();
  }
  SECTION("of an unnamed cluster, on a machine that took an installed one's place") {
    disks[0].muster_cluster.clear();
    in.nodes["node02"].image_digest = "sha256:cpu";
    in.nodes["node02"].product_uuid.clear();
  }
  CHECK(refused(in) == "disk-foreign");
  for (auto& node : in.spec.nodes) node.disks["os"].policy = DiskPolicy::format;
  const Plan plan = planned(in);
  const auto os = std::find_if(plan.destroys.begin(), plan.destroys.end(),
                               [](const Destruction& d) { return d.serial == "OSnode02"; });
  REQUIRE(os != plan.destroys.end());
  CHECK(os->content_hash == "sha256:ours");
  CHECK(os->content.find("the system of node " + disks[0].muster_node + " of ") != std::string::npos);
  const Json job = plan.find("node02/image")->params.json();
  CHECK(job["allow_ours"] == false);
  CHECK(job["content_hash"] == "sha256:ours");
  CHECK(job["cluster"] == "gaggle");
  CHECK(job["authority"] == kAuthority);
}

TEST_CASE("a system that does not name its cluster is this node's where the machine was installed from here",
          "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.request = {RequestKind::reimage, {"node02"}};
  auto& os = in.nodes["node02"].facts->disks[0];
  os.muster_authority.clear();
  SECTION("written by the version before, which names the cluster and no CA") {}
  SECTION("written by an older version") { os.muster_cluster.clear(); }
  SECTION("seen by an older agent") { os.muster_cluster.clear(), os.muster_node.clear(); }
  const Plan plan = planned(in);
  CHECK(plan.destroys.empty());
  CHECK(plan.find("node02/image")->params["allow_ours"] == true);
}

TEST_CASE("data that names no cluster is this node's only with its OS disk or its record", "[plan]") {
  PlannerInput in = with_nodes(installed);
  auto& node = in.nodes["node02"];
  node.mode = wire::Mode::ram;
  for (auto& d : node.facts->disks) d.mounted = d.is_os_ancestor = false;
  SECTION("its OS disk is this cluster's") {
    node.image_digest.clear();
    CHECK(planned(in).destroys.empty());
  }
  SECTION("its OS disk is of a cluster of that name, and of another controller") {
    node.image_digest.clear();
    node.facts->disks[0].muster_authority = "sha256:ca-of-another";
    for (auto& n : in.spec.nodes) n.disks["os"].policy = DiskPolicy::format;
    CHECK(refused(in) == "disk-foreign");
  }
  SECTION("its OS disk is new, the machine is known") {
    node.facts->disks[0] = disk("OSnew", 8ull << 30);
    CHECK(planned(in).destroys.size() == 1);
  }
  SECTION("neither") {
    node.image_digest.clear();
    node.facts->disks[0] = disk("OSnew", 8ull << 30);
    CHECK(refused(in) == "disk-foreign");
    // Not even then: what would be told to be formatted would be found and used again.
    for (auto& n : in.spec.nodes) n.disks["fast"].policy = n.disks["bulk"].policy = DiskPolicy::format;
    CHECK(refused(in) == "disk-foreign");
  }
}

TEST_CASE("a link test needs both ends in the plan", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.playbooks["acceptance/lab"].steps.push_back(
      step("links", "cluster", {{"peers", "{{peers}}"}, {"peers_in_plan", true}}, 1));
  const auto links = [&] {
    std::map<std::string, size_t> peers;
    for (const auto& a : planned(in).actions)
      for (const Json& s : a.params.value("steps", Json::array()))
        if (s["id"].get<std::string>().find("links") != std::string::npos) {
          CHECK_FALSE(s["params"].contains("peers_in_plan"));
          peers[a.node] = s["params"]["peers"].size();
        }
    return peers;
  };
  in.request.kind = RequestKind::accept;
  const size_t others = in.spec.nodes.size() - 1;
  CHECK(links().size() == in.spec.nodes.size());
  for (const auto& [node, count] : links()) CHECK(count == others);
  in.request = {RequestKind::reimage, {"node02"}};
  CHECK(links().empty());
  CHECK(planned(in).notes.back().find("links") != std::string::npos);
}

TEST_CASE("of many nodes each is measured with some, and they with it", "[plan]") {
  PlannerInput in = with_nodes(installed);
  for (int i = 10; i < 30; ++i) {
    NodeSpec node = in.spec.nodes.front();
    node.name = NodeName("more" + std::to_string(i));
    node.address = "10.20.0." + std::to_string(100 + i);
    node.mac = "52:54:00:20:01:" + std::to_string(i);
    in.spec.nodes.push_back(node);
    in.nodes[node.name] = installed(node.name);
  }
  in.playbooks["acceptance/lab"].steps.push_back(
      step("links", "cluster", {{"peers", "{{peers}}"}, {"peers_in_plan", true}}, 1));
  in.request.kind = RequestKind::accept;
  std::map<std::string, std::set<std::string>> partners;
  for (const auto& a : planned(in).actions)
    for (const Json& s : a.params.value("steps", Json::array()))
      if (s["id"].get<std::string>().find("links") != std::string::npos)
        for (const Json& peer : s["params"]["peers"])
          partners[a.node].insert(peer["name"].get<std::string>());
  CHECK(partners.size() == in.spec.nodes.size());
  for (const auto& [node, with] : partners) {
    CHECK(with.size() >= 6);  // log2 of 23 is 5; with an odd number of nodes one rests in each round
    CHECK(with.size() <= 7);
    for (const auto& other : with) CHECK(partners[other].count(node) == 1);
  }
}

TEST_CASE("acceptance alone touches nothing", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.request.kind = RequestKind::accept;
  const Plan plan = planned(in);
  for (const auto& a : plan.actions) CHECK(a.kind == ActionKind::check);
  in.nodes["node02"].online = false;
  CHECK(refused(in) == "not-running");
}

TEST_CASE("what cannot be planned safely is refused with its rule", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  auto& node = in.nodes["node02"];
  SECTION("another number of disks than declared") {
    node.facts->disks.pop_back();
    CHECK(refused(in) == "disk-count");
  }
  SECTION("one more that matches") {
    node.facts->disks.push_back(disk("FASTc", 2ull << 30));
    CHECK(refused(in) == "disk-count");
  }
  SECTION("a foreign file system") {
    node.facts->disks[1].blank = false;
    node.facts->disks[1].signatures = {"ext4 label=PRECIOUS"};
    node.facts->disks[1].content = "ext4 \"PRECIOUS\"";
    CHECK(refused(in) == "disk-foreign");
  }
  SECTION("a foreign array of another name") {
    node.facts->disks[1].blank = false;
    node.facts->disks[1].signatures = {"linux_raid_member label=db:data"};
    CHECK(refused(in) == "disk-foreign");
  }
  SECTION("keep is the default") {
    in.spec.nodes[1].disks["fast"].policy = DiskPolicy::keep;
    CHECK(refused(in) == "disk-keep");
  }
  SECTION("an OS disk to be kept, foreign or blank") {
    in.spec.nodes[1].disks["os"].policy = DiskPolicy::keep;
    CHECK(refused(in) == "disk-keep");
    node.facts->disks[0].blank = false;
    node.facts->disks[0].content = "ext4 \"PRECIOUS\"";
    CHECK(refused(in) == "disk-keep");
  }
  SECTION("what is left of a disk of ours is not ours") {
    node.facts->disks[3].blank = false;
    node.facts->disks[3].signatures = {"remains of xfs at 1 MiB label=mfs-LKnode02 uuid=3",
                                       "unknown data uuid=sha256:1"};
    in.nodes["node02"].image_digest = "sha256:cpu";
    CHECK(refused(in) == "disk-foreign");
  }
  SECTION("in use") {
    node.facts->disks[3].mounted = true;
    CHECK(refused(in) == "disk-in-use");
  }
  SECTION("two groups want one disk") {
    in.spec.nodes[1].disks["bulk"].match.serial = "FASTa*";
    CHECK(refused(in) == "disk-overlap");
  }
  SECTION("a remote disk is never one of ours") {
    node.facts->disks[3].transport = "nvme-tcp";
    CHECK(refused(in) == "disk-count");
  }
  SECTION("another machine") {
    node.facts->system.uuid = "uuid-other";
    CHECK(refused(in) == "node-swapped");
    in.request = {RequestKind::admit, {"node02"}, {"node02"}};
    CHECK(refused(in) == "nothing");
  }
  SECTION("no image") {
    in.images.clear();
    CHECK(refused(in) == "image-missing");
  }
}

TEST_CASE("one disk that two nodes see is selected on one of them only", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  auto& first = in.nodes["node01"].facts->disks;
  auto& second = in.nodes["node02"].facts->disks;
  second[3] = first[3];  // BULKnode01, in an enclosure of both
  second[3].name = "nvme9n1";
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  REQUIRE(made->refusals.size() == 1);
  CHECK(made->refusals[0].node == "node01");
  CHECK(made->refusals[0].rule == "disk-shared");
  for (const char* part :
       {"nvmeBULKnode01 (", "nvme9n1 (", "serial BULKnode01", "on node02", "WWID eui.BULKnode01"})
    CHECK(made->refusals[0].message.find(part) != std::string::npos);

  in.request.nodes = {"node02"};  // the other one may be using it
  CHECK(refused(in) == "disk-shared");
  in.nodes["node01"].machine = std::move(in.nodes["node01"].facts);  // seen long ago
  in.nodes["node01"].facts.reset();
  CHECK(refused(in) == "disk-shared");
  in.request.nodes = {"node03"};
  CHECK(refused(in) == "nothing");  // has nothing to do with it

  in = with_nodes(seen_in_ram);
  in.nodes["node02"].facts->disks.push_back(in.nodes["node01"].facts->disks[3]);
  in.spec.nodes[0].disks["bulk"].match.serial = "BULKnode01";
  in.spec.nodes[1].disks["bulk"].match.serial = "BULKnode02";
  CHECK(refused(in) == "nothing");  // both see it, one selects it
}

TEST_CASE(
    "what makes a disk the same one on two nodes: its WWID, else model and serial, and no number that all "
    "disks have",
    "[plan]") {
  CHECK(medium_of({"S1", "eui.0001", "M"}) == medium_of({"S2", "eui.0001", "N"}));
  CHECK(medium_of({"S1", "eui.0001", "M"}) != medium_of({"S1", "eui.0002", "M"}));
  CHECK(medium_of({"S1", "", "M"}) == medium_of({"S1", "naa.0000000000000000", "M"}));
  CHECK(medium_of({"S1", "", "M"}) != medium_of({"S1", "", "N"}));
  CHECK(medium_of({"S1", "nvme.1b36-5331-4d-00000001", "M"}) !=
        medium_of({"S1", "nvme.1b36-5331-4d-00000002", "M"}));  // two namespaces
  for (const char* serial :
       {"", "0000000000000000", "0123456789", "1234567890", "0123456789ABCDEF", "QM00003", "drive-scsi0"}) {
    INFO(serial);
    CHECK(medium_of({serial, "", "M"}).empty());
    CHECK(medium_of({serial, std::string("t10.ATA     M ") + serial, "M"}).empty());
    CHECK_FALSE(medium_of({serial, "naa.5002538e40000001", "M"}).empty());
  }
}

TEST_CASE("a disk that very many nodes select is refused once", "[plan]") {
  std::vector<NodeName> names;
  std::vector<DiskFacts> disks;
  for (int i = 0; i < 2000; ++i) names.emplace_back(fmt::format("node{:04}", i));
  for (int i = 0; i < 10; ++i) disks.push_back(disk(fmt::format("S{}", i), 1ull << 40));
  std::vector<SelectedDisk> selected;
  for (const auto& name : names)
    for (const auto& d : disks) selected.push_back({&name, &d, name == "node1000"});
  const auto refusals = refuse_shared(selected);
  REQUIRE(refusals.size() == disks.size());
  CHECK(refusals[0].node == "node1000");
  CHECK(refusals[0].message.find("on node0000 and 1998 more nodes") != std::string::npos);
}

TEST_CASE("a foreign operating system is destroyed only by name, with what it is", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  auto& os = in.nodes["node01"].facts->disks[0];
  os.blank = false;
  os.content = "GPT, 2 partitions: Ubuntu";
  os.content_hash = "sha256:ubuntu";
  CHECK(refused(in) == "disk-foreign");  // no policy lets it go
  in.spec.nodes[0].disks["os"].policy = DiskPolicy::format;
  const Plan plan = planned(in);
  REQUIRE_FALSE(plan.destroys.empty());
  const auto& d = *std::find_if(plan.destroys.begin(), plan.destroys.end(),
                                [](const Destruction& x) { return x.group == "os"; });
  CHECK(d.content == "GPT, 2 partitions: Ubuntu");
  CHECK(plan.find("node01/image")->params["content_hash"] == "sha256:ubuntu");
}

TEST_CASE("only disks of the destruction list carry the right to be formatted", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  // Recognised by its label as ours and used again, whatever the policy: an agent that sees it otherwise must
  // not format it.
  in.nodes["node01"].image_digest = "sha256:before";  // installed from here once
  auto& disks = in.nodes["node01"].facts->disks;
  in.spec.nodes[0].disks["fast"].policy = DiskPolicy::format;
  for (const size_t i : {1, 2}) {  // the array's members: of half of them none would be used
    disks[i].blank = false;
    disks[i].content = "linux_raid_member \"any:scratch\"";
    disks[i].content_hash = "sha256:precious";
    disks[i].signatures = {"linux_raid_member label=any:scratch uuid=1"};
  }
  Plan plan = planned(in);
  for (const auto& d : plan.destroys) CHECK((d.serial != disks[1].serial && d.serial != disks[2].serial));
  const Json array = plan.find("node01/configure")->params["steps"][1]["params"];
  REQUIRE(array["disks"].size() == 2);
  CHECK(array["disks"][0]["serial"] == disks[1].serial);
  CHECK(array["disks"][0]["content_hash"] == "");
  CHECK(array["disks"][1]["content_hash"] == "");
  const Json blank = plan.find("node02/configure")->params["steps"][1]["params"]["disks"];
  CHECK(blank[0]["content_hash"] == in.nodes["node02"].facts->disks[1].content_hash);
  CHECK(lint_plan(plan).empty());
  change_params(*const_cast<Action*>(plan.find("node01/configure")), [](Json& params) {
    params["steps"][1]["params"]["disks"][0]["content_hash"] = "sha256:precious";
  });
  REQUIRE_FALSE(lint_plan(plan).empty());
  CHECK(lint_plan(plan).front().find("not in the destruction list") != std::string::npos);
}

TEST_CASE("a node that an operator took out is in no plan until it is released", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.nodes["node02"].state = NodeState::quarantined;
  CHECK(planned(in).nodes.size() == 3);  // a run's own quarantine is tried again
  in.nodes["node02"].reason = "by an operator: PSU on order";
  CHECK(planned(in).nodes.size() == 3);  // whatever the words say
  in.nodes["node02"].held_by = HeldBy::an_operator;
  const Plan plan = planned(in);
  CHECK(plan.nodes == std::vector<std::string>{"node01", "node03"});
  CHECK(plan.left_out == std::vector<std::string>{"node02"});
  CHECK(ids(plan, "node02").empty());
  REQUIRE_FALSE(plan.notes.empty());
  CHECK(plan.notes.front().find("PSU on order") != std::string::npos);
  CHECK(plan_from_json(to_json(plan))->left_out == plan.left_out);
  in.nodes["node02"].facts.reset();
  CHECK(planned(in).kind == PlanKind::install);  // nor is it looked for
  in.request.nodes = {"node02"};
  CHECK(refused(in) == "node-held");
}

TEST_CASE("what is forced is forced for the nodes that are named, and for no other", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  for (const char* name : {"node01", "node02"}) {
    in.nodes[name].product_uuid = std::string("uuid-") + name;
    in.nodes[name].facts->system.uuid = "another machine's";
  }
  in.request.kind = RequestKind::reimage;
  in.request.nodes = {"node01", "node02"};
  CHECK(refused(in) == "node-swapped");
  in.request.force = {"node01"};
  const auto outcome = make_plan(in);
  REQUIRE(outcome.ok());
  REQUIRE(outcome->refusals.size() == 1);
  CHECK(outcome->refusals[0].node == "node02");
  CHECK(outcome->refusals[0].rule == "node-swapped");
}

TEST_CASE("wrong input is an error that names it", "[plan]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.request.nodes = {"node4"};
  CHECK(refused(in).find("did you mean 'node0") != std::string::npos);
  in.request.nodes.clear();
  in.spec.roles["cpu"].push_back("bass");
  CHECK(refused(in).find("there is no playbook 'bass', did you mean 'base'?") != std::string::npos);
  in.spec.roles["cpu"].pop_back();
  in.playbooks["base"].steps[1].params["content"] = "{{node.nam}}";
  CHECK(refused(in).find("playbook base") != std::string::npos);
}

TEST_CASE("a plan from before there was a limit for netboots is read as one with the usual limit", "[plan]") {
  Json old = to_json(planned(with_nodes(seen_in_ram)));
  REQUIRE(old["limits"].erase("netboot_ms") == 1);
  CHECK(plan_from_json(old)->limits.netboot == 20 * kMinute);
}

TEST_CASE("a plan survives its JSON form and its digest sees every change", "[plan]") {
  Plan plan = planned(with_nodes(seen_in_ram));
  const std::string digest = plan_digest(plan);
  auto read = plan_from_json(parse_json(to_json(plan).dump()).value());
  REQUIRE(read.ok());
  CHECK(plan_digest(*read) == digest);
  change_params(plan.actions.back(), [](Json& params) { params["steps"][0]["params"]["seconds"] = 2; });
  CHECK(plan_digest(plan) != digest);
  Json unknown = to_json(plan);
  unknown["extra"] = 1;
  CHECK_FALSE(plan_from_json(unknown).ok());
  for (const char* word : {"", "Install", "format"}) {
    Json other = to_json(plan);
    other["kind"] = word;
    CHECK_FALSE(plan_from_json(other).ok());
  }
}

TEST_CASE("lint finds what must not be in a plan", "[plan]") {
  const Plan good = planned(with_nodes(seen_in_ram));
  const auto complains = [&](auto change) {
    Plan bad = good;
    change(bad);
    return !lint_plan(bad).empty();
  };
  CHECK_FALSE(complains([](Plan&) {}));
  CHECK(complains([](Plan& p) { p.destroys.clear(); }));
  CHECK(complains([](Plan& p) { p.destroys.push_back(p.destroys[0]); }));
  CHECK(complains([](Plan& p) { p.destroys.push_back(p.destroys[0]), p.destroys.back().node = "node02"; }));
  CHECK(complains([](Plan& p) { p.destroys[0].content_hash.clear(); }));
  CHECK(complains([](Plan& p) { p.actions.push_back(p.actions[0]); }));
  CHECK(complains([](Plan& p) { p.actions[0].after.push_back({"node01/nothing", true}); }));
  CHECK(complains([](Plan& p) { p.actions[0].after.push_back({"node01/boot", true}); }));
  REQUIRE_FALSE(good.barriers.empty());
  CHECK(complains([](Plan& p) { p.barriers[0].push_back("node01/nothing"); }));
  CHECK(complains([](Plan& p) { p.actions[0].behind = static_cast<int>(p.barriers.size()); }));
  CHECK(complains([](Plan& p) { p.actions[0].behind = 0; }));  // behind what comes after it
  CHECK(complains([](Plan& p) { p.actions[0].timeout = 0; }));
  const auto with = [](const char* key, const char* value) {
    return [=](Plan& p) { change_params(p.actions[0], [&](Json& params) { params[key] = value; }); };
  };
  CHECK(complains(with("password", "hunter2")));
  CHECK_FALSE(complains(with("password", "secret:bmc")));
  CHECK(complains(with("key", "-----BEGIN OPENSSH PRIVATE KEY-----")));
}

TEST_CASE("drain: playbooks in reverse order, one node after the other, the volume's master never",
          "[plan]") {
  PlannerInput in = with_nodes(installed);
  const auto out = [](const std::string& name, const std::string& phase) {
    return step(name, phase, {{"node", "{{node.name}}"}});
  };
  in.playbooks["shared"].steps.push_back(out("empty", "drain"));
  in.playbooks["base"].steps.push_back(out("last", "drain"));
  in.playbooks["base"].steps.push_back(out("back", "undrain"));
  for (const auto& n : in.spec.nodes) in.nodes[n.name].state = NodeState::accepted;
  in.request = {RequestKind::drain, {"node03", "node02"}};
  in.request.profile = "lab";
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::drain);
  CHECK(plan.profile.empty());  // nothing is measured, whatever the spec's profile
  CHECK(plan.destroys.empty());
  REQUIRE(plan.actions.size() == 2);
  const Json steps = plan.find("node03/drain")->params["steps"];
  REQUIRE(steps.size() == 2);
  CHECK(steps[0]["id"] == "shared/empty");
  CHECK(steps[1]["id"] == "base/last");
  CHECK(depends(plan, "node03/drain", "node02/drain", true));
  CHECK(lint_plan(plan).empty());

  in.request.nodes = {"node01"};
  CHECK(refused(in) == "drain-leader");
  in.request.nodes = {"node02"};
  in.nodes["node02"].online = false;
  CHECK(refused(in) == "not-running");
  in.nodes["node02"].online = true;
  in.request.nodes = {};
  CHECK(refused(in).find("this kind of plan requires node names") != std::string::npos);

  // Drained: nothing brings it back by accident.
  in.nodes["node02"].state = NodeState::drained;
  in.request = {};
  CHECK(planned(in).left_out == std::vector<std::string>{"node02"});
  in.nodes["node03"].state = NodeState::quarantined;
  in.request = {RequestKind::undrain, {"node03"}};
  CHECK(refused(in) == "not-drained");
  in.request.kind = RequestKind::drain;
  CHECK(refused(in) == "not-accepted");
  in.request = {RequestKind::undrain, {"node02"}};
  CHECK(planned(in).find("node02/undrain")->params["steps"][0]["id"] == "base/back");
  CHECK(planned(in).profile.empty());
}

TEST_CASE("machines of a playbook: found, else declared, and never lost by a re-image", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.playbooks["base"].steps = {
      step("conf", "node",
           {{"content", "{{#machines}}{{name}}:{{cpus}}:{{memory_mib}}:{{gpu_files}} {{/machines}}"}})};
  const auto conf = [&] {
    return planned(in).find("node03/configure")->params["steps"][0]["params"]["content"].get<std::string>();
  };
  for (const auto& n : in.spec.nodes) {
    HardwareFacts& facts = *in.nodes[n.name].facts;
    facts.cpus.count = 4;
    facts.memory_bytes = 2ull << 30;
  }
  in.nodes["node02"].facts->gpus.resize(8, GpuFacts{.model = "NVIDIA H200"});
  in.nodes["node01"].machine = in.nodes["node01"].facts;
  in.nodes["node01"].facts.reset();
  in.nodes["node01"].state = NodeState::quarantined;  // the discovery did not find it: the others go on
  CHECK(conf() == "node01:4:1945: node02:4:1945:/dev/nvidia[0-7] node03:4:1945: ");
  in.nodes["node01"].machine.reset();
  CHECK(conf() == "node02:4:1945:/dev/nvidia[0-7] node03:4:1945: ");
}

TEST_CASE("the GPU fleet of a playbook: two nodes at least, what is declared counts, the smallest number",
          "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.playbooks["base"].steps = {
      step("conf", "node", {{"content", "{{#gpu_fleet}}{{name}}:{{gpus}} {{/gpu_fleet}}{{gpus_of_each}}"}})};
  const auto conf = [&] {
    return planned(in).find("node03/configure")->params["steps"][0]["params"]["content"].get<std::string>();
  };
  CHECK(conf() == "0");
  in.nodes["node02"].facts->gpus.resize(8, GpuFacts{.model = "NVIDIA H200"});
  CHECK(conf() == "8");  // alone it is no fleet
  in.nodes["node03"].facts->gpus.resize(4, GpuFacts{.model = "NVIDIA H200"});
  CHECK(conf() == "node02:8 node03:4 4");
  for (auto& n : in.spec.nodes)
    if (n.name == "node01") n.hardware.gpus = 2;  // none was found there
  CHECK(conf() == "node01:2 node02:8 node03:4 2");
}

TEST_CASE("Slurm keeps accounts when the leader's role names that playbook, on all nodes alike", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.playbooks["base"].steps = {
      step("conf", "node",
           {{"content", "{{#accounting}}slurmdbd{{/accounting}}{{^accounting}}none{{/accounting}}"}})};
  const auto conf = [&](const std::string& node) {
    return planned(in).find(node + "/configure")->params["steps"][0]["params"]["content"].get<std::string>();
  };
  CHECK(conf("node01") == "none");
  in.playbooks["accounting"] = {"accounting", "", {}};
  in.spec.roles["cpu"].push_back("accounting");
  CHECK(conf("node01") == "slurmdbd");
  CHECK(conf("node03") == "slurmdbd");
}

TEST_CASE("RDMA is declared by the playbook that sets it up: its partners are the nodes whose role has it",
          "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.playbooks["base"].steps = {
      step("conf", "node",
           {{"content", "{{#rdma_peers}}{{name}} {{/rdma_peers}}{{#soft_roce}}soft{{/soft_roce}}"}})};
  const auto conf = [&](const std::string& node) {
    return planned(in).find(node + "/configure")->params["steps"][0]["params"]["content"].get<std::string>();
  };
  CHECK(conf("node01") == "");
  in.playbooks["interconnect"] = {"interconnect", "", {}};
  in.spec.roles["cpu"].push_back("interconnect");
  in.spec.vars["soft_roce"] = "yes";
  CHECK(conf("node01") == "node02 node03 soft");
  in.spec.roles["login"] = {"base"};
  in.spec.nodes[2].role = "login";
  CHECK(conf("node01") == "node02 soft");
  CHECK(conf("node03") == "soft");
}

TEST_CASE("partitions called after their section are used again; one of another name makes the disk foreign",
          "[plan]") {
  const PlannerInput in = input();
  const StorageSpec& scratch = *std::find_if(in.spec.storage.begin(), in.spec.storage.end(),
                                             [](const auto& s) { return s.name == "scratch"; });
  DiskFacts d = disk("FAST1", 2ull << 30);
  d.blank = false;
  PartitionFacts log, data;
  log.label = "scratch-log", log.fs_type = "xfs", log.fs_label = "scratch-log", data.label = "scratch";
  d.partitions = {log, data};
  d.signatures = {"xfs label=scratch-log uuid=1"};
  CHECK(is_our_data(d, in.spec.cluster, "node01", scratch));
  d.partitions[1].label =
      "";  // in an MBR none has a name: muster made none of them, whatever the file system is called
  CHECK_FALSE(is_our_data(d, in.spec.cluster, "node01", scratch));
  d.partitions[1].label = "theirs";
  CHECK_FALSE(is_our_data(d, in.spec.cluster, "node01", scratch));
  d.partitions.clear();  // a file system on the whole disk is known by its exact label only
  CHECK_FALSE(is_our_data(d, in.spec.cluster, "node01", scratch));
}

TEST_CASE("a plan says which playbooks were never run on the real thing", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.playbooks["base"].not_exercised = "no GPU here";
  const std::string note = "playbook base has never been run on real hardware: no GPU here";
  const Plan plan = planned(in);
  CHECK(std::count(plan.notes.begin(), plan.notes.end(), note) == 1);
  CHECK(render_plan(plan, false).find(note) != std::string::npos);
}

TEST_CASE("a selector selects what it names, and without a name nothing", "[plan]") {
  const DiskFacts found = disk("S1", 2ull << 30);
  DiskFacts nameless = found;
  nameless.serial = nameless.wwid = nameless.model = "";
  const auto matches = [&](const DiskMatch& match) {
    return disk_matches(match, found) || disk_matches(match, nameless);
  };
  DiskMatch match;
  CHECK_FALSE(matches(match));
  for (const char* nothing : {"", " ", "*", "**", "?*", "* *"}) {
    INFO(nothing);
    for (auto field : {&DiskMatch::serial, &DiskMatch::wwid, &DiskMatch::model, &DiskMatch::transport}) {
      DiskMatch one;
      one.*field = nothing;
      CHECK_FALSE(matches(one));
      one.size_bytes = int64_t{2} << 30;
      CHECK_FALSE(matches(one));
    }
    DiskMatch listed;
    listed.serials = {nothing};
    CHECK_FALSE(matches(listed));
  }
  match.size_bytes = 0;
  CHECK_FALSE(matches(match));
  match.size_bytes = int64_t{2} << 30;
  CHECK(disk_matches(match, found));
  match.serial = "S*";
  CHECK(disk_matches(match, found));
  match.model = "OTHER";
  CHECK_FALSE(disk_matches(match, found));
}
