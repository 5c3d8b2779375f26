#include "controller/engines/engine.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"

#include <fmt/format.h>

#include <set>

#include "base/digest.h"
#include "controller/spec/schema.h"
#include "tests/catch.h"

using namespace muster;

namespace {

const std::string kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSzZ9rzTDZGMk3ztdsEUCsjTLYnl ops@desk";

// Every bad spec is this one with one piece replaced, so each expected line and column can be counted here.
std::string good() {
  return R"(cluster: gaggle
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users: { ops: { keys: [ ")" +
         kKey + R"(" ], sudo: true } }
images:
  gpu: { recipe: debian-12, bake: [ base, ssh ] }
nodes:
  - name: gpu[01-03]
    role: gpu
    power: { driver: redfish, address: "10.20.1.{n+10}", secret: bmc }
    mac: "52:54:00:aa:00:{n}"
    image: gpu
    hardware: { gpus: 8, gpu_model: "H100*", memory: ">= 2 TiB", nics: { any: 2 } }
    disks:
      os:   { match: { model: "Micron 7450*", count: 1 } }
      fast: { match: { model: "PM9A3*", size: "3.8 TB", count: 2 }, policy: format-if-blank }
      bulk: { match: { model: "PM9A3*", size: "7.6 TB", count: 2 }, policy: format }
  - name: login
    role: login
    power: { driver: redfish, address: 10.20.1.99, secret: bmc }
    mac: [ "52:54:00:bb:00:01" ]
    address: 10.20.0.12
    disks: { os: { match: { serial: S1 } } }
storage:
  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: /scratch }
  shared:  { engine: moosefs, disks: bulk, nodes: { role: gpu }, copies: 2, mount: /shared }
roles:
  gpu: { playbooks: [ base, ssh ] }
  login: { playbooks: [ base ] }
acceptance: { profile: h100 }
)";
}

const SpecNames kNames{{"base", "ssh", "firewall"}, {"h100", "lab"}, {{"debian-12"}, {"debian-13"}}};

std::string with(const std::string& from, const std::string& to) {
  std::string text = good();
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string errors_of(const std::string& text) {
  std::string out;
  for (const SpecError& error : parse_spec(text, kNames).errors) out += to_string(error, "f") + "\n";
  return out;
}

struct Bad {
  const char* from;
  const char* to;
  const char* expected;  // all lines
};
const Bad kBad[] = {
#include "tests/golden/bad_specs.inc"
};

}  // namespace

TEST_CASE("a good spec is read whole", "[spec]") {
  const ParsedSpec parsed = parse_spec(good(), kNames);
  CHECK(errors_of(good()) == "");
  const Spec& s = parsed.spec;
  CHECK(s.cluster == "gaggle");
  CHECK(s.network.controller == "10.20.0.1");
  CHECK(s.network.dhcp == "managed");
  REQUIRE(s.nodes.size() == 4);
  CHECK(s.nodes[0].name == "gpu01");
  CHECK(s.nodes[0].address == "10.20.0.11");
  CHECK(s.nodes[0].power.address == "10.20.1.11");
  CHECK(s.nodes[0].mac == "52:54:00:aa:00:01");
  CHECK(s.nodes[0].hardware.gpus == 8);
  CHECK(s.nodes[0].hardware.memory_bytes_min == int64_t{2} << 40);
  CHECK(s.nodes[0].hardware.nics.at("any") == 2);
  CHECK_FALSE(s.nodes[0].hardware.cpus.has_value());
  CHECK(s.nodes[1].address == "10.20.0.13");  // .12 is login's own
  CHECK(s.nodes[2].address == "10.20.0.14");
  CHECK(s.nodes[3].name == "login");
  CHECK(s.nodes[3].image == "gpu");                                        // the only one
  CHECK(s.nodes[0].disks.at("os").policy == DiskPolicy::format_if_blank);  // never more than was said
  CHECK(s.nodes[0].disks.at("fast").policy == DiskPolicy::format_if_blank);
  CHECK(s.nodes[0].disks.at("fast").match.size_bytes == 3'800'000'000'000);
  CHECK(s.nodes[0].disks.at("fast").match.count == 2);
  REQUIRE(s.storage.size() == 2);
  CHECK(s.storage[0].fs == "xfs");
  CHECK(s.storage[1].role == "gpu");
  CHECK(s.storage[1].copies == 2);
  CHECK(s.users.at("ops").sudo);
  CHECK(s.users.at("ops").keys == std::vector<std::string>{kKey});
  CHECK(s.images.at("gpu").bake == std::vector<std::string>{"base", "ssh"});
  CHECK(s.images.at("gpu").kernel == "full");
  CHECK(s.roles.at("gpu") == std::vector<std::string>{"base", "ssh"});
  CHECK(s.acceptance_profile == "h100");
  CHECK(s.limits.parallel_imaging == 16);
  CHECK(s.limits.netboot == 20 * kMinute);  // the firmware's tests of a large server take 10 min and more
  CHECK(s.limits.boot == 20 * kMinute);
  CHECK_FALSE(s.lab);
  CHECK(s.node("gpu02") == &s.nodes[1]);
  CHECK(s.node("gpu09") == nullptr);
}

TEST_CASE("racks and switches are labels: of a whole range, by number, or one per node", "[spec]") {
  for (const NodeSpec& node : parse_spec(good(), kNames).spec.nodes) {
    CHECK(node.rack.empty());
    CHECK(node.network_switch.empty());
  }
  const std::string text =
      with("    image: gpu\n", "    image: gpu\n    rack: [ 7, 7, a/8 ]\n    switch: leaf{n}\n");
  CHECK(errors_of(text) == "");
  const Spec s = parse_spec(text, kNames).spec;
  CHECK(s.nodes[0].rack == "7");
  CHECK(s.nodes[1].rack == "7");
  CHECK(s.nodes[2].rack == "a/8");
  CHECK(s.nodes[2].network_switch == "leaf3");
  CHECK(s.nodes[3].rack.empty());
}

TEST_CASE("nodes may be switched by IPMI or by a program of the operator's", "[spec][power]") {
  const auto ipmi =
      parse_spec(with("driver: redfish, address: 10.20.1.99",
                      "driver: ipmi, cipher_suite: 3, pin: \"guid:0123456789abcdef0123456789abcdef\", "
                      "address: \"10.20.1.99:6230\""),
                 kNames);
  CHECK(ipmi.errors.empty());
  CHECK(ipmi.spec.nodes.back().power.cipher_suite == 3);
  CHECK_FALSE(ipmi.spec.nodes.back().power.sol);
  CHECK(ipmi.spec.nodes.back().power.privilege == "");
  CHECK(
      parse_spec(with("driver: redfish, address: 10.20.1.99", "driver: ipmi, sol: true, address: 10.20.1.99"),
                 kNames)
          .spec.nodes.back()
          .power.sol);
  CHECK(errors_of(
            with("driver: redfish, address: 10.20.1.99", "driver: redfish, sol: true, address: 10.20.1.99"))
            .find("sol") != std::string::npos);
  // Two programs may each have an outlet 7, and one program has it once.
  const std::string outlet = "driver: command, program: pdu1, address: \"outlet 7\"";
  const auto command = parse_spec(with("driver: redfish, address: 10.20.1.99, secret: bmc", outlet), kNames);
  CHECK(command.errors.empty());
  CHECK(command.spec.nodes.back().power.program == "pdu1");
  CHECK(command.spec.nodes.back().power.address == "outlet 7");
  const auto of_gpus = [&](const std::string& program) {
    std::string text = with("driver: redfish, address: 10.20.1.99, secret: bmc", outlet);
    const std::string from = "driver: redfish, address: \"10.20.1.{n+10}\", secret: bmc";
    return errors_of(text.replace(text.find(from), from.size(),
                                  "driver: command, program: " + program + ", address: \"outlet {n+6}\""));
  };
  CHECK(of_gpus("pdu2").empty());
  CHECK(of_gpus("pdu1").find("power address pdu1 outlet 7 is used by both") != std::string::npos);
}

TEST_CASE("nodes may be switched by a person, who has a place to go and a time", "[spec][power][manual]") {
  const auto manual = [](const std::string& keys) {
    return with("driver: redfish, address: 10.20.1.99, secret: bmc", "driver: manual" + keys);
  };
  const auto plain = parse_spec(manual(""), kNames);
  CHECK(plain.errors.empty());
  CHECK(plain.spec.nodes.back().power.within == 8 * 60 * kMinute);
  const auto full = parse_spec(manual(", within: 90 min, address: \"rack 3, unit 12: 2nd button\""), kNames);
  CHECK(full.errors.empty());
  CHECK(full.spec.nodes.back().power.within == 90 * kMinute);
  CHECK(full.spec.nodes.back().power.address == "rack 3, unit 12: 2nd button");
  for (const char* wrong : {", secret: bmc", ", cipher_suite: 3", ", program: pdu1", ", within: 1 min",
                            ", within: 200 h", ", within: soon", ", address: \"two\\nlines\""}) {
    CAPTURE(wrong);
    CHECK_FALSE(errors_of(manual(wrong)).empty());
  }
  CHECK(errors_of(with("driver: redfish, address: 10.20.1.99, secret: bmc",
                       "driver: redfish, within: 2 h, address: 10.20.1.99, secret: bmc"))
            .find("within") != std::string::npos);
}

TEST_CASE("limits, variables and a lab section are read", "[spec]") {
  const ParsedSpec parsed = parse_spec(good() +
                                           "limits: { parallel_imaging: 4, power_stagger: 500 ms, "
                                           "failure_budget: 1, netboot: 12 min, boot: 90 s }\n"
                                           "lab: { memory_mib: 1024, drives: [ { name: os } ] }\n"
                                           "vars: { ntp: 10.0.0.1, port: 5 }\n",
                                       kNames);
  CHECK(parsed.errors.empty());
  CHECK(parsed.spec.limits.parallel_imaging == 4);
  CHECK(parsed.spec.limits.power_stagger == 500);
  CHECK(parsed.spec.limits.failure_budget == 1);
  CHECK(parsed.spec.limits.netboot == 12 * kMinute);
  CHECK(parsed.spec.limits.boot == 90 * kSecond);
  CHECK(parsed.spec.lab);
  CHECK(parsed.spec.vars.at("port") == "5");
}

TEST_CASE("name servers, time servers, proxy, firewall, packages and kernel parameters are read", "[spec]") {
  std::string text = with("  bmc:          { cidr: 10.20.1.0/24 }\n",
                          "  bmc: { cidr: 10.20.1.0/24 }\n  dns: [ 10.20.0.11, 10.9.0.53 ]\n"
                          "  join_from_any_port: true\n"
                          "  search: [ cluster.example ]\n  ntp: [ gpu01, ntp.example, 10.20.0.13 ]\n"
                          "  proxy: \"http://proxy.example:3128/\"\n  no_proxy: [ .example, 10.0.0.0/8 ]\n");
  const std::string role = "  gpu: { playbooks: [ base, ssh ] }\n";
  text.replace(text.find(role), role.size(),
               "  gpu: { playbooks: [ base, firewall ], packages: [ g++, libstdc++6 ], "
               "sysctls: { kernel.core_pattern: \"|/usr/bin/core %p\" } }\n");
  text +=
      "time_zone: America/Argentina/Buenos_Aires\npackages: [ tmux ]\n"
      "sysctls: { vm.swappiness: 10, net.ipv4.tcp_rmem: 4096 87380 6291456 }\n"
      "firewall:\n  - { from: 10.0.0.0/8, port: 443, proto: tcp, roles: [ gpu ], comment: the portal }\n"
      "  - { from: 192.168.7.9 }\n  - { from: 0.0.0.0/0, ports: \"6000:6100\" }\n";
  CHECK(errors_of(text) == "");
  const Spec s = parse_spec(text, kNames).spec;
  CHECK(s.network.dns == std::vector<std::string>{"10.20.0.11", "10.9.0.53"});
  CHECK(s.network.search == std::vector<std::string>{"cluster.example"});
  CHECK(s.network.ntp == std::vector<std::string>{"gpu01", "ntp.example", "10.20.0.13"});
  CHECK(s.network.join_from_any_port);
  CHECK_FALSE(Network().join_from_any_port);
  CHECK(s.network.proxy == "http://proxy.example:3128/");
  CHECK(s.network.no_proxy == std::vector<std::string>{".example", "10.0.0.0/8"});
  CHECK(s.nodes[0].address == "10.20.0.14");  // .11 and .13 are servers', .12 is login's
  CHECK(s.time_zone == "America/Argentina/Buenos_Aires");
  CHECK(s.additions.packages == std::vector<std::string>{"tmux"});
  CHECK(s.additions.sysctls.at("net.ipv4.tcp_rmem") == "4096 87380 6291456");
  CHECK(s.role_additions.at("gpu").packages == std::vector<std::string>{"g++", "libstdc++6"});
  CHECK(s.role_additions.at("gpu").sysctls.at("kernel.core_pattern") == "|/usr/bin/core %p");
  CHECK(s.role_additions.at("login").packages.empty());
  REQUIRE(s.firewall.size() == 3);
  CHECK(s.firewall[0].ports == "443");
  CHECK(s.firewall[0].proto == "tcp");
  CHECK(s.firewall[0].comment == "the portal");
  CHECK(s.firewall[0].roles == std::vector<std::string>{"gpu"});
  CHECK(s.firewall[1].from == "192.168.7.9");
  CHECK(s.firewall[1].ports.empty());
  CHECK(s.firewall[2].ports == "6000:6100");
}

TEST_CASE("hosts with a name server of their own may use names", "[spec]") {
  const std::string text =
      "cluster: x\nnetwork: { provisioning: { cidr: 10.20.0.0/24 }, ntp: [ ntp.example ] }\n"
      "nodes: [ { name: head, role: r, adopt: { host: 10.20.0.5, host_key: \"SHA256:" +
      std::string(43, 'A') + "\" } } ]\nroles: { r: { playbooks: [ base ] } }\n";
  CHECK(errors_of(text) == "");
}

TEST_CASE("deadlines take minutes in both spellings, and no value that is a slip of the unit", "[spec]") {
  const auto netboot_of = [](const std::string& value) {
    return parse_spec(good() + "limits: { netboot: " + value + " }\n", kNames);
  };
  CHECK(netboot_of("20m").spec.limits.netboot == 20 * kMinute);
  CHECK(netboot_of("20min").spec.limits.netboot == 20 * kMinute);
  CHECK(netboot_of("1200").spec.limits.netboot == 20 * kMinute);
  for (const std::string bad : {"0", "20 s", "25 h", "soon", "-5 min"}) {
    INFO(bad);
    const ParsedSpec parsed = netboot_of(bad);
    REQUIRE(parsed.errors.size() == 1);
    CHECK(parsed.errors[0].path == "limits.netboot");
  }
}

TEST_CASE("every mistake is named with its place, its rule and the nearest spelling", "[spec]") {
  for (const Bad& bad : kBad) {
    INFO("replaced: " << bad.from << "\nwith: " << bad.to);
    CHECK(errors_of(with(bad.from, bad.to)) == bad.expected);
  }
}

TEST_CASE("all errors come at once, in the order of the file", "[spec]") {
  std::string text = with("role: gpu\n", "rol: gpu\n");
  text.replace(text.find("cidr: 10.20.1.0/24"), 18, "cidr: 10.20.1.7/24");
  text.replace(text.find("profile: h100"), 13, "profile: h1000");
  CHECK(
      errors_of(text) ==
      "f:4:25: network.bmc.cidr: '10.20.1.7/24' is an address, not a network; did you mean '10.20.1.0/24'?\n"
      "f:9:5: nodes[0]: missing key 'role'\n"
      "f:10:5: nodes[0].rol: unknown key, did you mean 'role'?\n"
      "f:27:59: storage.shared.nodes.role: unknown role 'gpu'; known: login\n"
      "f:31:24: acceptance.profile: unknown profile 'h1000', did you mean 'h100'?\n");
}

TEST_CASE("names outside the file are checked only against what is given", "[spec]") {
  CHECK(parse_spec(with("[ base, ssh ] }\nnodes", "[ nonsense ] }\nnodes")).errors.empty());
}

TEST_CASE("hostile YAML ends in an error, not in a crash", "[spec]") {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c)
    bomb += fmt::format("{}: &{} [*{},*{},*{},*{},*{},*{},*{},*{},*{}]\n", c, c, char(c - 1), char(c - 1),
                        char(c - 1), char(c - 1), char(c - 1), char(c - 1), char(c - 1), char(c - 1),
                        char(c - 1));
  CHECK_FALSE(parse_spec(bomb).errors.empty());
  CHECK_FALSE(parse_spec("a: &a [*a]\n").errors.empty());
  CHECK_FALSE(parse_spec(std::string(5000, '[')).errors.empty());
  CHECK_FALSE(parse_spec("cluster: " + std::string(1 << 20, 'a')).errors.empty());
  CHECK_FALSE(parse_spec(std::string("\0\1\2", 3)).errors.empty());
  CHECK_FALSE(parse_spec("").errors.empty());
  CHECK_FALSE(parse_spec("cluster: x\n---\ncluster: y\n").errors.empty());
}

TEST_CASE("merge keys and anchors work", "[spec]") {
  std::string text = with("    disks: { os: { match: { serial: S1 } } }\n",
                          "    disks: { os: { match: { <<: *m, count: 1 } } }\n");
  text.insert(text.find("{ model: \"Micron"), "&m ");
  const ParsedSpec parsed = parse_spec(text, kNames);
  CHECK(errors_of(text) == "");
  CHECK(parsed.spec.node("login")->disks.at("os").match.model == "Micron 7450*");
}

TEST_CASE("the schema is JSON and names every section", "[spec]") {
  const Json schema = Json::parse(embedded::spec_schema);
  CHECK(schema["properties"].contains("nodes"));
  CHECK(schema["properties"]["schedule"]["x-not-implemented"] == true);
}

TEST_CASE("a schema that asks for what is not applied is refused, and ours do not", "[spec]") {
  for (const char* schema : {embedded::spec_schema, embedded::playbook_schema})
    CHECK(unsupported_keywords(Json::parse(schema)).empty());
  // "maxItems" as a key of the document is none of a schema.
  const Json fine = {{"properties", {{"maxItems", {{"type", "string"}, {"minLength", 2}}}}}};
  CHECK(unsupported_keywords(fine).empty());
  const Json wrong = {{"type", "object"},
                      {"oneOf", Json::array()},
                      {"propertyNames", {{"pattern", "^a"}}},
                      {"patternProperties", {{"^a", {{"maxItems", 3}}}}},
                      {"$defs", {{"x", {{"items", {{"format", "ipv4"}}}}}}}};
  const auto found = unsupported_keywords(wrong);
  CHECK(std::set<std::string>(found.begin(), found.end()) ==
        std::set<std::string>{"/oneOf", "/propertyNames/pattern", "/patternProperties/^a/maxItems",
                              "/$defs/x/items/format"});
  std::vector<SpecError> errors;
  YamlNode root;
  root.kind = YamlNode::Kind::map;
  check_schema(root, wrong, errors);
  REQUIRE(errors.size() == 1);
  errors.clear();
  YamlEntry entry;
  entry.key = "maxItems";
  entry.value.kind = YamlNode::Kind::scalar;
  entry.value.text = "x";
  root.entries = {entry};
  check_schema(root, fine, errors);
  CHECK(errors.size() == 1);
  root.entries[0].value.text = "xy";
  errors.clear();
  check_schema(root, fine, errors);
  CHECK(errors.empty());
}

TEST_CASE("node ranges expand", "[spec]") {
  CHECK(*expand_range("gpu[01-03]") == std::vector<std::string>{"gpu01", "gpu02", "gpu03"});
  CHECK(*expand_range("r1-n[8-10]x") == std::vector<std::string>{"r1-n8x", "r1-n9x", "r1-n10x"});
  CHECK(*expand_range("gpu[01-02,07]") == std::vector<std::string>{"gpu01", "gpu02", "gpu07"});
  CHECK(*expand_range("login") == std::vector<std::string>{"login"});
  CHECK(expand_range("n[0001-4096]")->size() == 4096);
  for (const char* bad :
       {"", "gpu[03-01]", "gpu[01-1]", "gpu[]", "gpu[a-b]", "gpu[1-2", "gpu1-2]", "[1-2][3-4]", "g[1-]",
        "g[-1]", "g[0001-4097]", "g[01-003]", "g[1,,2]", "g]1-2[", "g[1-9999999999]"})
    CHECK(expand_range(bad).error().code == Code::invalid);
}

TEST_CASE("sizes are read in decimal and binary units", "[spec]") {
  CHECK(*parse_size("3.8 TB") == 3'800'000'000'000);
  CHECK(*parse_size("512 GiB") == int64_t{512} << 30);
  CHECK(*parse_size("2TiB") == int64_t{2} << 40);
  CHECK(*parse_size("900 MiB") == int64_t{900} << 20);
  CHECK(*parse_size("4096") == 4096);
  for (const char* bad : {"", "TB", "3.8 TBs", "1.2.3 GB", "-1 GB", "9000000 PB", "8 gib", ". GB", "1e3 GB"})
    CHECK(parse_size(bad).error().code == Code::invalid);
}

TEST_CASE("globs", "[spec]") {
  CHECK(glob_match("Micron 7450*", "Micron 7450 MTFDKBA"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("S?1*Z", "SA1fooZ"));
  CHECK(glob_match("a*b*c", "aXbYbZc"));
  CHECK_FALSE(glob_match("Micron", "Micron 7450"));
  CHECK_FALSE(glob_match("a*c", "ab"));
  CHECK_FALSE(glob_match("", "a"));
}

TEST_CASE("the nearest spelling", "[spec]") {
  CHECK(nearest_spelling("rol", {"role", "name"}) == "role");
  CHECK(nearest_spelling("acceptnace", {"acceptance", "images"}) == "acceptance");
  CHECK(nearest_spelling("playbokos", {"playbooks"}) == "playbooks");
  CHECK(nearest_spelling("x", {"os", "fast"}) == "");
  CHECK(nearest_spelling("zebra", {"os", "fast", "role"}) == "");
}

TEST_CASE("engine ceph: two copies at least, on as many nodes, and one of it", "[spec]") {
  const std::string moosefs = "engine: moosefs, disks: bulk, nodes: { role: gpu }, copies: 2,";
  const auto ceph = [&](const std::string& rest) {
    return with(moosefs, "engine: ceph, disks: bulk, nodes: { role: gpu }, " + rest);
  };
  const ParsedSpec good = parse_spec(ceph("copies: 3,"), kNames);
  REQUIRE(good.errors.empty());
  CHECK(good.spec.storage.back().copies == 3);
  CHECK(errors_of(ceph("copies: 1,")).find("needs at least 2 copies") != std::string::npos);
  CHECK(errors_of(ceph("copies: 4,"))
            .find("4 copies require as many nodes, but only 3 hold data of this storage") !=
        std::string::npos);
  for (const std::string key : {"level: raid0", "fs: xfs", "server: gpu01"})
    CHECK(
        errors_of(ceph(key + ",")).find(key.substr(0, key.find(':')) + ": has no effect for engine 'ceph'") !=
        std::string::npos);
  std::string two = ceph("");
  two.replace(two.find("engine: local, disks: fast, level: raid0, fs: xfs"), 49, "engine: ceph, disks: fast");
  CHECK(errors_of(two).find("storage 'scratch' already has engine 'ceph'; only one section may have it") !=
        std::string::npos);
}

TEST_CASE("engine beegfs keeps nothing twice", "[spec]") {
  const std::string moosefs = "engine: moosefs, disks: bulk, nodes: { role: gpu }, copies: 2,";
  CHECK(errors_of(with(moosefs, "engine: beegfs, disks: bulk, nodes: { role: gpu },")).empty());
  CHECK(errors_of(with(moosefs, "engine: beegfs, disks: bulk, copies: 2,"))
            .find("copies: has no effect for engine 'beegfs'") != std::string::npos);
}

TEST_CASE("engine nfs names its server", "[spec]") {
  const std::string moosefs = "engine: moosefs, disks: bulk, nodes: { role: gpu }, copies: 2,";
  const auto nfs = [&](const std::string& rest) {
    return with(moosefs, "engine: nfs, disks: bulk, " + rest);
  };
  const ParsedSpec good = parse_spec(nfs("server: gpu02, nodes: { role: login },"), kNames);
  REQUIRE(good.errors.empty());
  const StorageSpec& shared = good.spec.storage.back();
  CHECK(shared.server == "gpu02");
  CHECK(holds_data(shared, *good.spec.node("gpu02")));
  CHECK_FALSE(holds_data(shared, *good.spec.node("gpu01")));
  CHECK(errors_of(nfs("")).find("missing key 'server'") != std::string::npos);
  CHECK(errors_of(nfs("server: gpu2,")).find("did you mean 'gpu02'?") != std::string::npos);
  CHECK(errors_of(nfs("server: login,")).find("login has no disk group 'bulk'") != std::string::npos);
  CHECK(errors_of(nfs("server: gpu02, copies: 2,")).find("copies: has no effect for engine 'nfs'") !=
        std::string::npos);
  // Of MooseFS it may be named.
  CHECK(errors_of(with(moosefs, moosefs + " server: gpu02,")).empty());
}
