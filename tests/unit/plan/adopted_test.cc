// Plans for hosts that were adopted: configured like any other node, never installed, booted or switched off.
#include <algorithm>

#include "controller/plan/plan.h"
#include "controller/plan/planner.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "sys/os.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

// node03 is a host that keeps its system.
PlannerInput with_host() {
  PlannerInput in = with_nodes(installed);
  for (auto& node : in.spec.nodes) {
    if (node.name != "node03") continue;
    node.adopt = {"10.20.0.13", 22, "root", "SHA256:key"};
    node.image.clear();
    node.mac.clear();
    node.power = {};
    node.disks.erase("os");
  }
  NodeObservation& seen = in.nodes["node03"];
  seen.mode = wire::Mode::adopted;
  seen.image_digest.clear();
  return in;
}

void want(PlannerInput& in, RequestKind kind, std::vector<std::string> nodes) {
  in.request.kind = kind;
  in.request.nodes = std::move(nodes);
}

std::string refusal(const PlannerInput& in) {
  auto made = make_plan(in);
  if (!made.ok()) return "error: " + made.error().message;
  return made->refusals.empty() ? "nothing" : made->refusals[0].rule;
}

// Nothing that replaces its system, in any plan.
void check_kept(const Plan& plan) {
  for (const auto& action : plan.actions) {
    CAPTURE(action.id);
    if (action.node == "node03")
      CHECK((action.kind == ActionKind::steps || action.kind == ActionKind::check ||
             action.kind == ActionKind::inventory));
  }
  for (const auto& d : plan.destroys) CHECK((d.node != "node03" || d.group != "os"));
}

bool takes_part(const Plan& plan, const std::string& node) {
  return std::find(plan.nodes.begin(), plan.nodes.end(), node) != plan.nodes.end();
}

}  // namespace

TEST_CASE("an adopted node is configured live, also with the steps others have baked", "[plan][adopt]") {
  PlannerInput in = with_host();
  want(in, RequestKind::adopt, {"node03"});
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::adopt);
  CHECK(plan.nodes == std::vector<std::string>{"node03"});
  CHECK(plan.images.empty());
  CHECK(plan.destroys.empty());
  check_kept(plan);
  const Action* configure = plan.find("node03/configure");
  REQUIRE(configure);
  CHECK(configure->params["steps"][0]["id"] == "base/packages");
  // Also while an image of the others is not built.
  in.images.clear();
  CHECK(planned(in).actions.size() == plan.actions.size());
}

TEST_CASE("the plan to adopt a host is the same before and after its agent came", "[plan][adopt]") {
  PlannerInput in = with_host();
  want(in, RequestKind::adopt, {"node03"});
  const Plan after = planned(in);
  NodeObservation& seen = in.nodes["node03"];
  seen.online = false;
  seen.mode.reset();
  seen.state = NodeState::unknown;
  seen.product_uuid.clear();
  CHECK(plan_digest(planned(in)) == plan_digest(after));
  seen.facts->disks[3].content_hash = "sha256:other";
  CHECK(plan_digest(planned(in)) ==
        plan_digest(after));  // what is in use is not destroyed, so the plan does not depend on it
}

TEST_CASE("an adopted node that is accepted has nothing to do", "[plan][adopt]") {
  PlannerInput in = with_host();
  want(in, RequestKind::adopt, {"node03"});
  in.nodes["node03"].config_digest = planned(in).config_digests.at("node03");
  in.nodes["node03"].state = NodeState::accepted;
  CHECK(planned(in).empty());
  want(in, RequestKind::up, {"node03"});
  const Plan up = planned(in);
  CHECK(up.empty());
  CHECK(up.unchanged == std::vector<std::string>{"node03"});
}

TEST_CASE("a blank data disk is formatted by name, a foreign one and the disk of the system never",
          "[plan][adopt]") {
  PlannerInput in = with_host();
  want(in, RequestKind::adopt, {"node03"});
  auto& disks = in.nodes["node03"].facts->disks;
  disks[3] = disk("BULKnode03", 2ull << 30);
  disks[1] = disk("FASTanode03", 2ull << 30);
  disks[2] = disk("FASTbnode03", 2ull << 30);
  const Plan plan = planned(in);
  REQUIRE(plan.destroys.size() == 3);
  for (const auto& d : plan.destroys) CHECK(!d.serial.starts_with("OS"));
  check_kept(plan);
  disks[1].blank = false;
  disks[1].content = "ext4 label=FAMILY";
  CHECK(refusal(in) == "disk-foreign");
  // The system lies on a disk that a data group would match.
  disks[1] = disk("FASTanode03", 2ull << 30);
  disks[1].is_os_ancestor = true;
  in.spec.nodes[2].disks.at("fast").policy = DiskPolicy::format;
  CHECK(refusal(in) == "disk-in-use");
}

TEST_CASE("reimage and admit refuse an adopted node", "[plan][adopt]") {
  PlannerInput in = with_host();
  want(in, RequestKind::reimage, {"node03"});
  CHECK(refusal(in) == "adopted-node");
  in.request.force = {in.request.nodes.begin(), in.request.nodes.end()};
  CHECK(refusal(in) == "adopted-node");
  want(in, RequestKind::admit, {"node03"});
  CHECK(refusal(in) == "adopted-node");
  want(in, RequestKind::reimage, {"node02", "node03"});
  CHECK(refusal(in) == "adopted-node");
  want(in, RequestKind::adopt, {"node02"});
  CHECK(refusal(in).find("not with 'adopt'") != std::string::npos);
  want(in, RequestKind::adopt, {});
  CHECK(refusal(in).find("this kind of plan requires node names") != std::string::npos);
}

TEST_CASE("an adopted node whose agent is gone, or never was there, holds no other and is never booted",
          "[plan][adopt]") {
  for (const bool ever : {true, false}) {
    CAPTURE(ever);
    PlannerInput in = with_host();
    NodeObservation& seen = in.nodes["node03"];
    seen.online = false;
    if (!ever) seen = NodeObservation{};
    in.request.kind = RequestKind::up;
    const Plan up = planned(in);
    check_kept(up);
    CHECK_FALSE(takes_part(up, "node03"));
    CHECK(takes_part(up, "node01"));
    CHECK(up.left_out == std::vector<std::string>{"node03"});
    std::string notes;
    for (const auto& note : up.notes) notes += note + "\n";
    CHECK(notes.find("muster node add node03 --adopt 10.20.0.13") != std::string::npos);
    want(in, RequestKind::up, {"node03"});
    CHECK(refusal(in) == "not-running");
    want(in, RequestKind::accept, {"node03"});
    CHECK(refusal(in) == "not-running");
  }
}

TEST_CASE("an adopted node that answers but was forgotten sends its inventory, and is not booted",
          "[plan][adopt]") {
  PlannerInput in = with_host();
  in.nodes["node03"].facts.reset();
  in.request.kind = RequestKind::up;
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::discover);
  CHECK(plan.nodes == std::vector<std::string>{"node03"});
  check_kept(plan);
}

TEST_CASE("another host behind the same name is refused", "[plan][adopt]") {
  PlannerInput in = with_host();
  want(in, RequestKind::adopt, {"node03"});
  in.nodes["node03"].facts->system.uuid = "uuid-of-another";
  CHECK(refusal(in) == "node-swapped");
  in.request.force = {in.request.nodes.begin(), in.request.nodes.end()};
  CHECK(refusal(in) == "node-swapped");
}

TEST_CASE("the firewall stays open where a host was adopted, and its SSH server is tested there",
          "[plan][adopt]") {
  PlannerInput in = with_host();
  for (const char* name : {"firewall", "ssh"}) {
    const std::string text = Files().read(source_dir() + "/playbooks/" + name + ".yaml").value();
    in.playbooks[name] = parse_playbook(text).playbook;
    in.spec.roles["cpu"].push_back(name);
  }
  for (auto& node : in.spec.nodes)
    if (node.name == "node03") node.adopt.port = 2222;
  want(in, RequestKind::adopt, {"node03"});
  const auto ports = [&](const Action& action) {
    std::vector<Json> out;
    for (const Json& step : action.params["steps"]) {
      if (step["id"] == "ssh/harden") out.push_back(step["params"]["port"]);
      if (step["id"] == "firewall/rules")
        for (const Json& rule : step["params"]["allow"])
          if (!rule.contains("from")) out.push_back(rule["port"]);
    }
    return out;
  };
  const Plan plan = planned(in);
  const Action* configure = plan.find("node03/configure");
  REQUIRE(configure);
  CHECK(ports(*configure) == std::vector<Json>{22, 2222, 2222});
}

namespace {

// node03 is declared to be installed, and has no BMC; what runs there was adopted.
PlannerInput without_bmc() {
  PlannerInput in = with_nodes(installed);
  for (auto& node : in.spec.nodes)
    if (node.name == "node03") {
      node.power = {};
      node.power.driver = "ssh";
    }
  NodeObservation& seen = in.nodes["node03"];
  seen.mode = wire::Mode::adopted;
  seen.image_digest.clear();
  return in;
}

bool left_out(const Plan& plan, const std::string& node) {
  return std::find(plan.left_out.begin(), plan.left_out.end(), node) != plan.left_out.end();
}

}  // namespace

TEST_CASE("a node without a BMC is installed through the agent of what it runs", "[plan][kexec]") {
  PlannerInput in = without_bmc();
  want(in, RequestKind::reimage, {"node03"});
  const Plan plan = planned(in);
  REQUIRE(plan.find("node03/netboot"));
  CHECK(plan.find("node03/netboot")->title.find("kexec") != std::string::npos);
  CHECK(plan.find("node03/image"));
  CHECK(std::any_of(plan.notes.begin(), plan.notes.end(),
                    [](const std::string& note) { return note.starts_with("node03 has no BMC"); }));
}

TEST_CASE("a node without a BMC and without an agent is out of reach", "[plan][kexec]") {
  PlannerInput in = without_bmc();
  NodeObservation& seen = in.nodes["node03"];
  seen.online = false;
  if (GENERATE(true, false)) {
    seen.mode.reset();
    seen.facts.reset();
    seen.state = NodeState::unknown;
  }
  want(in, RequestKind::reimage, {"node03"});
  CHECK(refusal(in) == "not-running");
  want(in, RequestKind::up, {});
  const Plan plan = planned(in);
  CHECK(left_out(plan, "node03"));
  CHECK_FALSE(takes_part(plan, "node03"));
  CHECK(plan.kind != PlanKind::wake);
  CHECK(plan.kind != PlanKind::discover);
}

namespace {

wire::SlotProgram program(const std::string& path) {
  return {path, "sha256:" + std::string(63, 'a') + path.back(), 100 + static_cast<int64_t>(path.size()),
          0755};
}

// Its steps are the measuring modules', as those of the profiles are.
PlannerInput with_checks() {
  PlannerInput in = with_host();
  in.programs = {program("/usr/sbin/muster-agent"), program("/usr/lib/muster/muster-accept"),
                 program("/usr/lib/muster/muster-mpi-check"), program("/usr/lib/muster/muster-accept-nvml"),
                 program("/usr/lib/muster/muster-accept-gpu")};
  const auto check = [](const std::string& name, const std::string& phase, const char* module, Json params,
                        int stage = 1) {
    PlaybookStep out = step(name, phase, std::move(params), stage);
    out.module = module;
    return out;
  };
  PlaybookStep together = check("all-reduce", "cluster", "accept_mpi", {{"hosts", "{{nodes}}"}}, 2);
  together.on = "leader";
  in.playbooks["acceptance/lab"].steps = {
      check("before", "node", "accept",
            {{"kernel", "counters"}, {"options", {{"save", "{folder}/muster-counters.json"}}}}),
      check("dgemm", "node", "accept", {{"kernel", "dgemm"}}),
      check("links", "cluster", "accept_links", {{"peers", "{{peers}}"}, {"address", "{{node.address}}"}}),
      together};
  in.nodes["node03"].facts->gpus.emplace_back();
  want(in, RequestKind::accept, {});
  return in;
}

std::vector<std::string> named(const Plan& plan, const std::string& action) {
  std::vector<std::string> out;
  const Action* found = plan.find(action);
  REQUIRE(found);
  for (const Json& one : found->params.value("programs", Json::array()))
    out.push_back(one["name"].get<std::string>());
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("checks of an adopted host name the programs that they run, by digest", "[plan][adopt][carried]") {
  PlannerInput in = with_checks();
  const Plan plan = planned(in);
  // The all-reduce is started from another node, and runs on this one as well.
  CHECK(named(plan, "node03/accept") == Names{"muster-accept", "muster-mpi-check", "muster-accept-nvml"});
  CHECK(named(plan, "node03/accept-1") == Names{"muster-accept"});
  const Json order = plan.find("node03/accept")->params.json();
  CHECK(order["base_url"] == "http://10.20.0.1:7480");
  CHECK(order["programs"][0]["sha256"] == std::string(63, 'a') + "t");
  CHECK(order["programs"][0]["size"] == in.programs[1].size);
  CHECK(order["steps"][0]["params"]["options"]["save"] == "{folder}/muster-counters.json");
  // What an order is sent as has them, too.
  CHECK(plan.find("node03/accept")->params.without_shared().contains("programs"));

  SECTION("another program is another plan") {
    in.programs[1].sha256[10] = 'b';
    CHECK(plan_digest(planned(in)) != plan_digest(plan));
  }
  SECTION("one that the controller does not have is not named") {
    in.programs.resize(2);
    CHECK(named(planned(in), "node03/accept") == Names{"muster-accept"});
    in.programs.clear();
    CHECK_FALSE(planned(in).find("node03/accept")->params.contains("programs"));
    CHECK_FALSE(planned(in).find("node03/accept")->params.contains("base_url"));
  }
  SECTION("without GPUs there is no driver that counts anything") {
    in.nodes["node03"].facts->gpus.clear();
    CHECK(named(planned(in), "node03/accept") == Names{"muster-accept", "muster-mpi-check"});
  }
  SECTION("RDMA checks name perftest, too") {
    for (const char* name : {"ib_write_bw", "ib_write_lat", "librdmacm", "libpci", "ib_read_bw"})
      in.programs.push_back(program(std::string("/usr/lib/muster/") + name));
    in.playbooks["acceptance/lab"].steps[2].module = "accept_rdma";
    CHECK(named(planned(in), "node03/accept-1") ==
          Names{"muster-accept", "ib_write_bw", "ib_write_lat", "librdmacm", "libpci"});
  }
  SECTION("GPU checks name their own program") {
    in.playbooks["acceptance/lab"].steps[1].params["kernel"] = "gpu-gemm";
    in.playbooks["acceptance/lab"].steps[3].params["load"] = "nccl";
    in.playbooks["acceptance/lab"].steps.erase(in.playbooks["acceptance/lab"].steps.begin());
    CHECK(named(planned(in), "node03/accept") == Names{"muster-mpi-check", "muster-accept-gpu"});
  }
}

TEST_CASE("of several programs for GPUs an order names the one that the host's driver runs",
          "[plan][adopt][carried]") {
  PlannerInput in = with_checks();
  in.programs.back() = program("/usr/lib/muster/cuda12/muster-accept-gpu");
  in.programs.push_back(program("/usr/lib/muster/cuda13/muster-accept-gpu"));
  in.programs.back().sha256.back() = '3';
  in.playbooks["acceptance/lab"].steps[1].params["kernel"] = "gpu-gemm";
  in.playbooks["acceptance/lab"].steps.resize(2);
  in.playbooks["acceptance/lab"].steps.erase(in.playbooks["acceptance/lab"].steps.begin());
  for (const auto& [driver, end] : {std::pair{"580.65.06", '3'}, {"550.54.15", 'u'}, {"470.82.01", 'u'}}) {
    CAPTURE(driver);
    in.nodes["node03"].facts->properties["GPU driver"] = driver;
    const Plan plan = planned(in);
    REQUIRE(named(plan, "node03/accept") == Names{"muster-accept-gpu"});
    const Json order = plan.find("node03/accept")->params.json();
    CHECK(order["programs"][0]["sha256"].get<std::string>().back() == end);
  }
}

TEST_CASE("an order of a node that muster imaged names none, and says /run", "[plan][adopt][carried]") {
  PlannerInput in = with_checks();
  const Plan plan = planned(in);
  in.programs.clear();
  for (auto& one : in.playbooks["acceptance/lab"].steps)
    if (one.params.contains("options")) one.params["options"]["save"] = "/run/muster-counters.json";
  const Plan before = planned(in);
  int compared = 0;
  for (const auto& action : plan.actions) {
    if (action.node == "node03") continue;
    CAPTURE(action.id);
    REQUIRE(before.find(action.id));
    CHECK(action.params == before.find(action.id)->params);
    compared += action.kind == ActionKind::check;
  }
  CHECK(compared > 2);
}

TEST_CASE("a playbook for another distribution is refused where the node shows which it runs",
          "[plan][adopt]") {
  PlannerInput in = with_host();
  in.playbooks["base"].only_for = {"debian", "use other"};
  want(in, RequestKind::adopt, {"node03"});
  CHECK(refusal(in) == "nothing");  // an older agent does not report it
  in.nodes["node03"].facts->os_id = "debian";
  CHECK(refusal(in) == "nothing");
  in.nodes["node03"].facts->os_id = "ubuntu";
  CHECK(refusal(in) == "distribution");
  CHECK(make_plan(in)->refusals[0].node == "node03");
  // Nothing of a playbook is run.
  want(in, RequestKind::accept, {"node03"});
  CHECK(refusal(in) == "nothing");
}

TEST_CASE("a node that gets another image is judged by that, others by what they run", "[plan]") {
  PlannerInput in = with_nodes(installed);
  in.playbooks["base"].only_for = {"debian", ""};
  in.spec.images["cpu"].distribution = find_distribution("ubuntu");
  for (auto& [name, seen] : in.nodes) seen.facts->os_id = "debian";
  in.request.force = {"node01"};
  want(in, RequestKind::up, {"node01"});
  CHECK(refusal(in) == "nothing");
  in.nodes["node01"].facts->os_id.clear();
  CHECK(refusal(in) == "distribution");
  in.nodes["node01"].facts->os_id = "debian";
  in.request.force.clear();
  want(in, RequestKind::reimage, {"node01"});
  CHECK(refusal(in) == "distribution");
}
