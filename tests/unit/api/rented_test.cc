// Nodes behind a provider's API in a whole controller: one server is one node's, and the record of an
// installation ends with its node, so that the next one of that name starts without it.
#include "controller/bringup/own_machine_here.h"
#include "controller/power/provider/provider_install.h"
#include "controller/power/service/power_service.h"
#include "controller/trust/vault.h"
#include "tests/fakes/phy_bench.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Listener;

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
  const auto stored = c.call(Listener::local, "PUT", "/v1/spec", kHead + nodes);
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
  CHECK(c.call(Listener::local, "DELETE", "/v1/nodes/gone").status == 200);
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

TEST_CASE("an operator neither sets nor deletes the record of an installation, nor sends it anywhere",
          "[api][phy]") {
  testing::Controller c;
  const std::string name = install_record_name("gpu01");
  put_spec(c, rented("gpu01", "113100000001") + rented("gpu02", "113100000002"));
  keep_record(c, name);
  CHECK(c.call(Listener::local, "PUT", "/v1/secrets/" + name, "{}").status == 422);
  CHECK(c.call(Listener::local, "PUT", "/v1/secrets/install-%67pu02", "{}").status == 422);
  CHECK(c.call(Listener::local, "DELETE", "/v1/secrets/" + name).status == 422);
  c.on_reactor([&] {
    Vault& vault = c.services().vault;
    CHECK(vault.get(name).value() == "value");
    CHECK(vault.get("install-gpu02").error().code == Code::not_found);
    CHECK(vault.resolve({{"key", "secret:" + name}}).error().code == Code::denied);
    CHECK(vault.resolve({{"deep", {{"key", "secret:" + name}}}}).error().code == Code::denied);
    CHECK(vault.login(name).error().code == Code::denied);
  });
  CHECK(c.call(Listener::local, "PUT", "/v1/secrets/installer", "a:b").status == 200);
  // As the account of a node: nothing is sent to its address.
  const std::string stolen =
      "  - { name: gpu03, role: cpu, power: { driver: redfish, address: 127.0.0.3, secret: " + name +
      " }, mac: \"52:54:00:20:00:03\", image: cpu, disks: { os: { match: { serial: "
      "\"OS*\", count: 1 } } } }\n";
  put_spec(c, rented("gpu01", "113100000001") + stolen);
  CHECK(c.call(Listener::local, "GET", "/v1/power/gpu03/state").status == 403);
}

TEST_CASE("two nodes that lead to one server are both refused, before any order and any pin", "[api][phy]") {
  testing::PhyBench bench(2);
  // One whose nickname is this machine's host name is the controller's own.
  const auto own = read_own_machine("/nowhere").names;
  lab::PhyMachine head;
  head.id = "113100000077", head.nickname = own.empty() ? "" : *own.rbegin(), head.machine = &bench.machine();
  bench.api.add(head);
  testing::Controller c;
  const std::string api = bench.target().api;
  const auto node = [&](const std::string& name, const std::string& server) {
    return "  - { name: " + name + ", role: cpu, power: { driver: sakura-phy, address: \"" + server +
           "\", secret: sakura, api: \"" + api +
           "\" }, mac: \"52:54:00:20:00:" + name.substr(name.size() - 2) +
           "\", image: cpu, disks: { os: { match: { serial: \"OS*\", count: 1 } } } }\n";
  };
  const auto status = [&](const std::string& name, const std::string& verb) {
    return c.call(Listener::local, verb == "state" ? "GET" : "POST", "/v1/power/" + name + "/" + verb).status;
  };
  const std::string secret =
      std::string(testing::PhyBench::kToken) + ":" + std::string(testing::PhyBench::kSecret);
  REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/sakura", secret).status == 200);
  put_spec(c, node("gpu01", bench.ids[0]) + node("gpu02", "gpu1") + node("gpu03", bench.ids[1]));
  CHECK(status("gpu01", "off") == 403);
  CHECK(status("gpu02", "off") == 403);
  CHECK(status("gpu03", "state") == 200);
  CHECK(bench.seen_with("POST ") == 0);
  // A node keeps its server until it is forgotten.
  put_spec(c, node("gpu04", "gpu2"));
  CHECK(status("gpu04", "state") == 403);
  REQUIRE(c.call(Listener::local, "DELETE", "/v1/nodes/gpu03").status == 200);  // although no run knew it
  CHECK(c.call(Listener::local, "DELETE", "/v1/nodes/gpu03").status == 404);
  CHECK(status("gpu04", "state") == 200);
  put_spec(c, node("gpu05", head.id));
  if (!own.empty()) CHECK(status("gpu05", "off") == 403);
  CHECK(bench.seen_with("POST ") == 0);
}
