// Who a machine is: what it has in common with others is no sign of it.
#include <algorithm>
#include <sstream>

#include "agent/boot/ram_init.h"
#include "agent/facts/collect_facts.h"
#include "base/json.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"
#include "controller/boot/service/boot_service.h"
#include "controller/bringup/own_machine_here.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/planner.h"
#include "controller/power/redfish.h"
#include "tests/fakes/bmc_bench.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/plan/fixture.h"

namespace muster::tests {
namespace {

constexpr DurationMs kCall = kMinute;

std::vector<std::string> lines_of(const std::string& name, const std::string& file) {
  std::vector<std::string> out;
  std::istringstream in(field_input(name, file));
  for (std::string line; std::getline(in, line);) out.push_back(line);
  REQUIRE_FALSE(out.empty());
  return out;
}

Json json_of(const std::string& name, const std::string& file) {
  const auto json = parse_json(field_input(name, file));
  REQUIRE(json.ok());
  return *json;
}

void put(const Files& files, const std::string& path, const std::string& text) {
  REQUIRE(files.write(path, text + "\n").ok());
}

// Rules that refuse a node whose inventory shows these ports, where the controller is that machine.
std::vector<std::string> refused(const OwnMachine& own, const std::vector<NicFacts>& ports) {
  PlannerInput in = testing::with_nodes(testing::seen_in_ram);
  in.own = own;
  in.nodes["node03"].facts->nics = ports;
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  std::vector<std::string> rules;
  for (const auto& refusal : made->refusals) rules.push_back(refusal.rule);
  return rules;
}

// The controller of a case with ports by name, and the node's own.
void tries_ports(const std::string& name) {
  const Json machines = json_of(name, "machines.json");
  const TempDir dir;
  const Files sys(dir.path(""));
  for (const auto& [port, mac] : machines["controller"].items()) {
    put(sys, "/class/net/" + port + "/address", mac.get<std::string>());
    put(sys, "/class/net/" + port + "/device/modalias", "x");
  }
  const auto facts = hardware_facts_from_json(machines["node"]);
  REQUIRE(facts.ok());
  const OwnMachine own = read_own_machine(dir.path(""));
  CHECK(refused(own, facts->nics).empty());
  // The port on the board is a sign as ever.
  std::vector<NicFacts> same = facts->nics;
  same[0].mac = machines["controller"]["ens1f0"].get<std::string>();
  CHECK(refused(own, same) == std::vector<std::string>{"own-machine"});
}

// Two boards that show the same.
void binds_none(const std::string& name) {
  const std::string uuid = lines_of(name, "uuid.txt").front();
  Machines machines;
  machines.bind(uuid, "node01");
  machines.bind(uuid, "node02");
  CHECK(machines.node_of(uuid).empty());
}

}  // namespace

FIELD_CASE("bmc-usb-nic-mac") { tries_ports("bmc-usb-nic-mac"); }

FIELD_CASE("bmc-usb-nic-mac: each of what tells it is enough") {
  const OwnMachine own{"", {"b8:ce:f6:40:00:01"}, {}};
  NicFacts port{"eno1", "b8:ce:f6:40:00:01", 0, "mlx5_core", "", true};
  CHECK(refused(own, {port}) == std::vector<std::string>{"own-machine"});
  SECTION("the driver, which an earlier agent's inventory has alone") { port.driver = "cdc_ether"; }
  SECTION("what the agent saw in sysfs") { port.address_kind = "usb"; }
  SECTION("a virtual function") { port.address_kind = "virtual-function"; }
  CHECK(refused(own, {port}).empty());
}

FIELD_CASE("usb-adapter-shared-mac") { tries_ports("usb-adapter-shared-mac"); }

FIELD_CASE("usb-adapter-shared-mac: what sysfs says to be on USB is no sign, whatever its address") {
  const TempDir dir;
  const Files sys(dir.path(""));
  const std::string ways[] = {"/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/net/usb0",
                              "/devices/pci0000:00/0000:01:00.0/net/eno1"};
  put(sys, ways[0] + "/address", "b8:ce:f6:40:00:77");
  put(sys, ways[0] + "/device/modalias", "x");
  put(sys, ways[1] + "/address", "b8:ce:f6:40:00:01");
  put(sys, ways[1] + "/device/modalias", "x");
  REQUIRE(sys.symlink("../.." + ways[0], "/class/net/usb0").ok());
  REQUIRE(sys.symlink("../.." + ways[1], "/class/net/eno1").ok());
  CHECK(read_own_machine(dir.path("")).macs == std::set<std::string>{"b8:ce:f6:40:00:01"});
  FakeMachine machine;
  put(machine.files(), "/sys" + ways[0] + "/address", "b8:ce:f6:40:00:77");
  put(machine.files(), "/sys" + ways[0] + "/device/modalias", "x");
  REQUIRE(machine.files().symlink("../.." + ways[0], "/sys/class/net/usb0").ok());
  CHECK(nic_facts(machine.files()).empty());
  CHECK(left_out_facts(machine.files()) == std::vector{left_out("port", "usb0", Why::on_usb)});
  // Older agents listed such ports.
  HardwareFacts facts;
  facts.nics.emplace_back().address_kind = "usb";
  CHECK(hardware_facts_from_json(to_json(facts))->nics[0].address_kind == "usb");
}

FIELD_CASE("usb-adapter-shared-mac: an address that software made up counts where the spec declares it") {
  const OwnMachine own{"", {"52:54:00:40:00:01"}, {}};
  CHECK(refused(own, {{"eth0", "52:54:00:40:00:01", 0, "virtio_net", "", true}}).empty());
  NodeSpec node;
  node.mac = "52:54:00:40:00:01";
  CHECK_FALSE(sign_of_own_machine(own, node, "", nullptr).empty());
}

FIELD_CASE("usb-adapter-shared-mac: addresses that are on many ports, each in any case") {
  for (const char* shared :
       {"00:00:5e:00:01:07", "00:00:0C:07:AC:01", "00:05:73:a0:00:02", "00:07:B4:00:01:01",
        "00:00:00:00:00:01", "00:a0:c9:00:00:00", "00:E0:4C:53:44:58", "00:11:22:33:44:55",
        "00:01:02:03:04:05", "be:3a:f2:b6:05:9f"}) {
    CAPTURE(shared);
    CHECK(is_station_address(shared));
    CHECK_FALSE(names_one_port(shared));
  }
  for (const char* own : {"B8:CE:F6:00:00:01", "00:00:0c:07:ad:01", "00:e0:4c:53:44:59"}) {
    CAPTURE(own);
    CHECK(names_one_port(own));
  }
}

FIELD_CASE("bond-port-shows-bond-mac") {
  const Json ports = json_of("bond-port-shows-bond-mac", "ports.json");
  const TempDir dir;
  FakeMachine machine;
  std::set<std::string> own;
  for (const auto& [name, port] : ports.items()) {
    own.insert(port["own"].get<std::string>());
    for (const auto& [files, net] :
         {std::pair(Files(dir.path("")), "/class/net/"), std::pair(machine.files(), "/sys/class/net/")}) {
      put(files, net + name + "/address", port["shows"].get<std::string>());
      put(files, net + name + "/bonding_slave/perm_hwaddr", port["own"].get<std::string>());
      put(files, net + name + "/device/modalias", "x");
    }
  }
  CHECK(read_own_machine(dir.path("")).macs == own);
  std::set<std::string> shown;
  for (const auto& nic : nic_facts(machine.files())) shown.insert(nic.mac);
  CHECK(shown == own);
}

FIELD_CASE("vf-without-mac") {
  const Json ports = json_of("vf-without-mac", "ports.json");
  const TempDir dir;
  const Files sys(dir.path(""));
  for (const auto& [name, mac] : ports.items()) {
    put(sys, "/class/net/" + name + "/address", mac.get<std::string>());
    put(sys, "/class/net/" + name + "/device/modalias", "x");
    if (name.size() > std::string("ens1f0").size()) put(sys, "/class/net/" + name + "/device/physfn/x", "x");
  }
  CHECK(read_own_machine(dir.path("")).macs == std::set<std::string>{"b8:ce:f6:40:00:01"});
  CHECK(refused({"", {"b8:ce:f6:40:7f:01"}, {}}, {{"v", "00:00:00:00:00:00", 0, "", "", true}}).empty());
}

FIELD_CASE("usb-takes-board-mac") {
  FakeMachine machine;
  std::string board, wanted;
  for (const auto& line : lines_of("usb-takes-board-mac", "ports.txt")) {
    std::istringstream in(line);
    std::string name, mac, bus;
    in >> name >> mac >> bus;
    const std::string way =
        "/devices/pci0000:00/0000:00:14.0/" + (bus == "usb" ? "usb1/1-2" : bus) + "/net/" + name;
    put(machine.files(), "/sys" + way + "/address", mac);
    put(machine.files(), "/sys" + way + "/device/modalias", "x");
    REQUIRE(machine.files().symlink("../.." + way, "/sys/class/net/" + name).ok());
    wanted = mac;
    if (bus != "usb") board = name;
  }
  REQUIRE_FALSE(board.empty());
  CHECK(interface_with_mac(machine.files(), wanted).value_or("") == board);
}

FIELD_CASE("redfish-placeholder-uuid") {
  for (const auto& uuid : lines_of("redfish-placeholder-uuid", "uuids.txt")) {
    CAPTURE(uuid);
    BmcBench bench("generic");
    bench.after = [&](const HttpRequest&, HttpResponse& response) {
      Json body = parse_json(response.body).value_or(Json());
      if (!body.is_object() || !body.contains("SerialNumber")) return;
      body["UUID"] = uuid;
      response.body = body.dump();
    };
    bench.target.expected_uuid = BmcBench::kUuid;  // what its kernel shows
    bench.machine.start();
    CHECK(make_redfish(bench.target, bench.waiter())->off(kCall, false).ok());
    CHECK_FALSE(bench.machine.running());
  }
}

FIELD_CASE("uuid-of-reference-firmware") {
  for (const auto& uuid : lines_of("uuid-of-reference-firmware", "uuids.txt")) {
    CAPTURE(uuid);
    Machines machines;
    machines.bind(uuid, "node01");
    CHECK(machines.node_of(uuid).empty());
    OwnMachine own;
    own.uuid = uuid;
    CHECK(sign_of_own_machine(own, NodeSpec(), uuid, nullptr).empty());
    // A node that was bound to it before the list knew it: its BMC shows what is true.
    BmcBench bench("generic");
    bench.target.expected_uuid = uuid;
    CHECK(make_redfish(bench.target, bench.waiter())->state(kCall).ok());
  }
  for (const char* real :
       {BmcBench::kUuid, "4c4c4544-0042-3510-8052-b4c04f564433", "00000000-0000-0000-0000-ac1f6b8e2f10"})
    CHECK(names_one_machine(real));
}

FIELD_CASE("uuid-all-ones") { binds_none("uuid-all-ones"); }

FIELD_CASE("uuid-counted-down") { binds_none("uuid-counted-down"); }

FIELD_CASE("uuid-written-later") {
  const auto uuids = lines_of("uuid-written-later", "uuids.txt");
  REQUIRE(uuids.size() == 2);
  PlannerInput in = testing::with_nodes(testing::seen_in_ram);
  in.nodes["node03"].product_uuid = uuids[0];
  in.nodes["node03"].facts->system.uuid = uuids[1];
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  CHECK(made->refusals.empty());
  in.nodes["node03"].product_uuid = uuids[1];
  in.nodes["node03"].facts->system.uuid = BmcBench::kUuid;  // another machine is another machine
  REQUIRE(make_plan(in).ok());
  CHECK_FALSE(make_plan(in)->refusals.empty());
}

FIELD_CASE("serial-never-written") {
  for (const auto& serial : lines_of("serial-never-written", "serials.txt")) {
    CAPTURE(serial);
    CHECK_FALSE(names_one_thing(serial));
    CHECK(medium_of({serial, "", "Model X"}).empty());
  }
  for (const char* real : {"S6CKNX0T123456", "7C2Z1X3", "PHLJ0123456789ABCD"}) {
    CHECK(names_one_thing(real));
    CHECK_FALSE(medium_of({real, "", "Model X"}).empty());
  }
}

}  // namespace muster::tests
