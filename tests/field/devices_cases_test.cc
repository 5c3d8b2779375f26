// Cards and their files: who has a PCIe device, and which file names a GPU to container engines.
#include <filesystem>
#include <sstream>

#include "agent/steps/gpu/acs.h"
#include "tests/fakes/acs_config.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace fs = std::filesystem;

namespace {

constexpr uint16_t kAllOn = 0x001d;

// A GPU and a NIC below the two ports of a switch, as a kernel with ACS on shows them.
struct CardsBelowSwitch {
  FakeMachine machine;
  StepContext context = machine.context();
  const std::string root = "pci0000:00/0000:00:01.0", uplink = root + "/0000:01:00.0",
                    gpu_port = uplink + "/0000:02:00.0", nic_port = uplink + "/0000:02:01.0";

  CardsBelowSwitch() {
    machine.put("/run/systemd/system/x", "");
    for (const char* unit : {"muster-acs.service", "muster-acs.timer"}) machine.units[unit] = {};
    const std::string bridge = "0x060400";
    add(root, bridge, "0x8086");
    add(uplink, bridge, "0x10b5");
    add(gpu_port, bridge, "0x10b5");
    add(nic_port, bridge, "0x10b5");
    add(gpu_port + "/0000:03:00.0", "0x030200", "0x10de");
    add(nic_port + "/0000:04:00.0", "0x020000", "0x15b3");
  }
  void add(const std::string& path, const std::string& kind, const std::string& vendor) {
    const std::string folder = "/sys/devices/" + path, address = path.substr(path.rfind('/') + 1);
    machine.put(folder + "/class", kind + "\n");
    machine.put(folder + "/vendor", vendor + "\n");
    machine.put(folder + "/device", "0x1021\n");
    machine.put(folder + "/config", acs_config(kAllOn));
    fs::create_directories(machine.files().real("/sys/bus/pci/devices"));
    fs::create_symlink("../../../devices/" + path, machine.files().real("/sys/bus/pci/devices/" + address));
  }
  uint16_t control(const std::string& path) const {
    return acs_control(machine.get("/sys/devices/" + path + "/config"));
  }
  // Neither the step nor what runs at boot touches a register, and a look says that it does not hold.
  void check_left_alone() {
    const StepModule& acs = *find_step_module("acs");
    const Status refused = acs.apply(context, Json::object());
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == Code::denied);
    const auto seen = acs.check(context, Json::object());
    REQUIRE(seen.ok());
    CHECK(seen->holds == Holds::no);
    machine.put(steps::kAcsFile, steps::acs_settings_text({{"0000:02:01.0", steps::kAcsRedirects, 0, "x"}}));
    CHECK(steps::reapply_acs(machine.files()).error().code == Code::denied);
    for (const auto& bridge : {root, uplink, gpu_port, nic_port}) CHECK(control(bridge) == kAllOn);
  }
};

}  // namespace

FIELD_CASE("acs-variant-vfio") {
  {
    CardsBelowSwitch n;  // as it is where no guest has a card
    n.machine.put("/sys/bus/pci/drivers/mlx5_core/0000:04:00.0/x", "");
    n.machine.put("/sys/bus/pci/drivers/vfio-pci/new_id", "");  // loaded, and nothing is bound to it
    n.machine.put("/dev/vfio/vfio", "");
    REQUIRE(find_step_module("acs")->apply(n.context, Json::object()).ok());
    CHECK(n.control(n.nic_port) == 0);
  }
  std::istringstream drivers(field_input("acs-variant-vfio", "drivers.txt"));
  int tried = 0;
  for (std::string driver; drivers >> driver; ++tried) {
    INFO(driver);
    CardsBelowSwitch n;
    n.machine.put("/sys/bus/pci/drivers/" + driver + "/0000:04:00.0/x", "");
    n.check_left_alone();
  }
  CHECK(tried == 9);
}

FIELD_CASE("acs-variant-vfio: a card below a volume management device, whose PCI domain has five digits") {
  CardsBelowSwitch n;
  n.machine.put("/sys/bus/pci/drivers/vfio-pci/10001:81:00.0/x", "");
  n.check_left_alone();
}

FIELD_CASE("acs-variant-vfio: a card that waits for its guest") {
  CardsBelowSwitch n;
  n.machine.put("/sys/devices/" + n.nic_port + "/0000:04:00.0/driver_override", "vfio-pci\n");
  n.check_left_alone();
}

FIELD_CASE("acs-variant-vfio: a guest that came after all was off is reported") {
  CardsBelowSwitch n;
  const StepModule& acs = *find_step_module("acs");
  n.machine.put("/sys/devices/" + n.nic_port + "/0000:04:00.0/driver_override", "(null)\n");
  REQUIRE(acs.apply(n.context, Json::object()).ok());
  REQUIRE(acs.check(n.context, Json::object())->holds == Holds::yes);
  n.machine.put("/sys/bus/mdev/devices/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001/x", "");
  CHECK(acs.check(n.context, Json::object())->holds == Holds::no);
}

FIELD_CASE("acs-vfio-of-grace") {
  CardsBelowSwitch n;
  n.machine.put("/sys/devices/" + n.gpu_port + "/0000:03:00.0/vfio-dev/vfio0/dev", "511:0\n");
  n.check_left_alone();
}

FIELD_CASE("acs-vfio-renamed-for-grace") {
  CardsBelowSwitch n;
  n.machine.put("/sys/bus/pci/drivers/nvgrace_vfio_pci/0008:01:00.0/x", "");
  n.check_left_alone();
}

FIELD_CASE("acs-virtual-functions-of-gpus") {
  CardsBelowSwitch n;
  SECTION("by the group") { n.machine.put("/dev/vfio/42", ""); }
  SECTION("by the device") { n.machine.put("/dev/vfio/devices/vfio3", ""); }
  SECTION("by the driver, as before") { n.machine.put("/sys/bus/pci/drivers/vfio-pci/0000:04:02.0/x", ""); }
  n.check_left_alone();
}

namespace {

constexpr const char* kOurs = "/etc/cdi/nvidia.json";

// A node with two GPUs, their driver, and the toolkit of their maker.
struct TwoGpus {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& cdi = *find_step_module("cdi");
  const Json params = {{"gpus", 2}};

  TwoGpus() {
    machine.put("/run/systemd/system/x", "");
    for (const char* path : {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/usr/bin/nvidia-ctk",
                             "/usr/lib/libcuda.so.1", "/usr/lib/libnvidia-ml.so.1"})
      machine.put(path, "");
    machine.put("/ldconfig",
                "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1\n"
                "\tlibnvidia-ml.so.1 (libc6,x86-64) => /usr/lib/libnvidia-ml.so.1\n");
  }
  bool has_ours() const { return machine.files().exists(kOurs); }
  CheckResult look() {
    const auto seen = cdi.check(context, params);
    REQUIRE(seen.ok());
    return *seen;
  }
  void apply() {
    REQUIRE(cdi.apply(context, params).ok());
    CHECK(cdi.verify(context, params).ok());
    CHECK(look().holds == Holds::yes);
  }
  void check_refused() {
    const bool had = has_ours();
    CHECK(look().holds == Holds::no);
    CHECK(cdi.apply(context, params).error().code == Code::denied);
    CHECK(has_ours() == had);
  }
};

}  // namespace

FIELD_CASE("cdi-two-files: the host's own file stays the only one") {
  const std::string theirs = field_input("cdi-two-files", "nvidia.yaml");
  TwoGpus n;
  SECTION("ours was never there") {}
  SECTION("ours was there first") {
    n.apply();
    REQUIRE(n.has_ours());
  }
  n.machine.put("/etc/cdi/nvidia.yaml", theirs);
  if (n.has_ours()) CHECK(n.look().holds == Holds::no);
  n.apply();
  CHECK_FALSE(n.has_ours());
  CHECK(n.machine.get("/etc/cdi/nvidia.yaml") == theirs);
  CHECK(n.look().note.find("/etc/cdi/nvidia.yaml") != std::string::npos);
}

FIELD_CASE("cdi-two-files: one that engines can do nothing with is refused") {
  const std::string theirs = field_input("cdi-two-files", "nvidia.yaml");
  TwoGpus n;
  SECTION("a library of an older driver") {
    n.apply();
    std::string stale = theirs;
    stale.replace(stale.find("/usr/lib/libcuda.so.1"), 21, "/usr/lib/libcuda.so.535.104.05");
    n.machine.put("/run/cdi/nvidia.yaml", stale);
  }
  SECTION("a GPU that it does not have") {
    std::string partly = theirs;
    partly.replace(partly.find("\"1\""), 3, "GPU-1");
    n.machine.put("/etc/cdi/nvidia.yaml", partly);
  }
  SECTION("a hook whose program is gone") {
    REQUIRE(n.machine.files().remove("/usr/bin/nvidia-ctk").ok());
    n.machine.put("/etc/cdi/nvidia.yaml", theirs);
  }
  SECTION("two of them") {
    n.machine.put("/etc/cdi/nvidia.yaml", theirs);
    n.machine.put("/etc/cdi/gpus.yaml", theirs);
  }
  SECTION("two of them, below one of the other folder") {
    for (const char* path : {"/etc/cdi/nvidia.yaml", "/etc/cdi/gpus.yaml", "/run/cdi/nvidia.yaml"})
      n.machine.put(path, theirs);
  }
  n.check_refused();
}

FIELD_CASE("cdi-two-files: what engines do not read, and what names nothing of ours, is no conflict") {
  TwoGpus n;
  n.machine.put("/etc/cdi/nvidia.yaml.old", field_input("cdi-two-files", "nvidia.yaml"));
  n.machine.put("/etc/cdi/mig.yaml",
                "kind: nvidia.com/gpu\ndevices:\n- name: \"0:1\"\n  containerEdits: {}\n");
  n.apply();
  CHECK(n.has_ours());
  CHECK(n.look().note.empty());
}

FIELD_CASE("cdi-generated-twice") {
  TwoGpus n;
  for (const char* folder : {"/etc/cdi/", "/run/cdi/"})
    n.machine.put(folder + std::string("nvidia.yaml"), field_input("cdi-generated-twice", "nvidia.yaml"));
  n.apply();
  CHECK_FALSE(n.has_ours());
}

FIELD_CASE("cdi-other-kind") {
  TwoGpus n;
  n.machine.put("/run/cdi/management.yaml", field_input("cdi-other-kind", "management.yaml"));
  n.apply();
  CHECK(n.has_ours());
  CHECK(n.look().note.empty());
}

FIELD_CASE("cdi-names-are-numbers") {
  TwoGpus n;
  n.apply();
  const Json spec = Json::parse(n.machine.get(kOurs));
  CHECK(spec["cdiVersion"] == "0.5.0");
  CHECK(spec["devices"][0]["name"] == "0");
}

FIELD_CASE("cdi-only-in-run") {
  const std::string path = "/run/cdi/nvidia-container-toolkit.json";
  TwoGpus n;
  n.machine.put("/run/driver/dev/nvidia1", "");
  n.machine.put(path, field_input("cdi-only-in-run", "nvidia-container-toolkit.json"));
  n.apply();
  CHECK(n.look().note.find(path) != std::string::npos);
  // What it points to is gone.
  REQUIRE(n.machine.files().remove("/run/driver/dev/nvidia1").ok());
  n.check_refused();
}

}  // namespace muster::tests
