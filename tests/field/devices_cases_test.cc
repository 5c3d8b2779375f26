// Devices and schedulers that others work with.
#include <cerrno>
#include <optional>

#include "agent/collect_facts.h"
#include "agent/kexec.h"
#include "agent/steps/step_modules.h"
#include "controller/plan/cluster_context.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

Status applied(FakeMachine& machine, const char* module, const Json& params) {
  StepContext context = machine.context();
  return find_step_module(module)->apply(context, params);
}
Result<CheckResult> checked(FakeMachine& machine, const char* module, const Json& params) {
  StepContext context = machine.context();
  return find_step_module(module)->check(context, params);
}

}  // namespace

FIELD_CASE("acs-variant-vfio") {
  const auto code_with = [](const std::string& path) {
    FakeMachine machine;
    machine.put("/run/systemd/system/.keep", "");
    if (!path.empty()) machine.put(path, "");
    const auto out = applied(machine, "acs", Json::object());
    return out.ok() ? std::nullopt : std::optional(out.error().code);
  };
  const auto alone = code_with("");
  CHECK(alone != Code::denied);
  for (const char* driver :
       {"vfio-pci", "mlx5_vfio_pci", "nvgrace_gpu_vfio_pci", "pds_vfio_pci", "pciback"}) {
    CAPTURE(driver);
    CHECK(code_with(std::string("/sys/bus/pci/drivers/") + driver + "/0000:04:00.0") == Code::denied);
    CHECK(code_with(std::string("/sys/bus/pci/drivers/") + driver + "/bind") ==
          alone);  // loaded, nothing bound
  }
  CHECK(code_with("/sys/bus/pci/devices/0000:04:00.0/vfio-dev/vfio0/dev") == Code::denied);
  CHECK(code_with("/sys/bus/pci/drivers/vfio-pci/10001:81:00.0") == Code::denied);
  CHECK(code_with("/sys/bus/mdev/devices/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001") == Code::denied);
}

FIELD_CASE("cdi-two-files") {
  FakeMachine machine;
  machine.put("/run/systemd/system/.keep", "");
  machine.put("/dev/nvidia0", "");
  machine.put("/dev/nvidiactl", "");
  const std::string library = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
  const std::string other = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
  machine.put(library, "");
  machine.put(other, "");
  machine.put("/ldconfig", "\tlibcuda.so.1 (libc6,x86-64) => " + library +
                               "\n\tlibnvidia-ml.so.1 (libc6,x86-64) => " + other + "\n");
  const Json params = {{"gpus", 1}};
  REQUIRE(applied(machine, "cdi", params).ok());
  REQUIRE(checked(machine, "cdi", params)->holds == Holds::yes);
  const std::string theirs = "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: all\n";
  for (const char* path : {"/etc/cdi/nvidia.yaml", "/run/cdi/nvidia.yaml", "/etc/cdi/site.json"}) {
    CAPTURE(path);
    const bool json = std::string(path).find("json") != std::string::npos;
    machine.put(path,
                json ? "{\"cdiVersion\": \"0.6.0\", \"kind\": \"nvidia.com/gpu\", \"devices\": []}" : theirs);
    CHECK(checked(machine, "cdi", params)->holds == Holds::no);
    CHECK(applied(machine, "cdi", params).error().code == Code::conflict);
    CHECK(machine.files().exists(path));  // it is theirs
    REQUIRE(machine.files().remove(path).ok());
    CHECK(checked(machine, "cdi", params)->holds == Holds::yes);
  }
  machine.put("/etc/cdi/nic.yaml", "cdiVersion: 0.5.0\nkind: vendor.example/nic\n");
  machine.put("/etc/cdi/nvidia.yaml.bak", theirs);
  CHECK(checked(machine, "cdi", params)->holds == Holds::yes);
}

FIELD_CASE("slurm-planned-and-maint") {
  FakeMachine machine;
  const Json nodes = {{"nodes", {{{"name", "node01"}}}}, {"deadline_seconds", 0}};
  const auto takes_jobs = [&](const std::string& state) {
    machine.put("/slurm/node01", state + "|none");
    return checked(machine, "slurm_nodes", nodes)->holds == Holds::yes;
  };
  for (const char* state : {"idle", "mixed-", "planned", "allocated-", "reserved", "completing", "mixed"}) {
    CAPTURE(state);
    CHECK(takes_jobs(state));
  }
  for (const char* state : {"idle*", "maint", "drained$", "idle~", "draining@", "down*", "unknown"}) {
    CAPTURE(state);
    CHECK_FALSE(takes_jobs(state));
  }
  const Json drain = {{"node", "node01"}, {"state", "drain"}, {"deadline_seconds", 0}};
  const Json resume = {{"node", "node01"}, {"state", "resume"}, {"deadline_seconds", 0}};
  for (const char* state : {"drained", "drained*", "drained$", "drained~"}) {
    CAPTURE(state);
    machine.put("/slurm/node01", std::string(state) + "|muster drain");
    CHECK(checked(machine, "slurm_node", drain)->holds == Holds::yes);
    CHECK(checked(machine, "slurm_node", resume)->holds == Holds::no);
    REQUIRE(applied(machine, "slurm_node", resume).ok());
    CHECK(machine.get("/slurm/node01").rfind("idle", 0) == 0);
  }
}

FIELD_CASE("slurm-memory-64g") {
  FakeMachine machine;
  for (int block = 0; block < 33; ++block)
    machine.put("/sys/devices/system/memory/memory" + std::to_string(block) + "/state", "online\n");
  machine.put("/sys/devices/system/memory/block_size_bytes", "80000000\n");
  machine.put("/proc/meminfo", "MemTotal:       65221888 kB\nMemFree: 1 kB\n");
  const auto facts = collect_facts(machine.files());
  REQUIRE(facts.ok());
  // Through the wire, as the controller has it.
  const auto known = hardware_facts_from_json(to_json(*facts));
  REQUIRE(known.ok());
  const int64_t told = slurm_memory_mib(static_cast<int64_t>(known->memory_bytes),
                                        static_cast<int64_t>(known->usable_memory_bytes));
  CHECK(told > 58000);
  CHECK(told <= 63693 * 95 / 100);
}

FIELD_CASE("kexec-address-not-available") {
  for (const int error : {EADDRNOTAVAIL, ENOMEM, ENOEXEC, EINVAL, EPERM, ENOSYS, EKEYREJECTED}) {
    CAPTURE(error);
    CHECK(kexec_refusal(error) == Code::denied);
  }
  for (const int error : {EBUSY, EINTR, EIO}) {
    CAPTURE(error);
    CHECK(kexec_refusal(error) == Code::failed);
  }
}

}  // namespace muster::tests
