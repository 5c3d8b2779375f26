// Further reports of the kinds that other cases began: tried in the order in which they were found, right
// or wrong.
#include <algorithm>

#include "agent/steps/step_modules.h"
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
