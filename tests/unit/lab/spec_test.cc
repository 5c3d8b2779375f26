#include "controller/spec/reader/parse_spec.h"
#include "lab/lab_spec.h"

#include "base/digest.h"
#include "controller/spec/spec.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::lab;

namespace {

const char* kSpec = R"(
cluster: t
network: { provisioning: { cidr: 10.20.0.0/24 } }
users: { ops: { keys: [] } }
nodes:
  - { name: "node[01-02]", power: { address: "10.20.1.1{n}" }, mac: [ "52:54:00:AA:00:01", "52:54:00:aa:00:02" ] }
  - { name: head, power: { address: 10.20.1.50 }, address: 10.20.0.50 }
lab:
  memory_mib: 512
  drives: [ { name: os, size: 8 GiB }, { name: fast, size: 2 GB, serial_prefix: F, count: 2 } ]
  nodes: { node02: { profile: dgx-h100, smp: 2 } }
)";

std::string message_of(const std::string& yaml) {
  auto spec = lab_spec_from_yaml(yaml);
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().code == Code::invalid);
  return spec.error().message;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a lab spec expands node ranges and derives what is not said") {
  auto spec = lab_spec_from_yaml(kSpec);
  REQUIRE(spec.ok());
  CHECK(spec->controller == "10.20.0.1");
  CHECK(spec->user == "ops");
  REQUIRE(spec->nodes.size() == 3);
  const auto &one = spec->nodes[0], &two = spec->nodes[1], &head = spec->nodes[2];
  CHECK(one.name == "node01");
  CHECK(one.mac == "52:54:00:aa:00:01");
  CHECK(one.address == "10.20.0.11");
  CHECK(one.bmc_address == "10.20.1.11");
  CHECK(one.memory_mib == 512);
  CHECK(two.bmc_address == "10.20.1.12");
  CHECK(two.profile == "dgx-h100");
  CHECK(two.smp == 2);
  CHECK(one.profile == "generic");
  CHECK(head.address == "10.20.0.50");
  CHECK(head.mac == "52:54:00:20:00:03");
}

TEST_CASE("drives carry distinct serials and only the first boots") {
  auto spec = lab_spec_from_yaml(kSpec);
  REQUIRE(spec.ok());
  const auto& drives = spec->nodes[1].drives;
  REQUIRE(drives.size() == 3);
  CHECK(drives[0].boot);
  CHECK(drives[0].serial == "LABOS0201");
  CHECK(drives[0].size_bytes == int64_t{8} << 30);
  CHECK_FALSE(drives[1].boot);
  CHECK(drives[1].name == "fast1");
  CHECK(drives[1].serial == "F0201");
  CHECK(drives[2].serial == "F0202");
  CHECK(drives[2].size_bytes == 2000000000 / 512 * 512);
}

TEST_CASE("a machine keeps its identity from lab to lab and shares it with no other") {
  auto a = lab_spec_from_yaml(kSpec), b = lab_spec_from_yaml(kSpec);
  REQUIRE((a.ok() && b.ok()));
  CHECK(a->nodes[0].uuid == b->nodes[0].uuid);
  CHECK(a->nodes[0].uuid != a->nodes[1].uuid);
  CHECK(a->nodes[0].uuid.size() == 36);
}

TEST_CASE("lab.json gives back what was written, drives and added machines included") {
  auto spec = lab_spec_from_yaml(kSpec);
  REQUIRE(spec.ok());
  auto extra = make_extra_node(*spec, "spare");
  REQUIRE(extra.ok());
  spec->nodes.push_back(*extra);
  auto again = lab_spec_from_json(to_json(*spec));
  REQUIRE(again.ok());
  CHECK(to_json(*again) == to_json(*spec));
  CHECK_FALSE(again->nodes.back().in_spec);
  auto damaged = to_json(*spec);
  damaged["nodes"][0].erase("mac");
  CHECK(lab_spec_from_json(damaged).error().code == Code::corrupt);
}

TEST_CASE("a machine added later takes free addresses; a taken name is refused") {
  auto spec = lab_spec_from_yaml(kSpec);
  REQUIRE(spec.ok());
  auto extra = make_extra_node(*spec, "spare");
  REQUIRE(extra.ok());
  CHECK(extra->bmc_address == "10.20.1.51");
  CHECK(extra->mac == "52:54:00:20:00:04");
  CHECK(make_extra_node(*spec, "node01").error().code == Code::conflict);
  CHECK(make_extra_node(*spec, "no/slash").error().code == Code::invalid);
}

TEST_CASE("a lab's sizes and names have one form") {
  const auto drive = [](const std::string& name, const std::string& size) {
    std::string text = kSpec;
    const std::string old = "{ name: os, size: 8 GiB }";
    text.replace(text.find(old), old.size(),
                 "{ name: \"" + name + "\", serial_prefix: P, size: \"" + size + "\" }");
    return lab_spec_from_yaml(text);
  };
  for (const auto& [size, bytes] : std::map<std::string, int64_t>{{"8 GiB", int64_t{8} << 30},
                                                                  {"8GiB", int64_t{8} << 30},
                                                                  {"1.5  GB", 1500000000 / 512 * 512},
                                                                  {"2147483648 B", int64_t{2} << 30}}) {
    const auto spec = drive("os", size);
    REQUIRE(spec.ok());
    CHECK(spec->nodes[0].drives[0].size_bytes == bytes);
  }
  for (const char* size : {"", "8", "GiB", "8 gib", "8.5.1 GiB", "-8 GiB", "8,5 GiB", "0x8 GiB", "8e1 GiB"})
    CHECK_FALSE(drive("os", size).ok());
  CHECK(drive("a-0123456789abcd", "8 GiB").ok());
  for (const char* name : {"", "0s", "-s", "Os", "o_s", "a-0123456789abcde"})
    CHECK_FALSE(drive(name, "8 GiB").ok());
  auto spec = lab_spec_from_yaml(kSpec);
  REQUIRE(spec.ok());
  CHECK(make_extra_node(*spec, "0-" + std::string(29, 'z')).ok());
  for (const std::string& name : {std::string(), std::string("-a"), std::string("A"), std::string(32, 'z')})
    CHECK(make_extra_node(*spec, name).error().code == Code::invalid);
}

TEST_CASE("every problem of a lab spec is reported at once, unknown keys of the lab section too") {
  const auto text = message_of(R"(
cluster: Not A Name
network: { provisioning: { cidr: 10.20.0.0/33 } }
nodes: [ { name: "n[3-1]" }, { name: x, power: { address: nowhere } } ]
lab: { memory: 5, profile: hal-9000, drives: [ { name: os, size: 8 potatoes } ] }
)");
  for (const auto* part : {"cluster:", "10.20.0.0/33", "n[3-1]", "'nowhere'", "lab.memory: unknown key",
                           "hal-9000", "8 potatoes"}) {
    INFO(part << " in " << text);
    CHECK(has(text, part));
  }
  CHECK(has(message_of("a: [1"), "line "));
  CHECK(has(message_of("just text"), "not a YAML map"));
}

TEST_CASE("the specs of quickstart and rehearsal are labs of three and of two machines") {
  const auto [file, machines, drives] = GENERATE(
      table<std::string, size_t, size_t>({{"/lab/quickstart.yaml", 3, 4}, {"/lab/one-server.yaml", 2, 3}}));
  CAPTURE(file);
  auto text = Files("/").read(source_dir() + file);
  REQUIRE(text.ok());
  auto spec = lab_spec_from_yaml(*text);
  REQUIRE(spec.ok());
  REQUIRE(spec->nodes.size() == machines);
  CHECK(spec->nodes[1].bmc_address == "10.20.1.12");
  CHECK(spec->nodes[0].drives.size() == drives);
  // With a key in place it is also a cluster spec without complaint, and both readers see the same machines.
  const auto blob = std::string("\0\0\0\x0bssh-ed25519\0\0\0\x20", 19) + std::string(32, 'k');
  const std::string token = "ssh-ed25519 LAB_SSH_KEY";
  REQUIRE(text->find(token) != std::string::npos);
  auto parsed = parse_spec(text->replace(text->find(token), token.size(), "ssh-ed25519 " + to_base64(blob)));
  for (const auto& error : parsed.errors) FAIL_CHECK(to_string(error, file));
  REQUIRE(parsed.spec.nodes.size() == machines);
  CHECK(parsed.spec.lab);
  for (size_t i = 0; i < machines; ++i) {
    CHECK(parsed.spec.nodes[i].name == spec->nodes[i].name);
    CHECK(parsed.spec.nodes[i].mac == spec->nodes[i].mac);
    CHECK(parsed.spec.nodes[i].address == spec->nodes[i].address);
    CHECK(parsed.spec.nodes[i].power.address == spec->nodes[i].bmc_address);
  }
}

TEST_CASE(
    "a lab has no machine for an adopted node, and says so; the others keep their numbers and addresses") {
  std::string text = kSpec;
  const std::string adopted = "  - { name: old01, adopt: { host: 10.20.0.31 } }\n";
  text.insert(text.find("  - { name: head"), adopted);
  const auto spec = lab_spec_from_yaml(text);
  REQUIRE(spec.ok());
  CHECK(spec->adopted == std::vector<std::string>{"old01"});
  REQUIRE(spec->nodes.size() == 3);
  CHECK(spec->nodes[2].name == "head");
  CHECK(spec->nodes[2].number == 3);
  CHECK(lab_spec_from_json(to_json(*spec))->nodes.size() == 3);

  CHECK(has(message_of("cluster: t\nnetwork: { provisioning: { cidr: 10.20.0.0/24 } }\nnodes:\n" + adopted),
            "all nodes are adopted hosts"));
  text.replace(text.find("node02: {"), 6, "old01");
  CHECK(has(message_of(text), "an adopted host has no machine in a lab"));
}
