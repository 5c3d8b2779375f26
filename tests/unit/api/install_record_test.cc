// The record of an installation by a provider ends with its node: the next one of that name begins anew.
#include "controller/power_port.h"
#include "controller/vault.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Door;

namespace {

constexpr const char* kHead = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed } }
images: { cpu: { recipe: debian-12 } }
roles: { cpu: { playbooks: [ base ] } }
nodes:
)";

std::string rented(const std::string& name, const std::string& server, bool installs = true) {
  return "  - { name: " + name + ", role: cpu, power: { driver: sakura-phy, address: \"" + server +
         "\", secret: sakura" +
         (installs ? ", install: { image: debian12-x86_64, os: debian-12 }" : std::string()) +
         " }, mac: \"52:54:00:20:00:" + name.substr(name.size() - 2) +
         "\", image: cpu, disks: { os: { match: { serial: \"OS*\", count: 1 }, policy: format } } }\n";
}
void put_spec(testing::Controller& c, const std::string& nodes) {
  const auto stored = c.call(Door::local, "PUT", "/v1/spec", kHead + nodes);
  INFO(stored.body);
  REQUIRE(stored.status == 200);
}
void keep_record(testing::Controller& c, const std::string& secret) {
  std::promise<bool> kept;
  c.on_reactor([&] {
    c.services().vault.put(secret, "value", [&](const Status& written) { kept.set_value(written.ok()); });
  });
  REQUIRE(kept.get_future().get());
}
bool is_there(testing::Controller& c, const std::string& secret) {
  bool there = false;
  // What was written before is through: writes are carried out in order.
  keep_record(c, "probe");
  c.on_reactor([&] { there = c.services().vault.get(secret).ok(); });
  return there;
}

}  // namespace

TEST_CASE("a node that is removed takes the record of its installation along", "[api][phy]") {
  testing::Controller c;
  put_spec(c, rented("gpu01", "113100000001") + rented("gpu02", "113100000002"));
  keep_record(c, "install-gpu01");
  keep_record(c, "install-gpu02");
  c.on_reactor([&] {
    c.services().bringup.executor().set_node("gone", [](NodeRow& row) { row.product_uuid = "x"; });
  });
  keep_record(c, "install-gone");
  REQUIRE(is_there(c, "install-gone"));
  CHECK(c.call(Door::local, "DELETE", "/v1/nodes/gone").status == 200);
  CHECK_FALSE(is_there(c, "install-gone"));
  CHECK(is_there(c, "install-gpu01"));
}

TEST_CASE("a node that is renamed, taken out, or not to be installed any more leaves no record",
          "[api][phy]") {
  testing::Controller c;
  put_spec(c, rented("gpu01", "113100000001") + rented("gpu02", "113100000002"));
  keep_record(c, "install-gpu01");
  keep_record(c, "install-gpu02");
  SECTION("renamed") { put_spec(c, rented("gpu07", "113100000001") + rented("gpu02", "113100000002")); }
  SECTION("taken out") { put_spec(c, rented("gpu02", "113100000002")); }
  SECTION("without power.install") {
    put_spec(c, rented("gpu01", "113100000001", false) + rented("gpu02", "113100000002"));
  }
  CHECK_FALSE(is_there(c, "install-gpu01"));
  CHECK(is_there(c, "install-gpu02"));
}
