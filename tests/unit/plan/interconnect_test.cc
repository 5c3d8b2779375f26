// Rails and the storage network as the steps that the shipped playbooks make of them, and which network a
// storage section goes over.
#include <algorithm>

#include "agent/core/step.h"
#include "controller/plan/interconnect.h"
#include "controller/plan/plan_steps.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/fakes/fake_machine.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::testing;

namespace {

std::string with_networks(const std::string& playbooks) {
  const std::string text =
      replaced(kSpec, "users:\n",
               "  storage: { cidr: 10.30.0.0/24, mtu: 9000, port: \"0000:01:00.1\" }\n"
               "  rails: { count: 2, cidr: \"10.100.{rail}.0/24\", mtu: 9000, qos: { pfc: [ 3 ], "
               "dscp: { 26: 3 } } }\n"
               "users:\n");
  return replaced(text, "cpu: { playbooks: [ base, storage, shared ] }",
                  "cpu: { playbooks: [ " + playbooks + " ] }");
}

std::vector<wire::Step> steps_of(const Spec& spec, const std::string& node, const std::string& playbook) {
  auto book = parse_playbook(text_of(source_dir() + "/playbooks/" + playbook + ".yaml"));
  REQUIRE(book.errors.empty());
  const NodeDisks disks;
  const std::map<std::string, std::string> values;
  const std::map<std::string, const HardwareFacts*> machines;
  ClusterContext cluster(spec, machines);
  NodeContext context({spec, *spec.node(node), disks, "10.20.0.1", values, cluster, true});
  context.enter(playbook);
  std::vector<std::string> problems;
  std::vector<wire::Step> out;
  for (const std::string phase : {"node", "cluster"})
    for (auto& planned : plan_steps(book.playbook, phase, context, problems)) out.push_back(planned.step());
  for (const auto& problem : problems) UNSCOPED_INFO(problem);
  REQUIRE(problems.empty());
  for (const auto& step : out) {
    INFO(step.id);
    Json params = step.params;
    for (const char* key : {"peers_live", "next_live"}) params.erase(key);  // the controller's
    CHECK(check_parameters(*find_step_module(step.module), params).ok());
  }
  return out;
}

}  // namespace

TEST_CASE("declared networks reach the node's ports", "[plan][rails]") {
  const Spec spec = parsed(with_networks("base, networks, interconnect"));
  const auto steps = steps_of(spec, "node02", "networks");
  const Json ports = params_of(steps, "networks/ports");
  CHECK(ports["mac"] == "52:54:00:20:00:02");
  REQUIRE(ports["rails"].size() == 2);
  CHECK(ports["rails"][1] == Json{{"rail", 1},
                                  {"address", "10.100.1.12"},
                                  {"network", "10.100.1.0/24"},
                                  {"kind", "ethernet"},
                                  {"mtu", 9000},
                                  {"port", ""}});
  CHECK(ports["storage"][0]["address"] == "10.30.0.12");
  CHECK(ports["storage"][0]["port"] == "0000:01:00.1");
  CHECK(params_of(steps, "networks/quality of service") ==
        Json{{"pfc", {3}}, {"dscp", {{"26", 3}}}, {"ets", Json::object()}});
  CHECK(params_of(steps, "networks/IPoIB").is_null());
  const auto used = steps_of(spec, "node02", "interconnect");
  CHECK(params_of(used, "interconnect/NCCL").is_null());
  CHECK_FALSE(params_of(used, "interconnect/NCCL over the rails").is_null());
  CHECK(params_of(used, "interconnect/rails are active")["rails"] == true);
}

TEST_CASE("soft-RoCE is made on each rail", "[plan][rails]") {
  const Spec spec = parsed(with_networks("base, networks, interconnect") + "vars: { soft_roce: \"yes\" }\n");
  const auto steps = steps_of(spec, "node03", "interconnect");
  const std::string script = params_of(steps, "interconnect/soft-RoCE devices")["content"].get<std::string>();
  CHECK(script.find("\non rxe0 10.100.0.13\non rxe1 10.100.1.13\n") != std::string::npos);
  CHECK(params_of(steps, "interconnect/soft-RoCE device").is_null());
}

TEST_CASE("without rails playbook interconnect is what it was", "[plan][rails]") {
  const auto steps = steps_of(parsed(replaced(kSpec, "base, storage, shared", "base, interconnect")),
                              "node02", "interconnect");
  CHECK(params_of(steps, "interconnect/NCCL")["content"] == "NCCL_SOCKET_FAMILY=AF_INET\n");
  CHECK(params_of(steps, "interconnect/ports are active") ==
        Json{{"ports", Json::array()}, {"deadline_seconds", 60}});
  CHECK(std::none_of(steps.begin(), steps.end(), [](const wire::Step& s) {
    return s.id.find("rails") != std::string::npos || s.id.find("soft-RoCE") != std::string::npos;
  }));
}

TEST_CASE("InfiniBand rails load IPoIB", "[plan][rails]") {
  const std::string text = replaced(with_networks("base, networks"),
                                    "mtu: 9000, qos: { pfc: [ 3 ], dscp: { 26: 3 } }", "kind: infiniband");
  const auto steps = steps_of(parsed(text), "node01", "networks");
  CHECK(params_of(steps, "networks/IPoIB")["load"] == Json::array({"ib_ipoib"}));
  CHECK(params_of(steps, "networks/ports")["rails"][0]["kind"] == "infiniband");
  CHECK(params_of(steps, "networks/quality of service").is_null());
}

TEST_CASE("an adopted host's ports are left alone, and the plan says why", "[plan][rails]") {
  Spec spec = parsed(with_networks("base, networks"));
  for (auto& node : spec.nodes)
    if (node.name == "node02") node.adopt.host = "10.20.0.12", node.rails.clear(), node.storage = {};
  const auto steps = steps_of(spec, "node02", "networks");
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].module == "not_applicable");
  CHECK_FALSE(steps[0].mandatory);
}

TEST_CASE("the firewall lets a rail in to the node's own address there", "[plan][rails]") {
  const Spec spec = parsed(with_networks("base, networks, firewall"));
  Spec without = spec;
  for (auto& node : without.nodes) node.rails.clear();
  const Json before = params_of(steps_of(without, "node02", "firewall"), "firewall/rules")["allow"];
  Json params = params_of(steps_of(spec, "node02", "firewall"), "firewall/rules");
  REQUIRE(params["allow"].size() == before.size() + 2);
  CHECK(params["allow"].back() ==
        Json{{"from", "10.100.1.0/24"}, {"to", "10.100.1.12"}, {"comment", "rail 1"}});

  tests::FakeMachine machine;
  machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  machine.put("/etc/default/ufw", "IPV6=yes\n");
  StepContext context = machine.context();
  params.erase("controller");  // no controller is reached from here
  const StepModule* ufw = find_step_module("ufw");
  REQUIRE(ufw->apply(context, params).ok());
  const std::string rules = machine.run({.argv = {"iptables", "-S"}})->out;
  CHECK(rules.find("-A ufw-user-input -s 10.100.1.0/24 -d 10.100.1.12/32 -j ACCEPT\n") != std::string::npos);
  CHECK(machine.get("/etc/ufw/user.rules")
            .find("### tuple ### allow any any 10.100.1.12 any 10.100.1.0/24 in comment=") !=
        std::string::npos);
  CHECK(ufw->check(context, params)->holds == Holds::yes);
  params["allow"].back()["to"] = "10.100.1.0/24; rm";
  CHECK_FALSE(ufw->check(context, params).ok());
}

TEST_CASE("a section goes over the storage network where all have it", "[plan][rails]") {
  const std::string text = with_networks("base, networks, storage-shared");
  const Spec spec = parsed(text);
  const Json master = params_of(steps_of(spec, "node01", "storage-shared"), "storage-shared/master[shared]");
  CHECK(master["address"] == "10.30.0.11");
  CHECK(master["clients"][0] == Json{{"name", "node02"}, {"address", "10.30.0.12"}});
  const auto steps = steps_of(spec, "node02", "storage-shared");
  CHECK(params_of(steps, "storage-shared/mount[shared]")["master"] == "10.30.0.11");
  CHECK(params_of(steps, "storage-shared/write[shared]")["source"] == "*10.30.0.11:9421");

  // One that has no port there: none uses it, or that one would see half of the servers.
  Spec mixed = spec;
  mixed.nodes[2].storage = {};
  CHECK(params_of(steps_of(mixed, "node02", "storage-shared"), "storage-shared/mount[shared]")["master"] ==
        "10.20.0.11");
  CHECK(SectionNetwork(mixed, mixed.storage[1]).cidr() == "10.20.0.0/24");
  // Declared, and no playbook that configures it: as ever.
  const Spec plain = parsed(replaced(kSpec, "users:\n", "  storage: { cidr: 10.30.0.0/24 }\nusers:\n"));
  CHECK(SectionNetwork(plain, plain.storage[1]).address(plain.nodes[0]) == "10.20.0.11");
}

TEST_CASE("Ceph's public network is the section's", "[plan][rails]") {
  const std::string text =
      replaced(with_networks("base, networks, storage-ceph"), "engine: moosefs", "engine: ceph");
  const auto steps = steps_of(parsed(text), "node01", "storage-ceph");
  const std::string conf =
      params_of(steps, "storage-ceph/configuration[shared]")["content"].get<std::string>();
  CHECK(conf.find("public_network = 10.30.0.0/24\n") != std::string::npos);
  CHECK(conf.find("mon_host = 10.30.0.11 10.30.0.12 10.30.0.13\n") != std::string::npos);
}

TEST_CASE("playbook tuning asks the kernel, and gives way to a declared parameter", "[plan][rails]") {
  const Spec spec = parsed(replaced(replaced(kSpec, "base, storage, shared", "base, tuning"), "users:\n",
                                    "sysctls: { kernel.numa_balancing: 1 }\nusers:\n"));
  const auto steps = steps_of(spec, "node01", "tuning");
  CHECK(params_of(steps, "tuning/NUMA balancing")["values"] == Json{{"kernel.numa_balancing", "1"}});
  CHECK(params_of(steps, "tuning/memory without translation")["present"] == Json::array({"iommu=pt"}));
  tests::FakeMachine machine;  // a virtual machine: no frequency scaling, no NUMA
  machine.put("/run/systemd/system/x", "");
  StepContext context = machine.context();
  for (const char* id : {"tuning/processor clock", "tuning/NUMA balancing", "tuning/transparent huge pages"})
    for (const auto& step : steps)
      if (step.id == id) {
        INFO(id);
        CHECK(find_step_module(step.module)->check(context, step.params)->holds == Holds::not_applicable);
      }
}

TEST_CASE("the plan shows which ports the nodes will take as rails", "[plan][rails]") {
  const Spec spec = parsed(with_networks("base, networks, interconnect"));
  NodeSpec node = *spec.node("node01");
  node.hardware.gpus = 2;
  HardwareFacts facts;
  const auto nic = [&](const std::string& mac, const std::string& pci, const std::string& path) {
    NicFacts out;
    out.mac = mac;
    out.pci = pci;
    out.pci_path = path;
    facts.nics.push_back(out);
  };
  nic(node.mac, "0000:01:00.0", "pci0000:00/0000:00:01.0");
  nic("52:54:00:30:00:01", "0000:01:00.1", "pci0000:00/0000:00:01.0");  // the storage port, by name
  nic("52:54:00:30:00:02", "0000:0a:00.0", "pci0000:20/0000:20:01.0");
  nic("52:54:00:30:00:03", "0000:1b:00.0", "pci0000:10/0000:10:01.0");
  nic("52:54:00:30:00:04", "0000:00:14.0", "");  // on USB
  CHECK(rails_seen(spec, node, facts) == "rail 0 = 0000:0a:00.0, rail 1 = 0000:1b:00.0 (by PCI address)");
  GpuFacts gpu;
  for (const char* path : {"pci0000:10/0000:10:01.0", "pci0000:20/0000:20:01.0"}) {
    gpu.pci_path = path;
    facts.gpus.push_back(gpu);
  }
  const std::string by_gpu = rails_seen(spec, node, facts);
  CHECK(by_gpu == "rail 0 = 0000:1b:00.0, rail 1 = 0000:0a:00.0 (each nearest to its GPU)");
  CHECK(rail_notes({{"node01", by_gpu}, {"node02", by_gpu}, {"node03", ""}}) ==
        std::vector<std::string>{"rails of node01, node02: " + by_gpu});

  facts.gpus.pop_back();
  CHECK(rails_seen(spec, node, facts).find("there are 1 GPUs instead of 2") != std::string::npos);
  NodeSpec named = node;
  named.rails[0].port = "0000:0a:00.0";
  CHECK(rails_seen(spec, named, facts).empty());
  facts.nics.erase(facts.nics.begin() +
                   1);  // the storage port is not seen: which others are open is not known
  CHECK(rails_seen(spec, node, facts).empty());
}
