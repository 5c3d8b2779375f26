// A node is added to the text of a spec, and nothing else changes.
#include "controller/spec/reader/add_node.h"

#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

constexpr char kMac[] = "52:54:00:20:00:04";

NewNode node04() {
  NewNode node;
  node.name = "node04";
  node.like = "node03";
  node.mac = kMac;
  node.power_address = "10.20.1.14";
  return node;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

std::string refusal(const std::string& text, const NewNode& node) {
  const auto added = add_node(text, node);
  REQUIRE_FALSE(added.ok());
  return added.error().message;
}
bool says(const std::string& message, const std::string& word) {
  return message.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("the new node is like the declared one, but for its name, MAC and BMC", "[spec]") {
  const auto added = add_node(testing::kSpec, node04());
  REQUIRE(added.ok());
  const NodeSpec& made = *added->spec.node("node04");
  const NodeSpec like = *added->spec.node("node03");
  CHECK(made.mac == kMac);
  CHECK(made.power.address == "10.20.1.14");
  CHECK(made.power.driver == "redfish");
  CHECK(made.power.secret == "bmc");
  CHECK(made.address == "10.20.0.14");
  CHECK(made.role == like.role);
  CHECK(made.image == like.image);
  REQUIRE(made.disks.size() == like.disks.size());
  for (const auto& [name, group] : like.disks) {
    CAPTURE(name);
    const DiskGroup& own = made.disks.at(name);
    CHECK(own.match.serial == group.match.serial);
    CHECK(own.match.size_bytes == group.match.size_bytes);
    CHECK(own.match.count == group.match.count);
    CHECK(own.policy == group.policy);
  }
}

TEST_CASE("the new node does not stand where its model stands", "[spec]") {
  const auto added = add_node(replaced(testing::kSpec, "    role: cpu\n",
                                       "    role: cpu\n    rack: [ r1, r1, r7 ]\n    switch: leaf3\n"),
                              node04());
  REQUIRE(added.ok());
  CHECK(added->spec.node("node03")->rack == "r7");
  CHECK(added->spec.node("node04")->rack.empty());
  CHECK(added->spec.node("node04")->network_switch.empty());
}

TEST_CASE("the text of the file is only added to", "[spec]") {
  const std::string noted =
      replaced(testing::kSpec, "storage:\n", "# two file systems\n\nstorage:   # keep\n");
  const auto added = add_node(noted, node04());
  REQUIRE(added.ok());
  const std::string entry =
      "  - name: node04\n"
      "    role: cpu\n"
      "    power: { driver: redfish, address: \"10.20.1.14\", secret: bmc }\n"
      "    image: cpu\n"
      "    disks:\n"
      "      os: { match: { serial: \"OS*\", count: 1 } }\n"
      "      fast: { match: { serial: \"FAST*\", size: 2 GiB, count: 2 }, policy: format-if-blank }\n"
      "      bulk: { match: { serial: \"BULK*\", count: 1 }, policy: format-if-blank }\n"
      "    mac: \"52:54:00:20:00:04\"\n";
  CHECK(added->text == replaced(noted, "# two file systems", entry + "# two file systems"));
  // And once more: behind the one that was added.
  NewNode fifth = node04();
  fifth.name = "node05";
  fifth.like = "node04";
  fifth.mac = "52:54:00:20:00:05";
  fifth.power_address = "10.20.1.15";
  const auto twice = add_node(added->text, fifth);
  REQUIRE(twice.ok());
  CHECK(twice->spec.nodes.size() == 5);
  CHECK(twice->text.find("node04") < twice->text.find("node05"));
}

TEST_CASE("other ways to write a list of nodes", "[spec]") {
  const std::string base = testing::kSpec;
  const auto nodes = base.find("nodes:\n"), storage = base.find("storage:\n");
  const std::string head = base.substr(0, nodes), section = base.substr(nodes, storage - nodes),
                    rest = base.substr(storage);
  std::string flush;  // entries not indented, nodes last, no line break at the end
  for (size_t at = 0; at < section.size();) {
    const size_t end = section.find('\n', at);
    const std::string line = section.substr(at, end - at);
    flush += (line.starts_with("  ") ? line.substr(2) : line) + "\n";
    at = end + 1;
  }
  flush.pop_back();
  const auto last = add_node(head + rest + flush, node04());
  REQUIRE(last.ok());
  CHECK(says(last->text, "\n- name: node04\n  role: cpu\n"));
  std::string dos;
  for (const char c : base) dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto crlf = add_node(dos, node04());
  REQUIRE(crlf.ok());
  CHECK(says(crlf->text, "\r\n  - name: node04\r\n    role: cpu\r\n"));
  // Written in braces, the list cannot be added to without rewriting it.
  const std::string flow =
      head +
      "nodes: [ { name: n1, role: cpu, mac: \"52:54:00:20:00:01\", image: cpu, power: { driver: redfish, "
      "address: 10.20.1.11, secret: bmc }, disks: { os: { match: { serial: \"OS*\" } } } } ]\n"
      "roles:\n  cpu: { playbooks: [ base ] }\n";
  NewNode like_n1 = node04();
  like_n1.like = "n1";
  CHECK(says(refusal(flow, like_n1), "by hand"));
}

TEST_CASE("values that need quotes keep them, a pin stays with its own BMC", "[spec]") {
  const std::string pin = "sha256:" + std::string(64, 'a');
  std::string text = replaced(testing::kSpec, "secret: bmc }", "secret: bmc, pin: \"" + pin + "\" }");
  text = replaced(text, "    image: cpu\n",
                  "    image: cpu\n    hardware: { memory: \">= 1 GiB\", cpu_model: 'a \"b\", {c}: #d' }\n"
                  "    vars: { console: \"ttyS0,115200\", number: \"007\" }\n");
  const auto added = add_node(text, node04());
  REQUIRE(added.ok());
  const NodeSpec &made = *added->spec.node("node04"), &like = *added->spec.node("node03");
  CHECK(made.power.pin.empty());
  CHECK(like.power.pin == pin);
  CHECK(made.hardware.cpu_model == "a \"b\", {c}: #d");
  CHECK(made.hardware.memory_bytes_min == int64_t{1} << 30);
  CHECK(made.vars == like.vars);
}

TEST_CASE("no other node moves: an address is written down where the order of names would shift others",
          "[spec]") {
  std::string text = replaced(testing::kSpec, "node[01-03]", "node[01,03,05]");
  NewNode between = node04();
  const auto added = add_node(text, between);
  REQUIRE(added.ok());
  CHECK(added->spec.node("node05")->address == "10.20.0.13");
  CHECK(added->spec.node("node04")->address == "10.20.0.14");
  CHECK(says(added->text, "address: \"10.20.0.14\""));
  between.address = "10.20.0.12";
  CHECK(says(refusal(text, between), "would change the address of node03, which is 10.20.0.12"));
  between.address = "10.20.0.77";
  CHECK(add_node(text, between)->spec.node("node04")->address == "10.20.0.77");
}

TEST_CASE("what cannot be added is refused with what to do", "[spec]") {
  const std::string spec = testing::kSpec;
  const auto with = [](auto&& change) {
    NewNode node = node04();
    change(node);
    return node;
  };
  CHECK(says(refusal(spec, with([](auto& n) { n.name = "node02"; })), "already in the spec"));
  CHECK(says(refusal(spec, with([](auto& n) { n.name = "Node_4"; })), "not a host name"));
  CHECK(says(refusal(spec, with([](auto& n) { n.name = "node[04-05]"; })), "not a range"));
  CHECK(says(refusal(spec, with([](auto& n) { n.like = "nodee03"; })), "did you mean 'node03'"));
  CHECK(says(refusal(spec, with([](auto& n) { n.power_address.clear(); })), "--power-address"));
  CHECK(says(refusal(spec, with([](auto& n) { n.power_address = "10.20.1.13"; })), "used by both"));
  CHECK(says(refusal(spec, with([](auto& n) { n.power_address = "bmc04"; })), "not an address"));
  CHECK(says(refusal(spec, with([](auto& n) { n.power_address = "10.20.1.14\", pin: \"x"; })), "not"));
  CHECK(says(refusal(spec, with([](auto& n) { n.mac = "52:54:00:20:00:03"; })), "used by both"));
  CHECK(says(refusal(spec, with([](auto& n) { n.address = "10.99.0.1"; })), "not a host address"));
  // It would lead the cluster: the storage master would move to an empty machine.
  CHECK(says(refusal(spec, with([](auto& n) { n.name = "a01"; })), "sorts later"));
  const std::string own =
      replaced(spec, "    image: cpu\n", "    image: cpu\n    address: \"10.20.0.2{n}\"\n");
  CHECK(says(refusal(own, node04()), "--address"));
  CHECK(says(refusal("cluster: [", node04()), "not valid YAML"));
}

TEST_CASE("a node like one of a list has the address that was given, and the list stays as it is",
          "[spec][phy]") {
  const std::string ids = "[ \"113100000907\", \"113100000031\", \"113100000512\" ]";
  std::string text = replaced(testing::kSpec, "{ driver: redfish, address: \"10.20.1.1{n}\", secret: bmc }",
                              "{ driver: sakura-phy, address: " + ids +
                                  ", secret: sakura, install: { image: debian12-x86_64, os: debian-12 } }\n"
                                  "    address: [ 10.20.0.40, 10.20.0.9, 10.20.0.41 ]");
  NewNode rented = node04();
  rented.power_address = "113100000600";
  rented.address = "10.20.0.42";
  const auto added = add_node(text, rented);
  if (!added.ok()) FAIL(added.error().message);
  CHECK(says(added->text, "address: " + ids));
  const NodeSpec& made = *added->spec.node("node04");
  CHECK(made.power.address == "113100000600");
  CHECK(made.power.install_os == "debian-12");
  CHECK(made.address == "10.20.0.42");
  CHECK(added->spec.node("node02")->power.address == "113100000031");
  CHECK(added->spec.node("node02")->address == "10.20.0.9");
  rented.power_address = "113100000031";
  CHECK(says(refusal(text, rented), "used by both"));
  rented.power_address = "113100000600";
  rented.address.clear();
  CHECK(says(refusal(text, rented), "--address"));
}
