// Rails and the storage network of a spec: addresses that follow from the provisioning address, and what is
// refused, with line and column.
#include <fmt/format.h>

#include <map>
#include <random>

#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

struct Parts {
  std::string network = "rails: { count: 2, cidr: \"10.100.{rail}.0/24\" }";
  std::string gpu = "{ playbooks: [ base, networks ] }";
  std::string gpu_node = "";  // more keys of the entry of g[1-2]
  std::string head_node = "";
};

// Line 4 holds what is in Parts::network, 6 to 9 the GPU nodes, 10 to 13 the head, 15 and 16 the roles.
std::string text_of(const Parts& p) {
  return fmt::format(R"(cluster: gaggle
network:
  provisioning: {{ cidr: 10.20.0.0/16 }}
  {}
nodes:
  - name: g[1-2]
    role: gpu
    power: {{ driver: redfish, address: "10.30.1.{{n}}", secret: bmc }}
    address: "10.20.1.{{n+10}}" {}
  - name: head
    role: head
    power: {{ driver: redfish, address: 10.30.1.9, secret: bmc }}
    address: 10.20.0.5 {}
roles:
  gpu: {}
  head: {{ playbooks: [ base ] }}
)",
                     p.network, p.gpu_node.empty() ? "" : "\n    " + p.gpu_node,
                     p.head_node.empty() ? "" : "\n    " + p.head_node, p.gpu);
}

std::string errors_of(const Parts& parts) {
  std::string out;
  for (const SpecError& error : parse_spec(text_of(parts)).errors) out += to_string(error, "f") + "\n";
  return out;
}

Spec good(const Parts& parts) {
  const ParsedSpec parsed = parse_spec(text_of(parts));
  for (const auto& e : parsed.errors) UNSCOPED_INFO(to_string(e, "f"));
  REQUIRE(parsed.errors.empty());
  return parsed.spec;
}

const std::string kWide =
    "rails: { count: 2, cidr: \"10.{rail+100}.0.0/16\", mtu: 9000, gateway: \"10.{rail+100}.0.1\" }";

}  // namespace

TEST_CASE("the rate of rails is declared in Gb/s or Mb/s", "[spec][rails]") {
  const auto rails = [](const std::string& rate) {
    return Parts{.network = "rails: { count: 2, cidr: \"10.{rail+100}.0.0/16\", rate: " + rate + " }"};
  };
  CHECK(good(rails("200 Gb/s")).network.rails.rate_gbps == 200);
  CHECK(good({.network = kWide}).network.rails.rate_gbps == 0);
  CHECK(good({.network = kWide}).network.provisioning.rate_gbps == 0);
  CHECK(errors_of(rails("200 GB/s")).find("network.rails.rate: '200 GB/s' is not a port's rate") !=
        std::string::npos);
  CHECK(errors_of(rails("200")).find("network.rails.rate: ") != std::string::npos);
}

TEST_CASE("a rail's address has the host part of the provisioning address", "[spec][rails]") {
  const Spec spec = good({.network = kWide});
  const NodeSpec& g2 = *spec.node("g2");
  REQUIRE(g2.rails.size() == 2);
  CHECK(g2.rails[0].address == "10.100.1.12");
  CHECK(g2.rails[1].address == "10.101.1.12");
  CHECK(g2.rails[1].network == "10.101.0.0/16");
  CHECK(g2.rails[1].gateway == "10.101.0.1");
  CHECK(g2.rails[1].port.empty());
  CHECK(spec.node("head")->rails.empty());  // its role does not configure networks
  CHECK(spec.network.rails.mtu == 9000);
  CHECK_FALSE(g2.storage.declared());
}

TEST_CASE("one network can be cut into the rails", "[spec][rails]") {
  const Spec spec = good({.network = "rails: { count: 2, cidr: 10.96.0.0/14, prefix: 15 }"});
  CHECK(spec.node("g1")->rails[0].address == "10.96.1.11");
  CHECK(spec.node("g1")->rails[1].address == "10.98.1.11");
  CHECK(spec.node("g1")->rails[1].network == "10.98.0.0/15");
}

TEST_CASE("roles and nodes have fewer rails, or other ports", "[spec][rails]") {
  const Spec none = good({.network = kWide, .gpu = "{ playbooks: [ networks ], rails: { count: 0 } }"});
  CHECK(none.node("g1")->rails.empty());
  const Spec named =
      good({.network = kWide,
            .gpu = "{ playbooks: [ networks ], rails: { ports: [ 1A:00.0, \"0000:1b:00.0\" ] } }",
            .gpu_node = "rails: { ports: [ eth7 ] }"});
  REQUIRE(named.node("g1")->rails.size() == 1);
  CHECK(named.node("g1")->rails[0].port == "eth7");
  const Spec by_role =
      good({.network = kWide,
            .gpu = "{ playbooks: [ networks ], rails: { ports: [ 1A:00.0, \"0000:1b:00.0\" ] } }"});
  REQUIRE(by_role.node("g2")->rails.size() == 2);
  CHECK(by_role.node("g2")->rails[0].port == "0000:1a:00.0");
}

TEST_CASE("the storage network has a port beside automatic rails, or none", "[spec][rails]") {
  const std::string storage = "storage: { cidr: 10.40.0.0/16, mtu: 9000 }", rails = kWide;
  CHECK(errors_of({.network = rails + "\n  " + storage}) ==
        "f:7:5: nodes[0]: the storage port of g1 is not defined, and the rails take all remaining ports: "
        "give network.storage.port, or `storage_port` in the role or node\n");
  const Spec spec = good({.network = rails + "\n  storage: { cidr: 10.40.0.0/16, port: \"0000:01:00.1\" }"});
  CHECK(spec.node("g1")->storage.address == "10.40.1.11");
  CHECK(spec.node("g1")->storage.port == "0000:01:00.1");
  CHECK_FALSE(spec.node("head")->storage.declared());
  const Spec own =
      good({.network = rails + "\n  " + storage, .gpu = "{ playbooks: [ networks ], storage_port: none }"});
  CHECK_FALSE(own.node("g1")->storage.declared());
  // Without rails it may be found; one network for both needs no port of its own.
  CHECK(good({.network = storage}).node("g1")->storage.declared());
  CHECK_FALSE(good({.network = "storage: { cidr: 10.20.0.0/16 }"}).node("g1")->storage.declared());
}

TEST_CASE("mistakes in rails are found where they are", "[spec][rails]") {
  const std::string gpu = "{ playbooks: [ base, networks ] }";
  const std::vector<std::pair<Parts, std::string>> all = {
      {{.network = "rails: { count: 2, cidr: 10.100.0.0/16 }"},
       "f:4:28: network.rails.cidr: is one network for 2 rails: use {rail} in it, as in "
       "10.100.{rail}.0/24, or give 'prefix', the prefix length of each rail's network\n"},
      {{.network = "rails: { count: 2, cidr: \"10.100.{rial}.0/24\" }"},
       "f:4:28: network.rails.cidr: '10.100.{rial}.0/24': only {rail} and {rail+100} are allowed in "
       "braces\n"},
      {{.network = "rails: { count: 3, cidr: 10.100.0.0/16, prefix: 17 }"},
       "f:4:51: network.rails.prefix: 10.100.0.0/16 has no room for 3 networks of /17\n"},
      {{.network = "rails: { count: 2, cidr: \"10.{rail+19}.0.0/16\" }"},
       "f:4:28: network.rails.cidr: 10.20.0.0/16 of rail 1 overlaps the provisioning network 10.20.0.0/16\n"},
      {{.network = "rails: { count: 2, cidr: \"10.100.{rail}.0/24\" }"},
       "f:4:28: network.rails.cidr: 10.100.0.0/24 is too small: g1 (10.20.1.11) would be host number 267; a "
       "/23 is required\n"},
      {{.network = "rails: { count: 1, cidr: 10.100.0.0/16, gateway: 10.100.1.12 }"},
       "f:4:52: network.rails.gateway: 10.100.1.12 is the address of g2 on rail 0\n"},
      {{.network = "rails: { count: 1, cidr: 10.100.0.0/16, gateway: 10.101.0.1 }"},
       "f:4:52: network.rails.gateway: 10.101.0.1 is not a host address of rail 0's network 10.100.0.0/16\n"},
      {{.network = "rails: { count: 1, cidr: 10.100.0.0/16, kind: infiniband, mtu: 9000 }"},
       "f:4:66: network.rails.mtu: 9000 is more than 4092, the maximum of IPoIB in datagram mode\n"},
      {{.network = "rails: { count: 1, cidr: 10.100.0.0/16, ports: [ eth1, eth2 ] }"},
       "f:4:50: network.rails.ports: 2 ports are listed for 1 rails\n"},
      {{.network = "rails: { count: 2, cidr: 10.96.0.0/14, prefix: 15, ports: [ eth1, eth1 ] }"},
       "f:4:69: network.rails.ports[1]: port eth1 is listed twice\n"},
      {{.network = "rails: { count: 1, cidr: 10.100.0.0/16, ports: [ \"52:54:00:30:00:01\" ] }"},
       "f:4:52: network.rails.ports[0]: 52:54:00:30:00:01 belongs to one node, but this entry covers "
       "several nodes: name ports by PCI address or interface, or declare the node in an entry of its own\n"},
      {{.network = "rails: { count: 1, cidr: 10.100.0.0/16, ports: [ \"0000:1a\" ] }"},
       "f:4:52: network.rails.ports[0]: '0000:1a' is not a port: give an interface name, a MAC address or a "
       "PCI address such as 0000:1a:00.0\n"},
      {{.network =
            "rails: { count: 1, cidr: 10.100.0.0/16, qos: { pfc: [ 3, 3 ], dscp: { 64: 3 }, ets: { 3: 60, 5: "
            "40 } } }"},
       "f:4:60: network.rails.qos.pfc[1]: 3 is given twice\n"
       "f:4:73: network.rails.qos.dscp.64: 64 is more than 63\n"
       "f:4:87: network.rails.qos.ets: adds up to 100 %: at least 1 % must be left for the other "
       "priorities\n"},
      {{.network = kWide, .gpu = "{ playbooks: [ base ] }"},
       "f:4:10: network.rails: is applied by the playbook 'networks', which no role has\n"},
      {{.network = kWide, .head_node = "rails: { count: 1 }"},
       "f:14:12: nodes[1].rails: is applied by the playbook 'networks', which role 'head' does not have\n"},
      {{.network = kWide, .gpu_node = "rails: { count: 3 }"},
       "f:10:21: nodes[0].rails.count: 3 rails are more than the 2 in network.rails\n"},
      {{.network = "bmc: { cidr: 10.30.0.0/16 }", .gpu_node = "rails: { count: 1 }"},
       "f:10:12: nodes[0].rails: no rails are declared: declare them in network.rails\n"},
      {{.network = kWide, .gpu = "{ playbooks: [ interconnect, networks ] }"},
       "f:15:37: roles.gpu.playbooks[1]: must come before 'interconnect', which uses the networks\n"},
      {{.network = kWide + "\n  storage: { cidr: 10.40.0.0/16, port: eth1 }",
        .gpu = "{ playbooks: [ networks ], rails: { ports: [ eth1, eth2 ] } }"},
       "f:7:5: nodes[0]: rail 0 of g1: eth1 is already the storage port\n"},
  };
  for (const auto& [parts, wanted] : all) {
    INFO(text_of(parts));
    CHECK(errors_of(parts) == wanted);
  }
  CHECK(errors_of({.network = kWide, .gpu = gpu}).empty());
}

TEST_CASE("an adopted host's network is its own", "[spec][rails]") {
  std::string text = text_of({.network = kWide, .head_node = "rails: { count: 1 }"});
  const std::string power = "power: { driver: redfish, address: 10.30.1.9, secret: bmc }";
  text.replace(text.find(power), power.size(),
               "adopt: { host: 10.20.0.5, host_key: \"SHA256:" + std::string(43, 'A') + "\" }");
  const std::string plays = "head: { playbooks: [ base ] }";
  text.replace(text.find(plays), plays.size(), "head: { playbooks: [ base, networks ] }");
  const auto refused = parse_spec(text);
  REQUIRE(refused.errors.size() == 1);
  CHECK(refused.errors[0].path == "nodes[1].rails");
  CHECK(refused.errors[0].line == 14);
  text.erase(text.find("    rails: { count: 1 }\n"), std::string("    rails: { count: 1 }\n").size());
  const auto left_out = parse_spec(text);
  for (const auto& e : left_out.errors) UNSCOPED_INFO(to_string(e, "f"));
  REQUIRE(left_out.errors.empty());
  CHECK(left_out.spec.node("head")->rails.empty());
  CHECK(left_out.spec.node("g1")->rails.size() == 2);
}

TEST_CASE("no two nodes share an address, whatever the numbers", "[spec][rails]") {
  std::mt19937 random(20261122);
  for (int round = 0; round < 12; ++round) {
    const int nodes = round == 0 ? 1 : round == 1 ? 2000 : static_cast<int>(random() % 2000) + 1;
    const int rails = static_cast<int>(random() % 8) + 1;
    const bool cut = random() % 2 == 0;
    const int prefix = 16 + static_cast<int>(random() % 5);  // a /20 has room for 2000
    const std::string text = fmt::format(
        "cluster: gaggle\nnetwork:\n  provisioning: {{ cidr: 10.20.0.0/{} }}\n  rails: {{ count: {}, {} }}\n"
        "nodes:\n  - name: g[0001-{:04}]\n    role: gpu\n    power: {{ driver: redfish, address: "
        "\"10.9.{{n}}\", secret: b "
        "}}\nroles: {{ gpu: {{ playbooks: [ networks ] }} }}\n",
        prefix, rails, cut ? "cidr: 10.128.0.0/12, prefix: 16" : "cidr: \"10.{rail+100}.0.0/16\"", nodes);
    ParsedSpec parsed = parse_spec(text);
    std::map<std::string, std::string> seen;
    REQUIRE(parsed.spec.nodes.size() == static_cast<size_t>(nodes));
    for (const auto& e : parsed.errors) REQUIRE(e.path.find("rails") == std::string::npos);
    size_t given = 0;
    for (const auto& node : parsed.spec.nodes) {
      REQUIRE(node.rails.size() == static_cast<size_t>(rails));
      REQUIRE(seen.emplace(node.address, node.name).second);
      for (const auto& rail : node.rails) {
        REQUIRE(seen.emplace(rail.address, node.name).second);
        ++given;
      }
    }
    CHECK(given == static_cast<size_t>(nodes) * static_cast<size_t>(rails));
  }
}
