// Operators' power verbs through a whole controller, to a BMC behind real HTTPS.
#include <cstdlib>
#include <filesystem>

#include "controller/power/service/power_service.h"
#include "tests/fakes/bmc_bench.h"
#include "tests/fakes/power_program.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Listener;

namespace {

// node01 -> 52:54:00:20:00:01
std::string redfish_node(const std::string& name, const std::string& address) {
  return "  - { name: " + name + ", role: cpu, power: { driver: redfish, address: \"" + address +
         "\", secret: bmc }, mac: \"52:54:00:20:00:" + name.substr(name.size() - 2) +
         "\", image: cpu, disks: { os: { match: { serial: \"OS*\", count: 1 } } } }\n";
}

void put_spec(testing::Controller& c, const std::string& nodes) {
  const auto stored = c.call(Listener::local, "PUT", "/v1/spec", R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 127.0.0.0/8 } }
images: { cpu: { recipe: debian-12 } }
roles: { cpu: { playbooks: [ base ] } }
nodes:
)" + nodes);
  INFO(stored.body);
  REQUIRE(stored.status == 200);
}

}  // namespace

TEST_CASE("an address that leads to another node's machine switches nothing for a node never seen",
          "[api][power]") {
  BmcBench bench("generic");
  bench.machine.start();
  testing::Controller c;
  put_spec(c, redfish_node("node01", "127.0.0.2") + redfish_node("node03", bench.target.address));
  REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:pw:with:colons").status == 200);
  const auto bind = [&](const std::string& node, const std::string& uuid) {
    c.on_reactor([&] {
      c.services().bringup.executor().set_node(NodeName(node),
                                               [&](NodeRow& row) { row.product_uuid = uuid; });
    });
  };
  bind("node01", BmcBench::kUuid);
  const auto refused = c.call(Listener::local, "POST", "/v1/power/node03/off");
  CHECK(refused.status == 403);
  CHECK(refused.body.find("which is node node01") != std::string::npos);
  CHECK(bench.machine.running());
  CHECK(c.call(Listener::local, "GET", "/v1/power/node03/state").status == 403);
  bind("node01", "99999999-9abc-def0-1234-56789abcdef0");
  const auto state = c.call(Listener::local, "GET", "/v1/power/node03/state");
  CHECK(state.status == 200);
  CHECK(parse_json(state.body).value()["power"] == "on");
}

TEST_CASE("repeated calls with a wrong password do not lock the BMC's account; setting the secret asks again",
          "[api][power]") {
  auto profile = *lab::find_profile("supermicro");
  profile.lock_after = 4;
  BmcBench bench(profile);
  testing::Controller c;
  c.on_reactor([&] { c.services().power.wait_by(bench.waiter()); });
  put_spec(c, redfish_node("node01", bench.target.address));
  const auto set = [&](const std::string& value) {
    REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", value).status == 200);
  };
  const auto state = [&] { return c.call(Listener::local, "GET", "/v1/power/node01/state"); };
  set("admin:wrong");
  for (int i = 0; i < 4; ++i) CHECK(state().status == 403);
  CHECK(bench.bmc().failed_logins() == 2);
  CHECK(state().body.find("muster secret set") != std::string::npos);
  set("admin:wrong");
  CHECK(state().status == 403);
  CHECK(bench.bmc().failed_logins() == 3);
  set("admin:pw:with:colons");
  const auto right = state();
  INFO(right.body);
  CHECK(right.status == 200);
}

TEST_CASE("the controller's own machine is not switched off or rebooted, by whatever name",
          "[api][power][own-machine]") {
  BmcBench bench("generic");
  bench.machine.start();
  TempDir sys;
  std::filesystem::create_directories(sys.path("class/dmi/id"));
  sys.write("class/dmi/id/product_uuid", std::string(BmcBench::kUuid) + "\n");
  testing::Controller c("", "", sys.path(""));
  put_spec(c, redfish_node("node03", bench.target.address));
  REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:pw:with:colons").status == 200);
  const auto refused = [&](const std::string& verb) {
    const auto answer = c.call(Listener::local, "POST", "/v1/power/node03/" + verb);
    CAPTURE(verb, answer.body);
    CHECK(answer.status == 403);
    CHECK(answer.body.find("own-machine") != std::string::npos);
    CHECK(bench.machine.running());
  };
  const auto netboot = [&] {
    std::promise<Status> done;
    c.on_reactor([&] {
      c.services().power.netboot("node03", [&](Status status) { done.set_value(std::move(status)); });
    });
    const Status status = done.get_future().get();
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Code::denied);
    CHECK(bench.machine.running());
  };
  // A wrong address in the spec leads to it: the BMC says whose it is, while the node was never seen.
  refused("off");
  refused("shut-down");
  refused("cycle");
  refused("network-once");
  netboot();
  // It is another node by now, whose BMC this address leads to.
  const auto bind = [&](const std::string& node, const std::string& uuid) {
    c.on_reactor([&] {
      c.services().bringup.executor().set_node(NodeName(node),
                                               [&](NodeRow& row) { row.product_uuid = uuid; });
    });
  };
  bind("head01", BmcBench::kUuid);
  refused("off");
  netboot();
  bind("head01", "");
  // It is a node of the cluster by now: it may be looked at, and is still not switched off.
  bind("node03", BmcBench::kUuid);
  CHECK(c.call(Listener::local, "GET", "/v1/power/node03/state").status == 200);
  refused("off");
  refused("shut-down");
  refused("cycle");
  refused("network-once");
  netboot();
}

TEST_CASE("the next boot is set to the network without a machine being switched", "[api][power]") {
  BmcBench bench("generic");
  testing::Controller c;
  put_spec(c, redfish_node("node01", bench.target.address));
  REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:pw:with:colons").status == 200);
  const auto once = c.call(Listener::local, "POST", "/v1/power/node01/network-once");
  INFO(once.body);
  CHECK(once.status == 200);
  CHECK(parse_json(once.body).value()["power"] == "off");
  CHECK_FALSE(bench.machine.running());
  CHECK(bench.bmc().override_text() == "Once Pxe");
  const auto seen = c.call(Listener::local, "GET", "/v1/power/node01/describe");
  CHECK(seen.status == 200);
  CHECK(parse_json(seen.body).value()["driver"] == "redfish");
}

TEST_CASE("a program of the operator's switches a node, one at a time", "[api][power][command]") {
  testing::PowerProgram program;
  ::setenv("MUSTER_POWER_PROGRAMS", program.folder().c_str(), 1);
  testing::Controller c;
  const std::string spec = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed } }
images: { cpu: { recipe: debian-12 } }
nodes:
  - { name: node01, role: cpu, power: { driver: command, program: outlet, address: "pdu1:7" },
      mac: "52:54:00:20:00:01", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
roles: { cpu: { playbooks: [ base ] } }
)";
  const auto stored = c.call(Listener::local, "PUT", "/v1/spec", spec);
  INFO(stored.body);
  REQUIRE(stored.status == 200);
  CHECK(c.call(Listener::local, "POST", "/v1/power/node01/network-once").status == 200);
  CHECK_FALSE(program.runs());
  CHECK(c.call(Listener::local, "POST", "/v1/power/node01/on").status == 200);
  CHECK(program.runs());
  CHECK(program.get("boots") == "n");
  CHECK(c.call(Listener::local, "POST", "/v1/power/node01/shut-down").status == 200);
  CHECK_FALSE(program.runs());
  const std::string calls = program.get("calls");
  CHECK(calls.find("\"graceful\":true") != std::string::npos);
  CHECK(calls.find("\"graceful\":false") == std::string::npos);
  ::unsetenv("MUSTER_POWER_PROGRAMS");
}

TEST_CASE("what a person has to do: its boot request ends it, or `power done`, and no verb switches",
          "[api][power][manual]") {
  testing::Controller c;
  const std::string spec = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 127.0.0.0/8 } }
images: { cpu: { recipe: debian-12 } }
nodes:
  - { name: "node[01-02]", role: cpu, power: { driver: manual, address: "rack 3", within: 2 h },
      mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02" ], image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
  - { name: node03, role: cpu, power: { driver: redfish, address: 127.0.0.2, secret: bmc }, mac: "52:54:00:20:00:03", image: cpu,
      disks: { os: { match: { serial: "OS*", count: 1 } } } }
roles: { cpu: { playbooks: [ base ] } }
)";
  const auto stored = c.call(Listener::local, "PUT", "/v1/spec", spec);
  INFO(stored.body);
  REQUIRE(stored.status == 200);
  for (const char* verb : {"on", "off", "shut-down", "cycle", "network-once"}) {
    const auto refused = c.call(Listener::local, "POST", std::string("/v1/power/node01/") + verb);
    CAPTURE(verb, refused.body);
    CHECK(refused.status == 422);
  }
  const auto state = c.call(Listener::local, "GET", "/v1/power/node01/state");
  CHECK(parse_json(state.body).value()["power"] == "unknown");
  const auto done = [&](const std::string& node) {
    return c.call(Listener::local, "POST", "/v1/power/" + node + "/done").status;
  };
  CHECK(done("node01") == 409);  // no task is open
  CHECK(done("node03") == 422);
  std::atomic<int> ended{0};
  const auto settle = [&] {
    for (int i = 0; i < 2; ++i) c.on_reactor([] {});  // what was posted by what was posted is through
  };
  c.on_reactor([&] {
    auto& services = c.services();
    CHECK(services.power.switcher("node01").by == Switch::person);
    CHECK(services.power.switcher("node01").person.within == 2 * 60 * kMinute);
    CHECK(services.power.switcher("node03").by == Switch::bmc);
    for (const char* node : {"node01", "node02"}) {
      services.boot.arm(NodeName(node), [](Status) {});
      services.power.netboot(NodeName(node), [&](Status how) { ended += how.ok() ? 1 : 100; });
    }
  });
  CHECK(ended == 0);
  CHECK(done("node01") == 200);
  settle();
  CHECK(ended == 1);
  CHECK(c.call(Listener::boot, "GET", "/boot/52:54:00:20:00:02.ipxe").status < 600);
  settle();
  CHECK(ended == 2);
  CHECK(done("node02") == 409);
}

TEST_CASE("the status says what a person has to do, where and until when", "[api][power][manual]") {
  testing::Controller c;
  put_spec(c, R"(  - { name: node01, role: cpu, power: { driver: manual, address: "rack 3", within: 2 h },
      mac: "52:54:00:20:00:01", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
)");
  Plan plan;
  plan.kind = PlanKind::install;
  plan.nodes = {"node01"};
  Action boot;
  boot.id = "node01/netboot";
  boot.node = "node01";
  boot.kind = ActionKind::netboot;
  boot.title = "boot into the RAM system";
  boot.timeout = 20 * kMinute;
  boot.max_attempts = 3;
  plan.actions = {boot};
  std::promise<bool> started;
  c.on_reactor([&] {
    c.services().bringup.executor().start(plan, "test",
                                          [&](Result<int64_t> id) { started.set_value(id.ok()); });
  });
  REQUIRE(started.get_future().get());
  Json node = Json::object();
  const auto requested = [&] { return node.value("waiting", "").starts_with("by hand until "); };
  // Its intent and its token are written before the task opens: writes are carried out in order.
  for (int i = 0; i < 20 && !requested(); ++i) {
    std::promise<void> written;
    c.on_reactor([&] { c.services().store.write({EventRow{}}, [&](Status) { written.set_value(); }); });
    written.get_future().get();
    node = parse_json(c.call(Listener::local, "GET", "/v1/status").body).value()["nodes"][0];
  }
  INFO(node.dump());
  CHECK(node.value("by_hand", false));
  CHECK(requested());
  CHECK(node.value("waiting", "").find("(rack 3)") != std::string::npos);
}

TEST_CASE("an order for a node that is not there names the one that may be meant, and is no event",
          "[api][power]") {
  testing::Controller c;
  put_spec(c, redfish_node("node01", "127.0.0.2"));
  for (const char* verb : {"cycle", "on", "off", "shut-down", "network-once", "done"}) {
    const auto refused = c.call(Listener::local, "POST", std::string("/v1/power/node1/") + verb);
    CAPTURE(verb, refused.body);
    CHECK(refused.status == 404);
    CHECK(refused.body.find("'node01'") != std::string::npos);
  }
  const auto events = parse_json(c.call(Listener::local, "GET", "/v1/events/list").body);
  REQUIRE(events.ok());
  for (const Json& event : (*events)["events"]) CHECK(event.value("kind", "") != "power");
}
