// Further reports of the kinds that other cases began: tried in the order in which they were found, right
// or wrong.
#include <algorithm>

#include "agent/collect_facts.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/system/accounts.h"
#include "base/machine_uuid.h"
#include "base/port_address.h"
#include "controller/boot/boot.h"
#include "controller/image/ram.h"
#include "controller/plan/cluster_context.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

constexpr int64_t kMib = int64_t{1} << 20;

Status applied(FakeMachine& machine, const char* module, const Json& params) {
  StepContext context = machine.context();
  return find_step_module(module)->apply(context, params);
}
bool holds(FakeMachine& machine, const char* module, const Json& params) {
  StepContext context = machine.context();
  const auto out = find_step_module(module)->check(context, params);
  REQUIRE(out.ok());
  return out->holds == Holds::yes;
}

}  // namespace

FIELD_CASE("uuid-counted-down") { CHECK_FALSE(names_one_machine("00000000-0000-0000-0807-060504030201")); }
FIELD_CASE("uuid-of-a-firmware") { CHECK_FALSE(names_one_machine("8A95D198-7F46-11E5-BF8B-08002704D48E")); }
FIELD_CASE("uuid-all-ones") { CHECK_FALSE(names_one_machine("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF")); }
FIELD_CASE("mac-of-usb-adapters") { CHECK_FALSE(names_one_port("00:1A:7D:DA:71:0A")); }

FIELD_CASE("mac-of-a-bond") {
  FakeMachine machine;
  const std::string bond = "b8:ce:f6:00:00:01", second = "b8:ce:f6:00:00:02";
  for (const auto& [name, own] : {std::pair("eno1", bond), std::pair("eno2", second)}) {
    const std::string folder = std::string("/sys/class/net/") + name;
    machine.put(folder + "/device/vendor", "0x15b3\n");
    machine.put(folder + "/address", bond + "\n");
    machine.put(folder + "/bonding_slave/perm_hwaddr", own + "\n");
  }
  const auto facts = collect_facts(machine.files());
  REQUIRE(facts.ok());
  REQUIRE(facts->nics.size() == 2);
  CHECK(facts->nics[0].mac == bond);
  CHECK(facts->nics[1].mac == second);
}

FIELD_CASE("account-new-usepam") {
  FakeMachine machine;
  REQUIRE(applied(machine, "user", {{"name", "ops"}, {"keys", {"ssh-ed25519 AAAA ops"}}}).ok());
  const std::string field = steps::password_field(machine.files(), "ops");
  REQUIRE_FALSE(field.empty());
  CHECK(field[0] != '!');
}

FIELD_CASE("ufw-limit-rule") {
  FakeMachine machine;
  machine.put("/etc/ufw/ufw.conf", "ENABLED=yes\n");
  machine.put("/etc/default/ufw", "");
  machine.put("/etc/ufw/user.rules",
              "*filter\n:ufw-user-input - [0:0]\n-A ufw-user-input -p tcp --dport 22 -j "
              "ufw-user-limit-accept\nCOMMIT\n");
  REQUIRE(machine.run({.argv = {"/lib/ufw/ufw-init", "start"}}).ok());
  const Json params = {{"allow", {{{"from", "10.0.0.0/8"}, {"port", 22}}}}};
  CHECK_FALSE(holds(machine, "ufw", params));
  REQUIRE(applied(machine, "ufw", params).ok());
  CHECK(holds(machine, "ufw", params));
  CHECK(machine.run({.argv = {"iptables", "-S"}})->out.find("--dport 22 -j ufw-user-limit-accept") ==
        std::string::npos);
}

FIELD_CASE("ufw-before-ssh-is-allowed") {
  FakeMachine machine;
  machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  machine.put("/etc/default/ufw", "");
  CHECK_FALSE(
      applied(machine, "ufw", {{"allow", Json::array()}, {"controller", "https://not-an-address:1"}}).ok());
  CHECK(machine.get("/etc/ufw/ufw.conf") == "ENABLED=no\n");
  CHECK(machine.run({.argv = {"iptables", "-S"}})->out == "-P INPUT ACCEPT\n");
}

FIELD_CASE("bnx2-is-there") {
  const auto drivers = ram_network_drivers();
  CHECK(std::count(drivers.begin(), drivers.end(), "bnx2") == 1);
}

FIELD_CASE("snponly-any-port") {
  BootNetwork network;
  network.interface = "eth1";
  network.address = "10.20.0.1";
  network.cidr = "10.20.0.0/24";
  network.run_dir = "/run/muster";
  CHECK(dnsmasq_config(network).value().find("dhcp-boot=tag:!ipxe,tag:efi,snponly.efi\n") !=
        std::string::npos);
}

FIELD_CASE("chain-that-fails") { CHECK(std::string(kChainScript).find(" || exit 1\n") != std::string::npos); }

FIELD_CASE("slurm-memory-shrinks") {
  const int64_t installed = 128 * 1024 * kMib;
  CHECK(slurm_memory_mib(installed, 128517 * kMib) == slurm_memory_mib(installed, 128516 * kMib));
}

FIELD_CASE("slurm-memory-evicted") { CHECK(slurm_memory_mib(456 * 1024 * kMib, 435161 * kMib) < 435161); }

FIELD_CASE("cdi-run-folder") {
  FakeMachine machine;
  machine.put("/run/systemd/system/.keep", "");
  machine.put("/dev/nvidia0", "");
  machine.put("/dev/nvidiactl", "");
  machine.put("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
  machine.put("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "");
  machine.put("/ldconfig",
              "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
              "\tlibnvidia-ml.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1\n");
  REQUIRE(applied(machine, "cdi", {{"gpus", 1}}).ok());
  machine.put("/run/cdi/nvidia.yaml", "cdiVersion: 0.5.0\nkind: \"nvidia.com/gpu\"\ndevices:\n");
  CHECK_FALSE(holds(machine, "cdi", {{"gpus", 1}}));
}

}  // namespace muster::tests
