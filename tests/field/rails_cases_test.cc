// Ports and rails: what they are held to, which are measured with each other, and what NCCL is set to.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "agent/core/step.h"
#include "base/split.h"
#include "controller/plan/interconnect.h"
#include "controller/report/expected.h"
#include "controller/report/link_faults.h"
#include "controller/report/verdict.h"
#include "host/rails.h"
#include "kernels/counters/counters.h"
#include "kernels/rdma/rdma_job.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/kernels/rdma_bench.h"

namespace muster::tests {
namespace {

// As in playbooks/acceptance/standard.yaml.
const Json kRdma = Json::parse(
    R"({"send_gbps":{"derive":"rdma_payload","ratio":0.92,"fleet_min_ratio":0.9,"unit":"Gb/s"},)"
    R"("receive_gbps":{"derive":"rdma_payload","ratio":0.92,"fleet_min_ratio":0.9,"unit":"Gb/s"}})");
const Json kLinks = Json::parse(
    R"({"send_mbps":{"min":20,"derive":"nic_payload","ratio":0.3,"fleet_min_ratio":0.8,"unit":"MB/s"},)"
    R"("receive_mbps":{"min":20,"derive":"nic_payload","ratio":0.3,"fleet_min_ratio":0.8,"unit":"MB/s"}})");

// Puts the lines "PATH: TEXT" and "PATH -> TARGET" into the tree.
void put_tree(const Files& files, const std::string& text) {
  for (const auto& line : split_lines(text)) {
    const size_t link = line.find(" -> "), colon = line.find(": ");
    if (link != std::string::npos) {
      const std::string path = line.substr(0, link);
      REQUIRE(files.make_directories(path.substr(0, path.rfind('/'))).ok());
      REQUIRE(files.symlink(line.substr(link + 4), path).ok());
    } else if (colon != std::string::npos) {
      REQUIRE(files.write(line.substr(0, colon), line.substr(colon + 2) + "\n").ok());
    }
  }
}

MeasuredStep step_of(const std::string& node, const std::string& peer, const char* group,
                     const Json& expect) {
  MeasuredStep out;
  out.id = std::string("acceptance/") + group;
  out.node = node;
  out.subject = peer;
  out.group = group;
  out.status = "applied";
  out.expect = expect;
  return out;
}

// Lines "NODE PARTNER RAIL RATE MEASURED"; `more` is added to the detail of each. The rate is the node's; the
// partner's is that of its own lines.
std::vector<MeasuredStep> rails_of(const std::string& file, const std::string& text, const Json& more) {
  std::vector<MeasuredStep> out;
  std::map<std::pair<std::string, int>, double> rates;  // by node and rail
  for (const auto& line : split_lines(text)) {
    std::string node, peer;
    int rail = -1;
    double rate = 0;
    std::istringstream(line) >> node >> peer >> rail >> rate;
    rates[{node, rail}] = rate;
  }
  for (const auto& line : split_lines(text)) {
    INFO(file << ": " << line);
    std::string node, peer;
    int rail = -1;
    double rate = 0, measured = 0;
    std::istringstream(line) >> node >> peer >> rail >> rate >> measured;
    REQUIRE(measured > 0);
    MeasuredStep one = step_of(node, peer, "rdma", kRdma);
    one.like = fmt::format("rail {}", rail);
    const std::string device = fmt::format("mlx5_{}", rail);
    Json detail = {{"to", peer},  {"device", device},  {"peer_device", device},
                   {"mtu", 4096}, {"rate_gbps", rate}, {"link_layer", "InfiniBand"}};
    detail["peer_rate_gbps"] = rates[{peer, rail}];
    if (more.is_object()) detail.update(more);
    const Json value = {{"value", measured}, {"unit", "Gb/s"}};
    one.result = {{"check", "rdma-link"},
                  {"outcome", "measured"},
                  {"metrics", {{"send_gbps", value}, {"receive_gbps", value}}},
                  {"detail", detail}};
    out.push_back(std::move(one));
  }
  return out;
}

// Lines "NODE PARTNER SPEED MEASURED"; `more` is added to the port.
std::vector<MeasuredStep> links(const std::string& text, const Json& more = Json::object()) {
  std::vector<MeasuredStep> out;
  for (const auto& line : split_lines(text)) {
    std::string node, peer;
    double speed = 0, measured = 0;
    std::istringstream(line) >> node >> peer >> speed >> measured;
    REQUIRE(measured > 0);
    MeasuredStep one = step_of(node, peer, "links", kLinks);
    Json own = {{"interface", "ens1f0np0"}, {"mac", "02:00:00:00:00:01"}, {"speed_mbps", speed}};
    own.update(more);
    const Json value = {{"value", measured}, {"unit", "MB/s"}};
    one.result = {{"check", "link"},
                  {"outcome", "measured"},
                  {"metrics", {{"send_mbps", value}, {"receive_mbps", value}}},
                  {"detail", {{"to", peer}, {"own_port", own}}}};
    out.push_back(std::move(one));
  }
  return out;
}

using Judged = std::map<std::string, std::vector<Check>>;

Judged judged(const std::vector<MeasuredStep>& steps, const Comparison& with = {}) {
  Judged out = judge_measurements(steps, with);
  find_link_faults(out, steps, {}, {});
  return out;
}

std::vector<std::string> findings(const Judged& all, const std::string& node) {
  std::vector<std::string> out;
  for (const auto& check : all.at(node))
    if (is_finding(check.verdict)) out.push_back(check.name + " " + check.subject);
  return out;
}

std::string derivation(const Judged& all, const std::string& node, const std::string& name) {
  for (const auto& check : all.at(node))
    if (check.name == name) return check.derivation;
  return "no check " + name;
}

const std::vector<std::string> kNone = {};

// The settings that NCCL gets on the machine of a case's file.
std::string nccl_settings(const std::string& name, const char* file) {
  FakeMachine machine;
  machine.put("/run/systemd/system/x", "");
  machine.units["muster-nccl-conf.service"] = {};
  put_tree(machine.files(), field_input(name, file));
  StepContext context = machine.context();
  const Status applied = find_step_module("nccl_conf")->apply(context, Json::object());
  INFO((applied.ok() ? "" : applied.error().message));
  REQUIRE(applied.ok());
  return machine.get("/etc/nccl.conf");
}

}  // namespace

FIELD_CASE("rdma-rail-trained-slow") {
  const auto a1 = [](const Json& more) {
    return rails_of("a1.txt", field_input("rdma-rail-trained-slow", "a1.txt"), more);
  };
  const std::vector<std::string> rate = {"rdma/port_rate port mlx5_0"};
  CHECK(derivation(judged(a1({})), "node01", "rdma/port_rate").find("not judged: ") == 0);
  CHECK(findings(judged(a1({{"ability_gbps", 400}})), "node01") == rate);
  Comparison declared;
  declared.rates.rails = 400;
  CHECK(findings(judged(a1({}), declared), "node02") == rate);
  // A split cable by design is declared as what it is.
  declared.rates.rails = 200;
  CHECK(findings(judged(a1({{"ability_gbps", 400}}), declared), "node01") == kNone);

  // One rail on all nodes; each node's other rails show it.
  const auto a3 = judged(rails_of("a3.txt", field_input("rdma-rail-trained-slow", "a3.txt"), {}));
  for (const char* node : {"node01", "node02", "node03", "node04"})
    CHECK(findings(a3, node) == std::vector<std::string>{"rdma/port_rate port mlx5_3"});
  // One rail of one node: its port is named, and no link, which carries what the port's rate allows.
  const auto a4 = judged(rails_of("a4.txt", field_input("rdma-rail-trained-slow", "a4.txt"), {}));
  for (const char* node : {"node01", "node02", "node03", "node04"})
    CHECK(findings(a4, node) ==
          (std::string(node) == "node02" ? std::vector<std::string>{"rdma/port_rate port mlx5_3"} : kNone));

  const std::string l1 = field_input("rdma-rail-trained-slow", "l_1.txt");
  CHECK(findings(judged(links(l1)), "node01") == kNone);
  CHECK(findings(judged(links(l1, {{"ability_gbps", 25}})), "node03") ==
        std::vector<std::string>{"links/port_rate port ens1f0np0"});
  // A twisted pair at a switch of 1 Gb/s.
  CHECK(findings(judged(links(l1, {{"ability_gbps", 10}, {"partner_gbps", 1}})), "node03") == kNone);
  CHECK(findings(judged(links(l1, {{"ability_gbps", 10}, {"partner_gbps", 10}})), "node03").size() == 1);
}

FIELD_CASE("tcp-stream-fast-port") {
  for (const char* file : {"l_100.txt", "l_200.txt", "l_400.txt"}) {
    INFO(file);
    const auto all = judged(links(field_input("tcp-stream-fast-port", file)));
    for (const char* node : {"node01", "node02", "node03", "node04"}) CHECK(findings(all, node) == kNone);
  }
  // Eight streams are held to eight times that.
  auto steps = links(field_input("tcp-stream-fast-port", "l_200.txt"));
  for (auto& step : steps) step.result["detail"]["streams"] = 8;
  CHECK_FALSE(findings(judged(steps), "node01").empty());
}

FIELD_CASE("links-of-two-speeds") {
  const auto measured = [](const char* file) {
    auto steps = links(field_input("links-of-two-speeds", file));
    for (auto& step : steps) step.result["detail"]["streams"] = 8;
    return judged(steps);
  };
  const auto healthy = measured("healthy.txt");
  for (const auto& [node, checks] : healthy) {
    INFO(node);
    CHECK(findings(healthy, node) == kNone);
  }
  // Held to what it can carry, a slow link of the slower node is found, and only that.
  const auto slow = measured("slow.txt");
  for (const auto& [node, checks] : slow) {
    INFO(node);
    CHECK(std::any_of(checks.begin(), checks.end(), [](const Check& check) {
            return check.name == "links/located";
          }) == (node == "head01"));
  }
}

FIELD_CASE("links-of-two-speeds: rails of another rate") {
  const auto all = judged(rails_of("rails.txt", field_input("links-of-two-speeds", "rails.txt"), {}));
  for (const auto& [node, checks] : all) CHECK(findings(all, node) == kNone);
}

FIELD_CASE("unknown-speed-rate") {
  const auto all = judged(rails_of("xdr.txt", field_input("unknown-speed-rate", "xdr.txt"),
                                   {{"rate_text", "10 Gb/sec (4X SDR)"}, {"place", "0000:18:00.0"}}));
  CHECK(findings(all, "node01") == kNone);
  for (const char* check : {"rdma/send_gbps", "rdma/port_rate"})
    CHECK(derivation(all, "node01", check).find("does not know the port's speed") != std::string::npos);
  HardwareFacts facts;
  facts.gpus.resize(8);
  for (auto& gpu : facts.gpus) gpu.model = "NVIDIA B200";
  const Derived bound =
      derive("nccl_bus", Json::parse(field_input("unknown-speed-rate", "nccl.json")), &facts);
  CHECK_FALSE(bound.value);
  CHECK(bound.text.find("speeds that it does not know") != std::string::npos);
}

FIELD_CASE("hca-numbers-shift") {
  const RdmaNode a, b;
  put_tree(a.files(), field_input("hca-numbers-shift", "numA.txt"));
  put_tree(b.files(), field_input("hca-numbers-shift", "numB.txt"));
  FakePerftest near(a), far(b);
  const rdma::Ability here = rdma::look(a.files(), near), there = rdma::look(b.files(), far);
  const auto pairs = rdma::pair_ports(here, rdma::announced_ports(rdma::to_json(there)));
  REQUIRE(pairs.size() == 8);
  for (const Rail& pair : pairs) {
    INFO(pair.title());
    const RdmaPort* one = here.rail(pair.here);
    REQUIRE(one);
    CHECK(pair.title() == "port " + one->pci);
    if (one->pci == "0000:5e:00.0") {
      CHECK(pair.there.empty());
    } else {
      REQUIRE(there.rail(pair.there));
      CHECK(there.rail(pair.there)->pci == one->pci);
    }
  }
}

FIELD_CASE("nccl-conf-pinned-gid") {
  const std::string first = nccl_settings("nccl-conf-pinned-gid", "ncclA.txt");
  CHECK(nccl_settings("nccl-conf-pinned-gid", "ncclB.txt") == first);
  CHECK(first.find("GID_INDEX") == std::string::npos);
  CHECK(first.find("\nNCCL_IB_ADDR_RANGE=10.100.0.11/32\n") != std::string::npos);
}

FIELD_CASE("gids-without-ipv4") {
  const RdmaNode node;
  put_tree(node.files(), field_input("gids-without-ipv4", "node.txt"));
  FakePerftest perftest(node);
  const rdma::Ability ability = rdma::look(node.files(), perftest);
  REQUIRE(ability.rails.size() == 1);
  CHECK(rdma::rail_problem(ability.rails[0]).empty());
  REQUIRE(ability.rails[0].gids.size() == 1);
  CHECK(ability.rails[0].gids[0].index == 3);
  const std::string settings = nccl_settings("gids-without-ipv4", "node.txt");
  CHECK(settings.find("\nNCCL_IB_ADDR_FAMILY=AF_INET6\n") != std::string::npos);
  CHECK(settings.find("\nNCCL_IB_ADDR_RANGE=fd93:16d3:59b6:12e::b/128\n") != std::string::npos);
}

FIELD_CASE("pfc-class-not-used") {
  // The rails' `qos` of the case's spec.
  Spec spec;
  spec.network.rails.qos.pfc = {3};
  spec.network.rails.qos.dscp = {{26, 3}};
  NodeSpec node;
  node.rails.resize(1);
  const Json facts = interconnect_of(spec, node);
  CHECK(facts["rail_traffic_class"] == 106);
  spec.network.rails.qos.dscp = {{26, 4}};
  CHECK(interconnect_of(spec, node)["rail_traffic_class"] == -1);  // its packets may be dropped

  // From there over the node's record to perftest; to NCCL and UCX: tests/unit/agent/networks_test.cc.
  RdmaNode one;
  put_tree(one.files(), field_input("nccl-conf-pinned-gid", "ncclB.txt"));
  NetworksRecord record = read_networks_record(one.files()).value();
  record.traffic_class = facts["rail_traffic_class"].get<int>();
  one.write(kNetworksRecord, networks_record_text(record));
  FakePerftest perftest(one);
  const rdma::Ability ability = rdma::look(one.files(), perftest);
  CHECK(ability.traffic_class == 106);
  REQUIRE(ability.rails.size() == 1);
  REQUIRE(ability.rails[0].gids.size() == 1);
  CHECK(ability.rails[0].gids[0].index == 5);  // the rail's, not the service's
}

FIELD_CASE("efa-perftest") {
  const RdmaNode alone;
  put_tree(alone.files(), field_input("efa-perftest", "node.txt"));
  FakePerftest perftest(alone);
  const Json whole = to_json(run_rdma(alone.files(), perftest, {.to = "127.0.0.1", .port = 1}));
  CHECK(perftest.runs.empty());
  // Beside ports that can be measured, as a partner's: the rail is left out.
  Two two;
  two.here.placed("mlx5_0", "0000:18:00.0");
  put_tree(two.there.files(), field_input("efa-perftest", "node.txt"));
  for (const char* other : {"rdmap87s0", "rdmap88s0"})
    two.there.write(std::string("/sys/class/infiniband/") + other + "/ports/1/state", "1: DOWN");
  const Json mixed = to_json(two.run());
  for (const Json& result : {whole, mixed}) {
    std::vector<MeasuredStep> steps;
    for (const auto& [node, peer] : {std::pair{"node01", "node02"}, {"node02", "node01"}}) {
      steps.push_back(step_of(node, peer, "rdma", kRdma));
      steps.back().result = result;
      if (steps.back().result.contains("parts"))
        for (Json& part : steps.back().result["parts"]) part["subject"] = peer;
    }
    const auto all = judged(steps);
    for (const char* node : {"node01", "node02"}) {
      CHECK(findings(all, node) == kNone);
      CHECK(std::any_of(all.at(node).begin(), all.at(node).end(), [](const Check& check) {
        return check.verdict == Verdict::not_looked_at &&
               check.reason.find("no reliable connections") != std::string::npos;
      }));
    }
  }
}

FIELD_CASE("perftest-versions") {
  std::map<std::string, std::string> versions;
  for (const auto& line : split_lines(field_input("perftest-versions", "versions.txt")))
    if (const size_t colon = line.find(": "); colon != std::string::npos)
      versions[line.substr(0, colon)] = line.substr(colon + 2);
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  two.near.version = versions.at("node01"), two.far.version = versions.at("node02");
  two.options.perftest = two.carried_there = {"/c/ib_write_bw", "/c/ib_write_lat", {"/c/librdmacm"}};
  two.near.carried_version = two.far.carried_version = versions.at("carried");
  const Json part = to_json(two.run())["parts"][0]["result"];
  CHECK(part["detail"]["perftest"] == versions.at("carried") + " carried by muster");
  for (const auto* perftest : {&two.near, &two.far})
    for (const auto& run : perftest->runs)
      CHECK(std::any_of(run.begin(), run.end(), [](const auto& word) { return word.starts_with("/c/"); }));
}

FIELD_CASE("perftest-library") {
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  two.far.installed = false;
  two.far.carried_error = field_input("perftest-library", "stderr.txt");
  two.carried_there = {"/c/ib_write_bw", "/c/ib_write_lat", {"/c/librdmacm"}};
  const Json part = to_json(two.run())["parts"][0]["result"];
  CHECK(part["outcome"] == "unavailable");
  CHECK(part["detail"]["at_fault"] == "peer");
  for (const char* word : {"libibverbs.so.1", "ibverbs-providers"})
    CHECK(part["error"].get<std::string>().find(word) != std::string::npos);
}

FIELD_CASE("perftest-providers") {
  const bool here = GENERATE(true, false), own = GENERATE(true, false);
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  FakePerftest& bare = here ? two.near : two.far;
  bare.finds = field_input("perftest-providers", "stderr.txt");
  bare.installed = own;
  two.near.carried_version = two.far.carried_version = "6.06";
  two.options.perftest = two.carried_there = {"/c/ib_write_bw", "/c/ib_write_lat", {"/c/librdmacm"}};
  const Json result = here ? to_json(run_rdma(two.here.files(), two.near, two.options)) : to_json(two.run());
  const Json& part = here ? result : result["parts"][0]["result"];
  CHECK(part["outcome"] == "unavailable");
  if (!here) CHECK(part["detail"]["at_fault"] == "peer");
  CHECK(part["error"].get<std::string>().find("ibverbs-providers") != std::string::npos);
  CHECK(bare.runs.empty());
}

FIELD_CASE("perftest-glibc") {
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  two.near.carried_version = "6.06";
  two.far.carried_status = 1;
  two.far.carried_error = field_input("perftest-glibc", "stderr.txt");
  two.options.perftest = two.carried_there = {"/c/ib_write_bw", "/c/ib_write_lat", {"/c/librdmacm"}};
  two.near.version = "6.23";
  SECTION("a host with its own") {
    CHECK(to_json(two.run())["parts"][0]["result"]["outcome"] == "measured");
    for (const auto& run : two.far.runs)
      CHECK(std::none_of(run.begin(), run.end(), [](const auto& word) { return word.starts_with("/c/"); }));
  }
  SECTION("a host without one: no cable is suspected") {
    two.far.installed = false;
    const Json part = to_json(two.run())["parts"][0]["result"];
    CHECK(part["outcome"] == "unavailable");
    CHECK(part["detail"]["at_fault"] == "peer");
    CHECK(part["error"].get<std::string>().find("GLIBC_2.34") != std::string::npos);
  }
}

FIELD_CASE("pcie-dead-device") {
  const TempDir dir;
  const Files files(dir.path(""));
  put_tree(files, field_input("pcie-dead-device", "sys.txt"));
  MeasuredStep step = step_of("node01", "", "pcie", Json::parse(R"({"ratio":{"degraded_below":1}})"));
  step.result = to_json(kernels::run_pcie(files));
  const auto all = judge_measurements({step});
  const Check* dead = nullptr;
  for (const auto& check : all.at("node01"))
    if (check.subject == "0000:86:00.0" && check.name == "pcie/data") dead = &check;
  REQUIRE(dead);
  CHECK(dead->verdict == Verdict::fail);
  CHECK(dead->faulty_parts == std::vector<std::string>{"GPU 0000:86:00.0"});
}

}  // namespace muster::tests
