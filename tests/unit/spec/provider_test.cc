// Nodes behind a provider's API: which keys they take, and what names a server.
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

// One node more in the fixture's spec, with this `power`.
ParsedSpec with_power(const std::string& power) {
  std::string text = testing::kSpec;
  const auto at = text.find("storage:\n  scratch");
  REQUIRE(at != std::string::npos);
  text.insert(at, "  - name: rented01\n    role: cpu\n    power: " + power +
                      "\n    mac: \"52:54:00:20:00:77\"\n    image: cpu\n    disks:\n"
                      "      os: { match: { serial: \"OS*\", count: 1 }, policy: format-if-blank }\n"
                      "      fast: { match: { serial: \"FAST*\", count: 2 }, policy: format-if-blank }\n"
                      "      bulk: { match: { serial: \"BULK*\", count: 1 }, policy: format-if-blank }\n");
  return parse_spec(text);
}
size_t errors(const std::string& power) { return with_power(power).errors.size(); }

}  // namespace

TEST_CASE("a server of a provider is named by its id or nickname, and has a secret", "[spec][phy]") {
  const auto parsed = with_power(
      "{ driver: sakura-phy, address: \"113100000001\", secret: sakura, "
      "install: { image: debian12-x86_64, os: debian-12 } }");
  REQUIRE(parsed.errors.empty());
  const PowerSpec& power = parsed.spec.node("rented01")->power;
  CHECK(power.address == "113100000001");
  CHECK(power.secret == "sakura");
  CHECK(power.install_image == "debian12-x86_64");
  CHECK(power.install_os == "debian-12");
  CHECK(power.api == "");
  CHECK(errors("{ driver: sakura-phy, address: gpu-node.1, secret: sakura }") == 0);
  CHECK(errors("{ driver: sakura-phy, address: gpu01, secret: sakura, api: \"10.20.1.250:443\" }") == 0);
}

TEST_CASE("what cannot be a server of a provider is refused where the spec is read", "[spec][phy]") {
  for (
      const char* power : {
          "{ driver: sakura-phy, address: \"113100000001\" }",                   // no secret
          "{ driver: sakura-phy, secret: sakura }",                              // no server
          "{ driver: sakura-phy, address: \"1131000\", secret: sakura }",        // no id of 12 digits
          "{ driver: sakura-phy, address: \"a b\", secret: sakura }",            // no nickname
          "{ driver: sakura-phy, address: gpu01, secret: sakura, program: x }",  // another driver's keys
          "{ driver: sakura-phy, address: gpu01, secret: sakura, cipher_suite: 3 }",
          "{ driver: sakura-phy, address: gpu01, secret: s, install: { image: a, os: debian-12 } }",  // no id
          "{ driver: sakura-phy, address: gpu01, secret: s, install: { image: a } }",  // which system is it?
          "{ driver: sakura-phy, address: gpu01, secret: s, install: { image: a, os: \"windows\" } }",
          "{ driver: sakura-phy, address: gpu01, secret: s, api: example.org }",  // names are not looked up
          "{ driver: redfish, address: \"10.20.1.77\", secret: s, install: { image: a, os: debian-12 } }",
          "{ driver: redfish, address: \"10.20.1.77\", secret: s, api: \"10.20.1.250\" }",
          "{ driver: ssh, install: { image: a, os: debian-12 } }",
      }) {
    INFO(power);
    CHECK(errors(power) > 0);
  }
}

TEST_CASE("a list gives each node of a range its own power address and address, whatever the driver",
          "[spec][power]") {
  struct Driver {
    const char *keys, *addresses;
    std::vector<std::string> expected;
  };
  const Driver drivers[] = {
      {"driver: redfish, secret: s",
       "[ 10.20.1.77, \"10.20.1.31:8443\", 10.20.1.78 ]",
       {"10.20.1.77", "10.20.1.31:8443", "10.20.1.78"}},
      {"driver: ipmi, secret: s",
       "[ 10.20.1.77, 10.20.1.31, 10.20.1.78 ]",
       {"10.20.1.77", "10.20.1.31", "10.20.1.78"}},
      {"driver: command, program: outlet",
       "[ \"pdu1:7\", \"pdu2:1\", \"pdu1:8\" ]",
       {"pdu1:7", "pdu2:1", "pdu1:8"}},
      // Without quotes an id of digits is the same text.
      {"driver: sakura-phy, secret: s, install: { image: a, os: debian-12 }",
       "[ \"113100000907\", 113100000031, \"007100000012\" ]",
       {"113100000907", "113100000031", "007100000012"}},
      {"driver: sakura-phy, secret: s",
       "[ gpu-a, \"113100000031\", gpu.c ]",
       {"gpu-a", "113100000031", "gpu.c"}},
      {"driver: manual",
       "[ \"rack 3, unit 7\", \"rack 4\", \"rack 4\" ]",
       {"rack 3, unit 7", "rack 4", "rack 4"}},
  };
  for (const Driver& driver : drivers) {
    CAPTURE(driver.keys);
    std::string text = testing::kSpec;
    const auto replace = [&text](const std::string& what, const std::string& with) {
      const auto at = text.find(what);
      REQUIRE(at != std::string::npos);
      text.replace(at, what.size(), with);
    };
    replace("node[01-03]", "node[01,07,03]");  // the order of the range, not of the names
    replace("{ driver: redfish, address: \"10.20.1.1{n}\", secret: bmc }",
            "{ " + std::string(driver.keys) + ", address: " + driver.addresses +
                " }\n    address: [ 10.20.0.40, 10.20.0.9, 10.20.0.41 ]");
    const auto parsed = parse_spec(text);
    for (const auto& error : parsed.errors) FAIL_CHECK(to_string(error, "spec"));
    const char *names[] = {"node01", "node07", "node03"}, *own[] = {"10.20.0.40", "10.20.0.9", "10.20.0.41"};
    for (size_t i = 0; i < 3; ++i) {
      const NodeSpec* node = parsed.spec.node(names[i]);
      REQUIRE(node);
      CHECK(node->power.address == driver.expected[i]);
      CHECK(node->address == own[i]);
      CHECK_FALSE(node->address_chosen);
      CHECK(node->mac == std::string("52:54:00:20:00:0") + std::to_string(i + 1));
    }
  }
}

TEST_CASE("a list of one names the server of one node", "[spec][phy]") {
  const auto parsed = with_power("{ driver: sakura-phy, address: [ \"113100000001\" ], secret: sakura }");
  CHECK(parsed.errors.empty());
  CHECK(parsed.spec.node("rented01")->power.address == "113100000001");
  // Nothing but an address may be one.
  CHECK(errors("{ driver: sakura-phy, address: [ \"113100000001\" ], secret: [ sakura ] }") == 1);
}
