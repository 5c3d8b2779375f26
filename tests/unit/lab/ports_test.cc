#include "controller/spec/reader/parse_spec.h"
#include "lab/lab_spec.h"

#include <map>
#include <set>

#include "base/digest.h"
#include "controller/spec/spec.h"
#include "lab/bmc_profile.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::lab;

namespace {

std::string spec_with(const std::string& lab) {
  return R"(cluster: t
network: { provisioning: { cidr: 10.20.0.0/24 } }
nodes:
  - { name: "gpu[01-03]", power: { address: "10.20.1.1{n}" } }
  - { name: head, power: { address: 10.20.1.50 } }
lab:
)" + lab;
}

std::vector<std::string> networks(const LabNode& node) {
  std::vector<std::string> out;
  for (const auto& port : node.ports) out.push_back(port.network + (port.cabled ? "" : "!"));
  return out;
}

std::string refusal(const std::string& lab) {
  auto spec = lab_spec_from_yaml(spec_with(lab));
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().code == Code::invalid);
  return spec.error().message;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a lab without the keys of networks has machines with one port each") {
  const auto spec = lab_spec_from_yaml(spec_with("  smp: 1\n")).value();
  for (const auto& node : spec.nodes) CHECK(node.ports.empty());
  CHECK(fast_networks(spec).empty());
  CHECK(spec.time_scale == 1);
}

TEST_CASE("storage port and rails hold for all machines, and what one of them says for itself wins") {
  const auto spec = lab_spec_from_yaml(spec_with(R"(  storage_nic: true
  rails: 2
  time_scale: 0.1
  nodes:
    "gpu[02-03]": { memory_mib: 3072, smp: 2, rails: 4, uncabled: [ rail1, storage ] }
    gpu03: { smp: 4 }
    head: { rails: 0, storage_nic: no }
)"))
                        .value();
  CHECK(networks(spec.nodes[0]) == Names{"storage", "rail0", "rail1"});
  CHECK(networks(spec.nodes[1]) == Names{"storage!", "rail0", "rail1!", "rail2", "rail3"});
  CHECK(networks(spec.nodes[2]) == networks(spec.nodes[1]));
  CHECK(networks(spec.nodes[3]).empty());
  CHECK(spec.nodes[1].smp == 2);
  CHECK(spec.nodes[2].smp == 4);
  CHECK(spec.nodes[2].memory_mib == 3072);
  CHECK(fast_networks(spec) == Names{"storage", "rail0", "rail1", "rail2", "rail3"});
  CHECK(spec.time_scale == 0.1);
  CHECK(to_json(lab_spec_from_json(to_json(spec)).value()) == to_json(spec));
  CHECK(networks(make_extra_node(spec, "spare").value()) == Names{"storage", "rail0", "rail1"});
}

TEST_CASE("a lab.json from before there were such ports is read") {
  auto json = to_json(lab_spec_from_yaml(spec_with("  smp: 1\n")).value());
  for (const auto* key : {"storage_nic", "rails", "time_scale"}) json.erase(key);
  for (auto& node : json["nodes"]) node.erase("ports");
  const auto spec = lab_spec_from_json(json);
  REQUIRE(spec.ok());
  CHECK(spec->nodes[0].ports.empty());
  CHECK(spec->time_scale == 1);
}

TEST_CASE("64 machines with ten ports each have 640 MACs, none of them the bridge's, and short tap names") {
  std::set<std::string> macs = {"52:54:00:20:ff:01"};
  for (int machine = 1; machine <= 64; ++machine) {
    macs.insert(derived_mac(machine, port_number(kProvisioning)));
    const auto ports = make_ports(machine, true, kMaxRails);
    CHECK(ports.size() == 9);
    for (const auto& port : ports) {
      macs.insert(port.mac);
      CHECK(port_number(port.network) > 0);
      CHECK(bridge_name(port.network).size() < 16);  // IFNAMSIZ
    }
  }
  CHECK(macs.size() == 641);
  CHECK(derived_mac(7, port_number("rail0")) == "52:54:00:22:00:07");
  CHECK(port_number("rail8") == -1);
}

TEST_CASE("a port has its MAC whether the ports before it are there or not") {
  const auto with = make_ports(3, true, 1), without = make_ports(3, false, 1);
  CHECK(with[1].network == "rail0");
  CHECK(with[1].mac == without[0].mac);
}

TEST_CASE("what is wrong with a lab's networks is reported with line and column") {
  CHECK(has(refusal("  rails: 9\n"), "line 7, column 10: lab.rails: 9 is more than 8"));
  CHECK(has(refusal("  storage_nic: maybe\n"), "line 7, column 16: lab.storage_nic"));
  for (const auto* scale : {"0", "2", "x", "0.1x", "-1"})
    CHECK(has(refusal(std::string("  time_scale: ") + scale + "\n"), "line 7, column 15: lab.time_scale"));
  CHECK(has(refusal("  rail: 1\n"), "line 7, column 3: lab.rail: unknown key"));
  const auto nodes = [](const std::string& keys) {
    return "  rails: 2\n  nodes: { head: { " + keys + " } }\n";
  };
  CHECK(has(refusal(nodes("uncabled: [ rail2 ]")), "line 8, column 32: lab.nodes.head.uncabled"));
  CHECK(
      has(refusal(nodes("uncabled: [ provisioning ]")), "lab.nodes.head.uncabled[0]: 'provisioning' is not"));
  CHECK(has(refusal(nodes("uncabled: rail1")), "line 8, column 30: lab.nodes.head.uncabled: must be a list"));
  CHECK(has(refusal(nodes("rails: 0, uncabled: [ rail1 ]")), "has no port 'rail1'"));
  CHECK(has(refusal("  nodes: { \"gpu[03-04]\": { smp: 2 } }\n"), "lab.nodes.gpu04: no such node"));
}

TEST_CASE("machines that would share a MAC, a BMC address or their numbers with others are refused") {
  const auto nodes = [](const std::string& list) {
    auto spec =
        lab_spec_from_yaml("cluster: t\nnetwork: { provisioning: { cidr: 10.20.0.0/22 } }\nnodes:\n" + list);
    return spec ? std::string() : spec.error().message;
  };
  // The MAC that the lab derives for the second machine is the one declared for the first.
  CHECK(has(nodes("  - { name: a, power: { address: 10.20.1.1 }, mac: \"52:54:00:20:00:02\" }\n"
                  "  - { name: b, power: { address: 10.20.1.2 } }\n"),
            "MAC address 52:54:00:20:00:02 of b is already used by a"));
  CHECK(has(
      nodes(
          "  - { name: a, power: { address: 10.20.1.1 } }\n  - { name: b, power: { address: 10.20.1.1 } }\n"),
      "10.20.1.1 is used by both a and b"));
  const std::string forty = "  - { name: \"a[01-40]\", power: { address: \"10.20.1.{n}\" } }\n";
  CHECK(nodes(forty).empty());
  CHECK(
      has(nodes(forty + "  - { name: \"b[01-25]\", power: { address: \"10.20.2.{n}\" } }\n"), "at most 64"));
  CHECK(has(nodes("  - { name: \"a[01-65]\", power: { address: \"10.20.1.{n}\" } }\n"), "at most 64"));
}

TEST_CASE("a machine added later does not take a MAC that the spec gave to another") {
  auto spec = lab_spec_from_yaml(spec_with("  smp: 1\n")).value();
  spec.nodes[0].mac = "52:54:00:20:00:05";
  CHECK(make_extra_node(spec, "spare")->mac == "52:54:00:20:01:05");
}

TEST_CASE("eight machines in four roles are the same ones to the lab and to the controller") {
  const auto blob = std::string("\0\0\0\x0bssh-ed25519\0\0\0\x20", 19) + std::string(32, 'k');
  const std::string rest = ", disks: { os: { match: { size: 8 GiB }, policy: format-if-blank } } }\n";
  const auto power = [](const std::string& address) {
    return ", power: { driver: redfish, secret: bmc, address: \"" + address + "\" }";
  };
  const std::string text =
      "cluster: small\n"
      "network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 10.20.1.0/24 } }\n"
      "users: { ops: { keys: [ \"ssh-ed25519 " +
      to_base64(blob) +
      " x\" ], sudo: true } }\n"
      "images: { cpu: { recipe: debian-12 } }\n"
      "nodes:\n"
      "  - { name: head01, role: head, mac: \"52:54:00:20:01:01\"" +
      power("10.20.1.10") + rest + "  - { name: \"gpu[0,2,5-6]\", role: gpu, mac: \"52:54:00:20:02:{n}\"" +
      power("10.20.1.{n+20}") + rest +
      "  - { name: \"arc[09-10]\", role: arc, mac: [ 52-54-00-20-03-09, \"52:54:00:20:03:10\" ], "
      "address: \"10.20.0.{n+30}\"" +
      power("10.20.1.{n+90}") + rest + "  - { name: login, role: login, mac: \"52:54:00:20:04:01\"" +
      power("10.20.1.250") + rest +
      "roles: { head: { playbooks: [] }, gpu: { playbooks: [] }, arc: { playbooks: [] }, login: { playbooks: "
      "[] } }\n"
      "acceptance: { profile: lab }\n"
      "lab:\n  storage_nic: true\n  rails: 2\n  time_scale: 0.5\n  drives: [ { name: os, size: 8 GiB } ]\n"
      "  nodes: { head01: { rails: 0, memory_mib: 3072 }, \"gpu[5-6]\": { smp: 2, uncabled: [ rail1 ] } }\n";
  const auto parsed = parse_spec(text);
  for (const auto& error : parsed.errors) FAIL_CHECK(to_string(error, "spec"));
  const auto spec = lab_spec_from_yaml(text);
  if (!spec) FAIL(spec.error().message);
  REQUIRE(spec->nodes.size() == 8);
  REQUIRE(parsed.spec.nodes.size() == 8);
  for (const auto& node : parsed.spec.nodes) {
    const auto* machine = find_node(*spec, node.name);
    REQUIRE(machine);
    CHECK(machine->mac == node.mac);
    CHECK(machine->address == node.address);
    CHECK(machine->bmc_address == node.power.address);
  }
  CHECK(networks(spec->nodes[4]) == Names{"storage", "rail0", "rail1!"});
}

TEST_CASE("`spec check` knows the lab section, too", "[spec]") {
  const auto errors = [](const std::string& lab) {
    std::vector<std::string> paths;
    for (const auto& error : parse_spec("lab: " + lab + "\n").errors)
      if (error.path.starts_with("lab")) paths.push_back(error.path);
    return paths;
  };
  CHECK(
      errors(
          "{ storage_nic: true, rails: 8, time_scale: 0.1, profile: hpe, smp: 2, memory_mib: 1024, drives: [ "
          "{ name: os, size: 8 GiB, serial_prefix: X, count: 2 } ], nodes: { \"gpu[01-02]\": { rails: 0, "
          "storage_nic: no, uncabled: [ storage, rail0 ], drives: [ { name: os, size: 8 GiB } ] } } }")
          .empty());
  for (const auto& profile : bmc_profiles()) CHECK(errors("{ profile: " + profile.name + " }").empty());
  CHECK(errors("{ }").empty());
  CHECK(errors("").empty());
  CHECK(errors("{ rails: 9 }") == Names{"lab.rails"});
  CHECK(errors("{ raisl: 2 }") == Names{"lab.raisl"});
  CHECK(errors("{ time_scale: 3 }") == Names{"lab.time_scale"});
  CHECK(errors("{ storage_nic: 7 }") == Names{"lab.storage_nic"});
  CHECK(errors("{ profile: hal-9000 }") == Names{"lab.profile"});
  CHECK(errors("{ nodes: { n1: { counting: [ storage, rail7 ] } } }").empty());
  CHECK(errors("{ nodes: { n1: { counting: [ rail8 ] } } }") == Names{"lab.nodes.n1.counting[0]"});
  CHECK(errors("{ counting: [ rail0 ] }") == Names{"lab.counting"});
  CHECK(errors("{ nodes: { n1: { uncabled: [ rail9 ] } } }") == Names{"lab.nodes.n1.uncabled[0]"});
}

TEST_CASE("ports with an adapter that counts errors are kept over a restart of the lab's own process") {
  const auto spec = lab_spec_from_yaml(
      spec_with("  rails: 2\n  nodes: { gpu02: { counting: [ rail1 ] }, head: { rails: 0 } }\n"));
  REQUIRE(spec.ok());
  CHECK(spec->nodes[1].ports[1].counting);
  CHECK_FALSE(spec->nodes[1].ports[0].counting);
  CHECK_FALSE(spec->nodes[0].ports[1].counting);
  const auto again = lab_spec_from_json(to_json(*spec));
  REQUIRE(again.ok());
  CHECK(to_json(*again) == to_json(*spec));
  Json before = to_json(*spec);  // as an older muster wrote it
  for (auto& node : before["nodes"])
    for (auto& port : node["ports"]) port.erase("counting");
  CHECK_FALSE(lab_spec_from_json(before)->nodes[1].ports[1].counting);
  refusal("  rails: 2\n  nodes: { head: { rails: 0, counting: [ rail0 ] } }\n");
  refusal("  rails: 2\n  nodes: { head: { counting: rail0 } }\n");
}
