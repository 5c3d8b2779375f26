// Further reports of the kinds that other cases began: tried in the order in which they were found, right
// or wrong.
#include <algorithm>

#include "agent/collect_facts.h"
#include "agent/steps/step_modules.h"
#include "base/machine_uuid.h"
#include "base/port_address.h"
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

FIELD_CASE("bnx2-is-there") {
  const auto drivers = ram_network_drivers();
  CHECK(std::count(drivers.begin(), drivers.end(), "bnx2") == 1);
}

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
