// A cluster of four roles with the shipped playbooks: whatever a playbook says of "the nodes" is about those
// that have it, its leader is the one that is declared, and no node waits for one that is not concerned.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "controller/plan/lint.h"
#include "tests/unit/plan/shipped.h"

using namespace muster;
using namespace muster::testing;

namespace {

using Names = std::vector<std::string>;

// The head's name sorts last, that of the storage nodes first. Only GPU and login nodes run MPI, the storage
// nodes take no jobs and have no ssh and firewall of muster's, the login node is not monitored.
struct Roles {
  std::string head = "base, ssh, firewall, scheduler, monitoring, storage-nfs";
  std::string leads = "leads: [ scheduler, monitoring ]";
  std::string login = "base, ssh, firewall, mpi, scheduler, storage-nfs";
  std::string gpu =
      "base, ssh, firewall, mpi, interconnect, scheduler, monitoring, storage-nfs, storage-shared";
  std::string storage = "base, monitoring, storage-nfs, storage-shared";
};

std::string node_text(const std::string& name, int first, int count, const std::string& role,
                      const std::string& rest) {
  std::string macs;
  for (int i = 0; i < count; ++i)
    macs += fmt::format("{}\"52:54:00:20:00:{:02}\"", i > 0 ? ", " : "", first + i);
  return fmt::format(R"(  - name: {}
    role: {}
    power: {{ driver: redfish, address: "10.20.1.{}{}", secret: bmc }}
    mac: [ {} ]
    image: cpu
    {}
)",
                     name, role, first, count > 1 ? "{n}" : "", macs, rest);
}

std::string spec_of(const Roles& roles) {
  const std::string os = "os: { match: { serial: \"OS*\", count: 1 } }";
  const std::string bulk = os + ", bulk: { match: { serial: \"BULK*\", count: 1 }, policy: format-if-blank }";
  const std::string home =
      bulk + ", home: { match: { serial: \"HOME*\", count: 1 }, policy: format-if-blank }";
  const std::string cpus = "hardware: { cpus: 4, memory: \">= 8 GiB\" }\n    ";
  const std::string gpus = "hardware: { cpus: 4, memory: \">= 8 GiB\", gpus: 8 }\n    ";
  return fmt::format(
      R"(cluster: gaggle
network:
  provisioning: {{ cidr: 10.20.0.0/24, dhcp: managed }}
  bmc: {{ cidr: 10.20.1.0/24 }}
users:
  ops: {{ keys: [ "{}" ], sudo: true }}
images:
  cpu: {{ recipe: debian-12, kernel: cloud, bake: [ base ] }}
nodes:
{}{}{}{}storage:
  shared: {{ engine: moosefs, disks: bulk, copies: 2, mount: /shared }}
  home: {{ engine: nfs, server: arc01, disks: home, mount: /home/shared }}
roles:
  head: {{ playbooks: [ {} ], {} }}
  login: {{ playbooks: [ {} ] }}
  gpu: {{ playbooks: [ {} ] }}
  storage: {{ playbooks: [ {} ] }}
acceptance: {{ profile: standard }}
)",
      kKey, node_text("arc[01-02]", 1, 2, "storage", cpus + "disks: { " + home + " }"),
      node_text("gpu[01-03]", 3, 3, "gpu", gpus + "disks: { " + bulk + " }"),
      node_text("login01", 6, 1, "login", cpus + "disks: { " + bulk + " }"),
      node_text("zhead01", 7, 1, "head", cpus + "disks: { " + os + " }"), roles.head,
      roles.leads.empty() ? "leads: []" : roles.leads, roles.login, roles.gpu, roles.storage);
}

// Steps of the plan by id and node.
struct Steps {
  std::map<std::string, std::map<std::string, Json>> by_id;
  std::map<std::string, const Action*> actions;
  explicit Steps(const Plan& plan) {
    for (const auto& action : plan.actions) {
      actions[action.id] = &action;
      for (const Json& step : action.params.value("steps", Json::array()))
        by_id[step["id"].get<std::string>()][action.node] = step;
    }
  }
  Names on(const std::string& id) const {
    Names out;
    const auto found = by_id.find(id);
    if (found != by_id.end())
      for (const auto& [node, step] : found->second) out.push_back(node);
    return out;
  }
  Json params(const std::string& id, const std::string& node) const {
    CAPTURE(id, node);
    REQUIRE(by_id.count(id));
    REQUIRE(by_id.at(id).count(node));
    return by_id.at(id).at(node)["params"];
  }
  std::string content(const std::string& id, const std::string& node) const {
    return params(id, node)["content"].get<std::string>();
  }
};

Names names(const Json& list) {
  Names out;
  for (const Json& one : list) out.push_back(one["name"].get<std::string>());
  return out;
}

// The words that stand behind `mark` in a text.
Names after(const std::string& text, const std::string& mark) {
  Names out;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    out.push_back(text.substr(begin, text.find_first_of(" ,\n\"(:", begin) - begin));
  }
  return out;
}

const Names kSlurm = {"gpu01", "gpu02", "gpu03", "login01", "zhead01"};
const Names kMpi = {"gpu01", "gpu02", "gpu03", "login01"};
const Names kMonitored = {"arc01", "arc02", "gpu01", "gpu02", "gpu03", "zhead01"};
const Names kShared = {"arc01", "arc02", "gpu01", "gpu02", "gpu03"};
const Names kAll = {"arc01", "arc02", "gpu01", "gpu02", "gpu03", "login01", "zhead01"};

}  // namespace

TEST_CASE("Slurm is of the nodes that have the scheduler, and led where the spec says", "[plan][roles]") {
  const Plan plan = planned_of(shipped_input(spec_of({})));
  const Steps steps(plan);
  CHECK(steps.on("scheduler/configuration") == kSlurm);
  for (const auto& node : kSlurm) {
    const std::string conf = steps.content("scheduler/configuration", node);
    CHECK(after(conf, "NodeName=") == kSlurm);
    CHECK(after(conf, "SlurmctldHost=") == Names{"zhead01"});
    CHECK(conf.find("GresTypes=gpu") != std::string::npos);
  }
  CHECK(steps.on("scheduler/controller") == Names{"zhead01"});
  CHECK(steps.on("scheduler/account of the test job") == Names{"zhead01"});
  CHECK(steps.on("scheduler/no controller") == Names{"gpu01", "gpu02", "gpu03", "login01"});
  CHECK(steps.on("scheduler/gpus[gpu01]") == Names{"gpu01"});
  CHECK(steps.on("scheduler/nodes take jobs") == Names{"zhead01"});
  CHECK(names(steps.params("scheduler/nodes take jobs", "zhead01")["nodes"]) == kSlurm);
  // Its test runs as MPI's user: where that is.
  CHECK(steps.on("scheduler/all-reduce through srun") == Names{"gpu01"});
  CHECK(names(steps.params("scheduler/all-reduce through srun", "gpu01")["hosts"]) == kMpi);
}

TEST_CASE("Prometheus scrapes the nodes that have the monitoring, MPI's hosts are those that have it",
          "[plan][roles]") {
  const Plan plan = planned_of(shipped_input(spec_of({})));
  const Steps steps(plan);
  CHECK(steps.on("monitoring/exporter") == kMonitored);
  CHECK(steps.on("monitoring/targets") == Names{"zhead01"});
  CHECK(after(steps.content("monitoring/targets", "zhead01"), "node: ") == kMonitored);
  CHECK(steps.on("monitoring/all targets up") == Names{"zhead01"});
  CHECK(names(steps.params("monitoring/all targets up", "zhead01")["nodes"]) == kMonitored);
  CHECK(steps.on("monitoring/no Prometheus here") == Names{"arc01", "arc02", "gpu01", "gpu02", "gpu03"});
  CHECK(steps.on("mpi/hosts") == kMpi);
  for (const auto& node : kMpi)
    CHECK(steps.content("mpi/hosts", node) ==
          "gpu01 slots=1\ngpu02 slots=1\ngpu03 slots=1\nlogin01 slots=1\n");
}

TEST_CASE("Prometheus scrapes the controller where it can reach its metrics", "[plan][roles]") {
  const auto target = [](const std::string& metrics, const std::string& controller = "10.20.0.250") {
    PlannerInput in = shipped_input(spec_of({}));
    in.controller_address = controller;
    in.metrics_address = metrics;
    const Plan plan = planned_of(in);
    const std::string content = Steps(plan).content("monitoring/targets", "zhead01");
    const size_t job = content.find("job_name: muster\n");
    if (job == std::string::npos) return std::string();
    const size_t begin = content.find('"', job) + 1;
    return content.substr(begin, content.find('"', begin) - begin);
  };
  CHECK(target("") == "");
  CHECK(target("10.20.0.250") == "10.20.0.250:7481");
  CHECK(target("fd00::1") == "[fd00::1]:7481");
  // Loopback is of the controller host, which may be the leader itself.
  CHECK(target("127.0.0.1") == "");
  CHECK(target("::1") == "");
  const std::string leader = shipped_input(spec_of({})).spec.node("zhead01")->address;
  CHECK(target("127.0.0.1", leader) == "127.0.0.1:7481");
}

TEST_CASE("names and time are of all nodes; ssh and firewall are tested on the next that has them",
          "[plan][roles]") {
  const Plan plan = planned_of(shipped_input(spec_of({})));
  const Steps steps(plan);
  CHECK(steps.on("base/hosts file") == kAll);
  for (const auto& node : kAll)
    for (const auto& other : kAll)
      CHECK(steps.content("base/hosts file", node).find(" " + other + "\n") != std::string::npos);
  CHECK(steps.on("base/time for the cluster") == Names{"arc01"});
  CHECK(steps.content("base/time sources", "zhead01") == "server 10.20.0.11 iburst\n");
  const std::map<std::string, std::string> next = {
      {"gpu01", "10.20.0.14"}, {"gpu03", "10.20.0.16"}, {"login01", "10.20.0.17"}, {"zhead01", "10.20.0.13"}};
  for (const auto& [node, address] : next) {
    CHECK(steps.params("ssh/passwords are refused", node)["host"] == address);
    CHECK(steps.params("firewall/ssh is open", node)["host"] == address);
    CHECK(names(steps.actions.at(node + "/ssh-1")->params["ring"]) == kSlurm);
  }
  CHECK(steps.on("ssh/passwords are refused") == kSlurm);
}

TEST_CASE("a storage section is of the nodes that have its engine's playbook", "[plan][roles]") {
  const Plan plan = planned_of(shipped_input(spec_of({})));
  const Steps steps(plan);
  // login01 has a disk of the group, but not the playbook.
  CHECK(names(steps.params("storage-shared/members[shared]", "arc01")["members"]) == kShared);
  CHECK(steps.on("storage-shared/mount[shared]") == kShared);
  CHECK(names(steps.params("storage-shared/master[shared]", "arc01")["clients"]) ==
        Names{"arc02", "gpu01", "gpu02", "gpu03"});
  CHECK(steps.params("storage-shared/read on another node[shared]", "gpu03")["file"] == "arc01");
  CHECK(steps.params("storage-nfs/read on another node[home]", "gpu03")["file"] == "login01");
  CHECK(names(steps.actions.at("gpu03/storage-shared-7")->params["ring"]) == kShared);
  // Acceptance goes by the same.
  CHECK(steps.on("standard/shared storage[shared]") == kShared);
  CHECK(steps.on("standard/shared storage[home]") == kAll);
  CHECK(names(steps.params("standard/shared file of another node[shared]", "gpu01")["peers"]) ==
        Names{"arc01", "arc02", "gpu02", "gpu03"});
  CHECK(names(steps.params("standard/shared file of another node[home]", "gpu01")["peers"]) ==
        Names{"arc01", "arc02", "gpu02", "gpu03", "login01", "zhead01"});
}

TEST_CASE("acceptance measures MPI and RDMA where they are, links everywhere", "[plan][roles]") {
  const Plan plan = planned_of(shipped_input(spec_of({})));
  const Steps steps(plan);
  CHECK(steps.on("standard/all-reduce over mpi") == Names{"gpu01"});
  CHECK(names(steps.params("standard/all-reduce over mpi", "gpu01")["hosts"]) == kMpi);
  for (const std::string test : {"standard/all-reduce", "standard/training load"}) {
    CHECK(steps.on(test) == Names{"arc01"});
    CHECK(names(steps.params(test, "arc01")["hosts"]) == kAll);
  }
  // Over GPUs one of the nodes that have some leads, and those without have nothing to do with it.
  CHECK(names(steps.params("standard/nccl", "gpu01")["hosts"]) == Names{"gpu01", "gpu02", "gpu03"});
  CHECK(steps.on("standard/nccl serves") == Names{"gpu02", "gpu03"});
  CHECK(steps.on("standard/dgemm") == kAll);
  CHECK(steps.on("standard/links") == kAll);
  CHECK(steps.on("standard/rdma") == Names{"gpu01", "gpu02", "gpu03"});
  CHECK(names(steps.params("standard/rdma", "gpu02")["peers"]) == Names{"gpu01", "gpu03"});
}

TEST_CASE("no node waits for the leader of something that it has not", "[plan][roles]") {
  const PlannerInput in = shipped_input(spec_of({}));
  const Plan plan = planned_of(in);
  CHECK(lint_plan(plan).empty());
  std::set<std::string> seen;
  for (const auto& action : plan.actions)
    for (const auto& dependency : action.after) {
      const std::string leader = dependency.action.substr(0, dependency.action.find('/'));
      if (!dependency.hard || leader == action.node) continue;
      const std::string stage = dependency.action.substr(leader.size() + 1);
      const std::string playbook = stage.substr(0, stage.rfind('-'));
      CAPTURE(action.id, dependency.action);
      CHECK(in.spec.plays(*in.spec.node(action.node), playbook));
      CHECK(in.spec.plays(*in.spec.node(leader), playbook));
      seen.insert(action.node + " " + playbook);
    }
  // Those that have it are.
  for (const std::string both :
       {"gpu02 scheduler", "login01 scheduler", "arc02 monitoring", "gpu02 storage-shared"}) {
    CAPTURE(both);
    CHECK(seen.count(both) == 1);
  }
}

TEST_CASE("what has no declared leader is led by the first node that has it", "[plan][roles]") {
  Roles roles;
  roles.leads = "";
  SECTION("the first node of all has no scheduler") {
    const Steps steps(planned_of(shipped_input(spec_of(roles))));
    CHECK(steps.on("scheduler/controller") == Names{"gpu01"});
    CHECK(steps.on("monitoring/targets") == Names{"arc01"});
    CHECK(after(steps.content("scheduler/configuration", "zhead01"), "SlurmctldHost=") == Names{"gpu01"});
  }
  SECTION("accounting is led where Slurm is") {
    roles.leads = "leads: [ scheduler ]";
    roles.head = "accounting, " + roles.head;
    roles.gpu = "accounting, " + roles.gpu;
    const Steps steps(planned_of(shipped_input(spec_of(roles))));
    CHECK(steps.on("accounting/database") == Names{"zhead01"});
    CHECK(steps.on("accounting/no database") == Names{"gpu01", "gpu02", "gpu03"});
    for (const auto& node : kSlurm)
      CHECK(after(steps.content("scheduler/configuration", node), "AccountingStorageHost=") ==
            Names{"zhead01"});
  }
}

TEST_CASE("where fewer than two nodes have MPI its tests do not apply, and say why", "[plan][roles]") {
  Roles roles;
  roles.gpu = "base, ssh, firewall, scheduler";
  SECTION("one") {
    const Steps steps(planned_of(shipped_input(spec_of(roles))));
    const std::string test = "standard/all-reduce over mpi";
    CHECK(steps.on(test) == Names{"login01"});
    CHECK(steps.by_id.at(test).at("login01")["module"] == "not_applicable");
    CHECK(steps.by_id.at(test).at("login01")["mandatory"] == false);
    CHECK(steps.params(test, "login01")["reason"] == "fewer than two nodes have the playbook mpi");
    // Through Slurm one node is enough.
    CHECK(names(steps.params("scheduler/all-reduce through srun", "login01")["hosts"]) == Names{"login01"});
  }
  SECTION("none") {
    roles.login = "base, scheduler";
    const Steps steps(planned_of(shipped_input(spec_of(roles))));
    CHECK(steps.on("standard/all-reduce over mpi") == Names{"arc01"});
    CHECK(steps.by_id.at("standard/all-reduce over mpi").at("arc01")["module"] == "not_applicable");
    CHECK(steps.by_id.at("scheduler/all-reduce through srun").at("zhead01")["module"] == "not_applicable");
  }
}

TEST_CASE("what shipped steps are among exists", "[plan][roles]") {
  const auto playbooks = shipped_playbooks();
  for (const auto& [name, playbook] : playbooks)
    for (const auto& step : playbook.steps)
      if (!step.among.empty() && step.among != kGroup) CHECK(playbooks.count(step.among) == 1);
}

TEST_CASE("playbooks follow one another as each role has them, whichever node comes first", "[plan][roles]") {
  Roles roles;
  roles.storage = "base, storage-nfs, storage-shared, monitoring";
  roles.gpu = "base, ssh, firewall, storage-nfs, accounting, scheduler, storage-shared, mpi, interconnect";
  roles.login = "base, scheduler, firewall, mpi";  // contradicts gpu, which names both first
  roles.head = "base, ssh, accounting, scheduler, monitoring";
  roles.leads = "leads: [ scheduler ]";
  const Plan plan = planned_of(shipped_input(spec_of(roles)));
  Names order;
  for (const std::string node : {"arc01", "gpu01", "login01", "zhead01"}) {
    for (const auto& action : plan.actions) {
      if (action.node != node || action.kind != ActionKind::steps) continue;
      const std::string stage = action.id.substr(node.size() + 1);
      order.push_back(node + " " + stage.substr(0, stage.rfind('-')));
    }
  }
  order.erase(std::unique(order.begin(), order.end()), order.end());
  CHECK(order == Names{"arc01 configure", "arc01 storage-nfs", "arc01 storage-shared", "arc01 monitoring",
                       "gpu01 configure", "gpu01 ssh", "gpu01 firewall", "gpu01 storage-nfs",
                       "gpu01 accounting", "gpu01 scheduler", "gpu01 storage-shared", "login01 configure",
                       "login01 firewall", "login01 scheduler", "zhead01 configure", "zhead01 ssh",
                       "zhead01 accounting", "zhead01 scheduler"});
}

TEST_CASE("nodes of one role are drained and installed again while others lead", "[plan][roles]") {
  PlannerInput in = shipped_input(spec_of({}));
  for (const auto& node : in.spec.nodes) make_installed(in, node.name);
  in.request = {RequestKind::drain, {"gpu02", "arc02"}};
  const Steps drained(planned_of(in));
  CHECK(drained.on("scheduler/no new jobs") == Names{"gpu02"});
  in.request = {RequestKind::reimage, {"gpu02"}};
  const Plan again = planned_of(in);
  for (const auto& action : again.actions) CHECK((action.node == "gpu02" || again.only_serves(action.node)));
  CHECK(Steps(again).on("standard/all-reduce").empty());  // its leader takes no part
}

TEST_CASE("one order with steps about different nodes: each has the ring of its own", "[plan][roles]") {
  PlannerInput in = shipped_input(spec_of({}));
  for (const std::string name : {"base", "ssh"}) {
    PlaybookStep asks;
    asks.name = "asks the next";
    asks.module = "probe";
    asks.params = {{"next_live", true}, {"host", "{{next.address}}"}};
    in.playbooks[name].steps.push_back(asks);
  }
  const Plan plan = planned_of(in);
  const Steps steps(plan);
  const ActionParams& params = steps.actions.at("gpu01/configure")->params;
  CHECK_FALSE(params.contains("ring"));
  CHECK(names(params["rings"]["base/asks the next"]) == kAll);
  CHECK(names(params["rings"]["ssh/asks the next"]) == kSlurm);
  CHECK(names(steps.actions.at("arc01/configure")->params["ring"]) == kAll);
}
