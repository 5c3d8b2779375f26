// Adopted nodes in a spec: what may be said of them, and how the command writes one down.
#include "controller/spec/reader/add_node.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

const std::string kKey = "SHA256:" + std::string(43, 'A');

std::string spec_with(const std::string& entry) {
  std::string text = testing::kSpec;
  const auto at = text.find("storage:\n  scratch");
  REQUIRE(at != std::string::npos);
  return text.insert(at, entry);
}

std::string with_host(const std::string& more = "", const std::string& host = "10.20.0.31") {
  return spec_with(
      "  - name: spare01\n    role: cpu\n    adopt: { host: " + host + ", user: admin, host_key: \"" + kKey +
      "\" }\n" +
      "    disks:\n      fast: { match: { serial: \"FAST*\", count: 2 }, policy: format-if-blank }\n" +
      "      bulk: { match: { serial: \"BULK*\", count: 1 }, policy: format-if-blank }\n" + more);
}

std::string errors_of(const std::string& text) {
  std::string all;
  for (const auto& e : parse_spec(text).errors) all += to_string(e, "f") + "\n";
  return all;
}

NewNode spare01() {
  NewNode node;
  node.name = "spare01";
  node.like = "node03";
  node.adopt = {"10.20.0.31", 22, "root", kKey};
  return node;
}

}  // namespace

TEST_CASE("an adopted node needs no image, MAC or power, and has the address of its host", "[spec][adopt]") {
  const auto parsed = parse_spec(with_host());
  CHECK(errors_of(with_host()) == "");
  const NodeSpec& node = *parsed.spec.node("spare01");
  CHECK(node.adopt.declared());
  CHECK(node.adopt.user == "admin");
  CHECK(node.adopt.port == 22);
  CHECK(node.adopt.host_key == kKey);
  CHECK(node.image == "");  // although only one is declared
  CHECK(node.address == "10.20.0.31");
  CHECK(node.power.driver == "");
  CHECK_FALSE(parsed.spec.node("node01")->adopt.declared());
  CHECK(parsed.spec.node("node01")->image == "cpu");
  const std::string elsewhere = with_host("    address: 10.20.0.40\n", "login.example");
  CHECK(errors_of(elsewhere) == "");
  CHECK(parse_spec(elsewhere).spec.node("spare01")->address == "10.20.0.40");
  CHECK(errors_of(with_host("", "10.20.0.1")) == "");  // the controller's own machine
}

TEST_CASE("what has no meaning for an adopted node is an error", "[spec][adopt]") {
  const auto says = [](const std::string& text, const std::string& words) {
    CAPTURE(errors_of(text), words);
    CHECK(errors_of(text).find(words) != std::string::npos);
  };
  says(with_host("    image: cpu\n"), "keeps its operating system");
  says(with_host("", "login.example"), "missing key 'address'");
  says(with_host("", "192.168.7.5"), "not a host address of the provisioning network");
  says(with_host("    address: 10.20.0.31\n    colour: red\n"), "colour");
  says(spec_with("  - name: spare[01-02]\n    role: cpu\n    adopt: { host: 10.20.0.31, host_key: \"" + kKey +
                 "\" }\n"),
       "not a range");
  says(spec_with("  - { name: spare01, role: cpu, adopt: { host: 10.20.0.31 } }\n"),
       "missing key 'host_key'");
  says(spec_with("  - { name: spare01, role: cpu, adopt: { host: 10.20.0.31, host_key: \"MD5:aa\" } }\n"),
       "ssh-keygen -lf");
  says(spec_with("  - { name: spare01, role: cpu }\n"), "missing key 'power'");
  says(spec_with("  - name: spare01\n    role: cpu\n    adopt: { host: 10.20.0.31, host_key: \"" + kKey +
                 "\" }\n    disks: { os: { match: { serial: X } } }\n"),
       "never touched");
}

TEST_CASE("a host is written down like its model, without what only muster's installation needs",
          "[spec][adopt]") {
  const auto added = add_node(testing::kSpec, spare01());
  if (!added.ok()) FAIL(added.error().message);
  const NodeSpec& node = *added->spec.node("spare01");
  CHECK(node.adopt.host == "10.20.0.31");
  CHECK(node.adopt.host_key == kKey);
  CHECK(node.role == "cpu");
  CHECK(node.image == "");
  CHECK(node.mac == "");
  CHECK(node.power.driver == "");
  CHECK(node.disks.count("os") == 0);
  CHECK(node.disks.at("fast").match.count == 2);
  CHECK(node.disks.at("fast").policy == DiskPolicy::format_if_blank);
  CHECK(added->text.find("user:") == std::string::npos);
  NewNode other = spare01();
  other.name = "spare02";
  other.like = "spare01";
  other.adopt = {"login.example", 2222, "admin", kKey};
  CHECK_FALSE(add_node(added->text, other).ok());  // its address is not known
  other.address = "10.20.0.32";
  const auto second = add_node(added->text, other);
  if (!second.ok()) FAIL(second.error().message);
  CHECK(second->spec.node("spare02")->adopt.port == 2222);
  CHECK(second->spec.node("spare02")->adopt.user == "admin");
  CHECK(second->spec.node("spare02")->address == "10.20.0.32");
  CHECK(second->text.compare(0, added->text.find("storage:"), added->text, 0, added->text.find("storage:")) ==
        0);
}

TEST_CASE("a host takes no other's address, and no machine is admitted like a host", "[spec][adopt]") {
  NewNode node = spare01();
  node.adopt.host = "10.20.0.12";  // node02's, which muster gave it
  const auto taken = add_node(testing::kSpec, node);
  REQUIRE_FALSE(taken.ok());
  CHECK(taken.error().message.find("node02") != std::string::npos);
  const auto added = add_node(testing::kSpec, spare01());
  REQUIRE(added.ok());
  NewNode machine;
  machine.name = "spare03";
  machine.like = "spare01";
  machine.mac = "52:54:00:20:00:05";
  const auto refused = add_node(added->text, machine);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("was adopted") != std::string::npos);
}

TEST_CASE("a node without a BMC says so, and names none", "[spec][kexec]") {
  const auto with_power = [](const std::string& power) {
    return spec_with("  - name: spare01\n    role: cpu\n    mac: \"52:54:00:00:00:77\"\n    power: " + power +
                     "\n    disks:\n      os: { match: { serial: \"OS77\", count: 1 } }\n"
                     "      fast: { match: { serial: \"FAST*\", count: 2 }, policy: format-if-blank }\n"
                     "      bulk: { match: { serial: \"BULK*\", count: 1 }, policy: format-if-blank }\n");
  };
  CHECK(errors_of(with_power("{ driver: ssh }")) == "");
  CHECK(parse_spec(with_power("{ driver: ssh }")).spec.node("spare01")->power.driver == "ssh");
  for (const char* wrong : {"{ driver: ssh, address: 10.20.1.77 }", "{ driver: ssh, secret: bmc }",
                            "{ driver: redfish, secret: bmc }"})
    CHECK(errors_of(with_power(wrong)) != "");
}
