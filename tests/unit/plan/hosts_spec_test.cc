// The spec that is generated for hosts as they are: valid, the same in any order, and the hardware of most.
#include "controller/hosts/hosts_spec.h"

#include <algorithm>
#include <deque>

#include "controller/report/verdict.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

HardwareFacts gpu_host(size_t gpus = 8, uint64_t memory = 1024 * kGiB) {
  HardwareFacts out;
  out.system = {"NVIDIA", "DGXH100", "", ""};
  out.cpus = {224, 2, "Intel(R) Xeon(R) Platinum 8480C"};
  out.memory_bytes = memory;
  out.gpus.resize(gpus);
  for (GpuFacts& gpu : out.gpus) gpu.model = "NVIDIA H100 80GB HBM3";
  out.nics.resize(3);
  out.nics[0].link_up = out.nics[1].link_up = true;
  return out;
}

// Hosts with addresses 10.0.3.1 and on; facts live as long as it does.
struct List {
  std::deque<HardwareFacts> facts;
  std::vector<AcceptHost> hosts;

  AcceptHost& add(const std::string& name, const HardwareFacts& machine, const std::string& group = "gpu") {
    facts.push_back(machine);
    AcceptHost host;
    host.name = name;
    host.address = "10.0.3." + std::to_string(hosts.size() + 1);
    host.group = group;
    host.facts = &facts.back();
    hosts.push_back(host);
    return hosts.back();
  }
  HostsSpec spec() const {
    auto made = hosts_spec("gaggle", "standard", hosts);
    if (!made.ok()) FAIL(made.error().message);
    return *made;
  }
  std::string error() const {
    const auto made = hosts_spec("gaggle", "standard", hosts);
    REQUIRE(!made.ok());
    CHECK(made.error().code == Code::invalid);
    return made.error().message;
  }
  bool says(const std::string& words) const { return error().find(words) != std::string::npos; }
};

List four() {
  List list;
  for (const char* name : {"gpu01", "gpu02", "gpu03"}) list.add(name, gpu_host());
  list.add("gpu04", gpu_host(7, 992 * kGiB));
  return list;
}

}  // namespace

TEST_CASE("hosts spec: each host is held to what most of its group have", "[plan][hosts]") {
  const List list = four();
  const HostsSpec made = list.spec();
  REQUIRE(made.spec.nodes.size() == 4);
  CHECK(made.notes.empty());
  CHECK(made.spec.cluster == "gaggle");
  CHECK(made.spec.acceptance_profile == "standard");
  CHECK(made.spec.network.provisioning.cidr == "10.0.3.0/29");
  for (const NodeSpec& node : made.spec.nodes) {
    CHECK(node.role == "gpu");
    CHECK(node.adopt.declared());
    CHECK(node.adopt.host == node.name);
    CHECK(node.hardware.gpus == 8);
    CHECK(node.hardware.gpu_model == "NVIDIA H100 80GB HBM3");
    CHECK(node.hardware.cpus == 224);
    CHECK(node.hardware.memory_bytes_min == static_cast<int64_t>(1024 * kGiB));
    CHECK(node.hardware.nics.at("any") == 2);
    CHECK(node.disks.empty());
    CHECK(node.image.empty());
  }
  // The one that lost a GPU and a memory module fails against its like, the others pass.
  const auto failed = [&](size_t host) {
    std::string out;
    for (const Check& check : judge_hardware(made.spec.nodes[host], list.hosts[host].facts))
      if (check.verdict == Verdict::fail) out += check.name + " ";
    return out;
  };
  CHECK(failed(0) == "");
  CHECK(failed(3) == "hardware/memory hardware/gpus ");
  for (const Check& check : judge_hardware(made.spec.nodes[3], list.hosts[3].facts)) {
    if (check.name == "hardware/gpus") CHECK(check.reason == "7 of 8 GPUs");
    if (check.name == "hardware/memory") CHECK(check.reason == "992 of 1024 GiB of memory");
    if (check.name == "hardware/gpus") CHECK(check.derivation == "what most hosts in its group have");
  }
  // Names of playbooks and profiles are those that are shipped.
  CHECK(parse_spec(made.text, shipped_names()).errors.empty());
}

TEST_CASE("hosts spec: the same hosts give the same text, in whatever order", "[plan][hosts]") {
  List list = four();
  const std::string text = list.spec().text;
  std::reverse(list.hosts.begin(), list.hosts.end());
  CHECK(list.spec().text == text);
}

TEST_CASE("hosts spec: without a majority nothing is declared, and it is said", "[plan][hosts]") {
  List two;
  two.add("gpu01", gpu_host());
  two.add("gpu02", gpu_host(7));
  CHECK(!two.spec().spec.nodes[0].hardware.gpus);
  CHECK(two.spec().text.find("hardware: {") == std::string::npos);
  REQUIRE(two.spec().notes.size() == 1);
  CHECK(two.spec().notes[0].find("fewer than three") != std::string::npos);

  List split = two;
  for (AcceptHost& host : split.hosts) host.facts = host.name == "gpu01" ? &split.facts[0] : &split.facts[1];
  split.add("gpu03", gpu_host());
  split.add("gpu04", gpu_host(7));
  const HostsSpec made = split.spec();
  CHECK(!made.spec.nodes[0].hardware.gpus);
  CHECK(made.spec.nodes[0].hardware.gpu_model.empty());  // nothing says how many
  CHECK(made.spec.nodes[0].hardware.cpus == 224);
  REQUIRE(made.notes.size() == 1);
  CHECK(made.notes[0] ==
        "group gpu: no majority of hosts agrees on these values, so they were left out of the spec: number "
        "of GPUs");

  // An inventory that is missing is no vote.
  List unseen = four();
  unseen.hosts[0].facts = unseen.hosts[1].facts = nullptr;
  CHECK(!unseen.spec().spec.nodes[0].hardware.gpus);
}

TEST_CASE("hosts spec: a host with GPUs of two models has no vote on the model, which is said",
          "[plan][hosts]") {
  List list = four();
  list.facts[2].gpus[7].model = "NVIDIA T400";
  const HostsSpec made = list.spec();
  CHECK(made.spec.nodes[0].hardware.gpu_model == "NVIDIA H100 80GB HBM3");
  REQUIRE(made.notes.size() == 1);
  CHECK(made.notes[0].find("gpu03 (NVIDIA H100 80GB HBM3, NVIDIA T400)") != std::string::npos);
}

TEST_CASE("hosts spec: what firmware keeps makes no other amount of memory", "[plan][hosts]") {
  List list;
  list.add("a", gpu_host(8, 1024 * kGiB));
  list.add("b", gpu_host(8, 1020 * kGiB));
  list.add("c", gpu_host(8, 1022 * kGiB));
  list.add("d", gpu_host(8, 960 * kGiB));
  CHECK(list.spec().spec.nodes[0].hardware.memory_bytes_min == static_cast<int64_t>(1020 * kGiB));
}

TEST_CASE("hosts spec: roles by group, with RDMA where half of it have active ports", "[plan][hosts]") {
  List list = four();
  for (size_t i = 0; i < 3; ++i) list.hosts[i].rdma_ports = 8;
  list.hosts[3].rdma_ports = 0;
  HardwareFacts plain;
  plain.system = {"Dell", "R650", "", ""};
  list.add("store", plain, "gpu-rdma");  // its name is taken by the other group's role, or the reverse
  const HostsSpec made = list.spec();
  CHECK(made.spec.node("gpu04")->role == "gpu-rdma");
  CHECK(made.spec.roles.at("gpu-rdma") == std::vector<std::string>{"interconnect"});
  CHECK(made.spec.node("store")->role != "gpu-rdma");
  CHECK(made.spec.roles.at(made.spec.node("store")->role).empty());
}

TEST_CASE("hosts spec: hosts without a group are compared with those of their product", "[plan][hosts]") {
  List list;
  for (const char* name : {"n1", "n2", "n3"}) list.add(name, gpu_host(), "");
  CHECK(groups_of(list.hosts) ==
        std::map<std::string, std::string>{{"n1", "hosts"}, {"n2", "hosts"}, {"n3", "hosts"}});
  HardwareFacts login;
  login.system = {"Dell", "R650", "", ""};
  login.cpus = {64, 2, "x"};
  list.add("login", login, "");
  list.add("spare", login, "hosts-2");  // a user's word goes before a made one
  const auto groups = groups_of(list.hosts);
  CHECK(groups.at("login") == "hosts-1");
  CHECK(groups.at("n1") == "hosts-2-2");
  CHECK(groups.at("spare") == "hosts-2");
  const HostsSpec made = list.spec();
  CHECK(made.spec.node("n1")->hardware.gpus == 8);
  CHECK(!made.spec.node("login")->hardware.gpus);
  CHECK(made.notes.at(0).find("hosts-2-2 is NVIDIA DGXH100 (3)") != std::string::npos);
}

TEST_CASE("hosts spec: what hardware calls itself does not leave its quotes", "[plan][hosts]") {
  List list;
  for (const char* name : {"null", "no", "n3"}) {
    HardwareFacts facts = gpu_host();
    facts.cpus.model = "x\", gpus: 1 } # \n\t\x01\xff {n} '";
    list.add(name, facts);
  }
  const HostsSpec made = list.spec();
  CHECK(made.spec.nodes.size() == 3);
  CHECK(made.spec.node("null"));
  CHECK(made.spec.node("no")->hardware.gpus == 8);
}

TEST_CASE("hosts spec: the network is the narrowest that holds all addresses", "[plan][hosts]") {
  List list;
  list.add("a", gpu_host()).address = "10.0.3.7";
  CHECK(list.spec().spec.network.provisioning.cidr == "10.0.3.0/28");
  list.add("b", gpu_host()).address = "10.200.0.1";
  CHECK(list.spec().spec.network.provisioning.cidr == "10.0.0.0/8");
  list.add("c", gpu_host()).address = "192.168.0.1";
  CHECK(list.says("no network of /8 to /30"));
}

TEST_CASE("hosts spec: everything that is wrong with the list is said at once", "[plan][hosts]") {
  CHECK(List().says("no hosts"));
  List list = four();
  list.hosts[0].name = "GPU01";
  list.hosts[1].address = "";
  list.hosts[2].address = "gpu03\n";
  list.hosts[3].address = "10.0.3.9";
  list.add("gpu04", gpu_host()).address = "10.0.3.9";
  for (const char* words :
       {"'GPU01' is not a host name", "no address is known for gpu02", "gpu03: \"gpu03\\n\" is not",
        "gpu04 and gpu04 have the same address", "listed twice: gpu04"}) {
    INFO(words);
    CHECK(list.says(words));
  }
  CHECK(!hosts_spec("No Cluster", "standard", four().hosts).ok());
  List key = four();
  key.hosts[0].host_key = "MD5:00";
  CHECK(key.says("host_key"));
  key.hosts[0].host_key = "SHA256:" + std::string(43, 'b');
  CHECK(key.spec().spec.nodes[0].adopt.host_key == key.hosts[0].host_key);
  CHECK(key.spec().spec.nodes[1].adopt.host_key == no_host_key());
}

TEST_CASE("hosts spec: the cluster is called as the file", "[plan][hosts]") {
  CHECK(cluster_name_of("lists/GPU hosts.txt") == "gpu-hosts");
  CHECK(cluster_name_of("hosts.txt") == "hosts");
  CHECK(cluster_name_of("2026-rack_7.list") == "rack-7");
  CHECK(cluster_name_of("") == "hosts");
  CHECK(cluster_name_of("42.txt") == "hosts");
  CHECK(cluster_name_of(std::string(29, 'a') + "--b.txt") == std::string(29, 'a'));
  CHECK(cluster_name_of("\xc3\xbc.txt") == "hosts");
}

TEST_CASE("hosts spec: a profile may name what the command was given", "[plan][hosts]") {
  List list;
  list.add("gpu01", gpu_host());
  const auto made = hosts_spec("gaggle", "standard", list.hosts, {{"libs", "/opt/\"nccl\"/lib"}});
  REQUIRE(made.ok());
  CHECK(made->spec.vars.at("libs") == "/opt/\"nccl\"/lib");
  CHECK(list.spec().spec.vars.empty());
}
