// Nodes behind a provider's API: which keys they take, and what names a server.
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
