// A lab machine's IPMI side: ipmi_sim as the lab starts it, and what it asks of the machine.
#include "lab/ipmi_bmc.h"

#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>

#include "controller/power/ipmi.h"
#include "controller/power/sol.h"
#include "controller/power/wrap.h"
#include "lab/bmc.h"
#include "lab/fake_machine.h"
#include "lab/lab_network.h"
#include "tests/catch.h"
#include "tests/fakes/ipmi_sim.h"
#include "tests/fakes/jump_waiter.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::lab;

namespace {

struct Chassis {
  FakeMachine machine;
  Bmc bmc{
      *find_profile("generic"), {"node01", "u", "s", "52:54:00:00:00:01", 1024, 1}, "admin", "pw", machine,
      [] { return TimeMs{0}; }};
  bool request(const std::vector<std::string>& words) { return bmc.chassis(words).ok(); }
  std::string get(const std::string& name) { return bmc.chassis({"get", name})->at(name).get<std::string>(); }
  std::string boots() {
    std::string out;
    for (const BootFirst one : machine.boots()) out += one == BootFirst::network ? 'n' : 'd';
    return out;
  }
};

}  // namespace

TEST_CASE("ipmi_sim's orders reach the machine, and its boot device holds once", "[lab][ipmi]") {
  Chassis c;
  CHECK(c.get("power") == "0");
  CHECK(c.request({"set", "boot", "pxe"}));
  CHECK(c.get("boot") == "pxe");
  CHECK_FALSE(c.machine.running());
  CHECK(c.request({"set", "power", "1"}));
  CHECK(c.machine.boot());
  CHECK(c.get("power") == "1");
  CHECK(c.get("boot") == "default");
  CHECK(c.request({"set", "reset", "1"}));
  CHECK(c.machine.boot());
  CHECK(c.boots() == "nd");
  c.machine.set_listens(false);
  CHECK(c.request({"set", "shutdown", "1"}));
  CHECK(c.machine.running());
  CHECK(c.request({"set", "power", "0"}));
  CHECK_FALSE(c.machine.running());
  CHECK_FALSE(c.request({"set", "reset", "1"}));
  CHECK_FALSE(c.request({"set", "identify", "1"}));
  CHECK_FALSE(c.request({"get", "temperature"}));
  CHECK_FALSE(c.request({}));
  CHECK(chassis_lines(*c.bmc.chassis({"get", "power", "boot"})) == "boot:default\npower:0\n");
}

TEST_CASE("a lab's ipmi_sim calls muster, shows the machine's UUID, and can be another BMC", "[lab][ipmi]") {
  TempDir dir;
  const std::string root = dir.path("lab"), program = dir.path("muster");
  dir.write("muster",
            "#!/bin/sh\necho \"$@\" >>${0%/*}/calls\nfor n; do case $n in power) echo power:1;; "
            "boot) echo boot:pxe;; esac; done\n");
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  LabNode node;
  node.name = "node01";
  node.uuid = "12345678-9abc-4ef0-8234-56789abcdef0";
  std::filesystem::create_directories(root + "/nodes/node01");
  const auto port = testing::free_port(SOCK_DGRAM);
  IpmiBmc bmc(LabDir(root), node,
              {.program = program,
               .user = "admin",
               .password = "0123456789abcdef",
               .address = "127.0.0.1",
               .port = port});
  REQUIRE(bmc.start().ok());
  PowerTarget target;
  target.node = "node01";
  target.address = "127.0.0.1:" + std::to_string(port);
  target.user = "admin";
  target.password = "0123456789abcdef";
  target.expected_uuid = node.uuid;
  std::string pin;
  target.on_pin = [&](const std::string& learned) { pin = learned; };
  const auto state = [&] {
    return with_retries(make_ipmi(target, testing::jump_waiter(), make_process()), real_waiter(), 1)
        ->state(kMinute);
  };
  const auto seen = state();
  INFO((seen.ok() ? "" : seen.error().message));
  REQUIRE(seen.ok());
  CHECK(*seen == PowerState::on);
  CHECK(pin == "guid:123456789abc4ef0823456789abcdef0");
  CHECK(dir.read("calls").find("lab chassis --dir " + root + " node01 get power\n") != std::string::npos);
  // What the machine says on its console comes out by serial over LAN.
  std::mutex mutex;
  std::condition_variable news;
  std::string received;
  SolReader console([&](const std::string&, const std::string& bytes) {
    std::lock_guard lock(mutex);
    received += bytes;
    news.notify_all();
  });
  console.want({{"node01", target}});
  const auto hears = [&](const std::string& text) {
    std::unique_lock lock(mutex);
    return news.wait_for(lock, std::chrono::seconds(60),
                         [&] { return received.find(text) != std::string::npos; });
  };
  REQUIRE(hears("[SOL Session operational"));
  std::ofstream(root + "/nodes/node01/console.log", std::ios::app) << "Kernel panic - not syncing: test\n";
  CHECK(hears("Kernel panic - not syncing: test"));
  target.pin_sha256 = pin;
  REQUIRE(bmc.start(true).ok());
  CHECK(state().error().code == Code::denied);
  struct stat info;
  REQUIRE(::stat((root + "/nodes/node01/ipmi-lan.conf").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);  // the password is in it
}

TEST_CASE("an ipmi_sim that a killed lab left behind is ended by the next", "[lab][ipmi]") {
  TempDir dir;
  const LabDir lab(dir.path("lab"));
  std::filesystem::create_directories(lab.node("node01"));
  auto left = spawn({.argv = {"sleep", "600"}, .log = dir.path("log"), .mark = "600"});
  REQUIRE(left.ok());
  REQUIRE(write_pid_file(lab.node("node01", "ipmi.pid"), *left).ok());
  LabNode node;
  node.name = "node01";
  node.uuid = "12345678-9abc-4ef0-8234-56789abcdef0";
  {
    IpmiBmc bmc(lab, node,
                {.program = "true",
                 .user = "admin",
                 .password = "pw",
                 .address = "127.0.0.1",
                 .port = testing::free_port(SOCK_DGRAM)});
    REQUIRE(bmc.start().ok());
    CHECK_FALSE(alive(*left));
    left = read_pid_file(lab.node("node01", "ipmi.pid"));
    REQUIRE(left.ok());
    CHECK(alive(*left));
  }
  CHECK_FALSE(alive(*left));
}

TEST_CASE("the spec's driver decides which BMC a lab machine has", "[lab][ipmi]") {
  const std::string text = R"(cluster: t
network: { provisioning: { cidr: 10.20.0.0/24 } }
nodes:
  - { name: "node[01-02]", power: { driver: ipmi, address: "10.20.1.1{n}", secret: bmc } }
  - { name: login, power: { driver: redfish, address: "10.20.1.19", secret: bmc } }
)";
  const auto spec = lab_spec_from_yaml(text);
  REQUIRE(spec.ok());
  const auto again = lab_spec_from_json(to_json(*spec));
  REQUIRE(again.ok());
  for (const auto& one : {*spec, *again}) {
    CHECK(find_node(one, "node01")->ipmi);
    CHECK(find_node(one, "node02")->ipmi);
    CHECK_FALSE(find_node(one, "login")->ipmi);
    CHECK_FALSE(make_extra_node(one, "extra")->ipmi);
  }
}

TEST_CASE("a machine that a person switches has no BMC in the lab, wherever the spec says it stands",
          "[lab][manual]") {
  const auto spec = lab_spec_from_yaml(R"(cluster: t
network: { provisioning: { cidr: 10.20.0.0/24 } }
nodes:
  - { name: login, power: { driver: redfish, address: "10.20.1.19", secret: bmc } }
  - { name: "node[01-02]", power: { driver: manual, address: "rack 3", within: 2 h } }
)");
  REQUIRE(spec.ok());
  CHECK(find_node(*spec, "node01")->bmc_address.empty());
  CHECK_FALSE(find_node(*spec, "node01")->ipmi);
  const auto extra = make_extra_node(*spec, "extra");
  REQUIRE(extra.ok());
  CHECK(extra->bmc_address.empty());
  for (const auto& command : node_commands(*find_node(*spec, "node01"), "space"))
    CHECK(std::find(command.begin(), command.end(), "/32") == command.end());
}
