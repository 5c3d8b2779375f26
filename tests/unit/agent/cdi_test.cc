// /etc/cdi/nvidia.json of machines made by hand.
#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {
using tests::FakeMachine;
}

TEST_CASE("cdi names the devices and libraries that are there, and reads them back", "[standin][steps]") {
  FakeMachine m;
  m.put("/run/systemd/system/x", "");
  for (const char* path :
       {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/lib/a/libcuda.so.1", "/lib/a/libnvidia-ml.so.1"})
    m.put(path, "");
  const std::string cuda = "\tlibcuda.so.1 (libc6,x86-64) => /lib/a/libcuda.so.1\n";
  const std::string nvml =
      "\tlibnvidia-ml.so.1 (libc6) => /lib/32/libnvidia-ml.so.1\n\tlibnvidia-ml.so.1 (libc6,x86-64) => "
      "/lib/a/libnvidia-ml.so.1\n";
  const std::string other = "\tlibc.so.6 (libc6,x86-64) => /lib/a/libc.so.6\n";
  m.put("/ldconfig", "4 libs found\n" + cuda + nvml + other);
  StepContext context = m.context();
  const StepModule& cdi = *find_step_module("cdi");
  REQUIRE(cdi.apply(context, {{"gpus", 2}}).ok());
  CHECK(cdi.verify(context, {{"gpus", 2}}).ok());
  const Json spec = Json::parse(m.get("/etc/cdi/nvidia.json"));
  CHECK(spec["kind"] == "nvidia.com/gpu");
  REQUIRE(spec["devices"].size() == 3);
  CHECK(spec["devices"][1]["name"] == "1");
  CHECK(spec["devices"][2]["name"] == "all");
  CHECK(spec["devices"][2]["containerEdits"]["deviceNodes"].size() == 2);
  const Json& edits = spec["containerEdits"];
  CHECK(edits["deviceNodes"] == Json::parse(R"([{"path": "/dev/nvidiactl"}])"));
  REQUIRE(edits["mounts"].size() == 2);
  CHECK(edits["mounts"][1]["hostPath"] == "/lib/a/libnvidia-ml.so.1");

  CHECK(cdi.check(context, {{"gpus", 3}}).error().code == Code::not_found);  // a GPU is gone
  CHECK(cdi.check(context, {{"gpus", 0}}).error().code == Code::invalid);
  m.broken = {"ldconfig"};
  CHECK(cdi.check(context, {{"gpus", 2}}).error().code == Code::failed);
  m.broken.clear();
  m.put("/ldconfig", nvml);
  CHECK(cdi.check(context, {{"gpus", 2}}).error().code == Code::not_found);  // no CUDA
  m.put("/ldconfig", cuda + nvml);
  REQUIRE(m.files().remove("/lib/a/libcuda.so.1").ok());
  CHECK_FALSE(cdi.verify(context, {{"gpus", 2}}).ok());
}

namespace {

constexpr const char* kOurs = "/etc/cdi/nvidia.json";
constexpr const char* kRefreshed = "/run/cdi/nvidia.yaml";

// A file of `nvidia-ctk cdi generate`: names of devices, and the numbers of the GPUs that each brings.
std::string generated(const std::vector<std::pair<std::string, std::string>>& devices) {
  std::string out = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n";
  for (const auto& [name, gpus] : devices) {
    out += "- name: \"" + name + "\"\n  containerEdits:\n    deviceNodes:\n";
    for (const char gpu : gpus) out += std::string("    - path: /dev/nvidia") + gpu + "\n";
  }
  return out;
}
const std::string kComplete = generated({{"0", "0"}, {"1", "1"}, {"all", "01"}});

// Two GPUs with their driver, and the toolkit.
struct Toolkit {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& cdi = *find_step_module("cdi");
  const Json params = {{"gpus", 2}};
  Toolkit() {
    machine.put("/run/systemd/system/x", "");
    for (const char* path : {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/usr/bin/nvidia-ctk",
                             "/lib/a/libcuda.so.1", "/lib/a/libnvidia-ml.so.1"})
      machine.put(path, "");
    machine.put("/ldconfig",
                "\tlibcuda.so.1 (libc6,x86-64) => /lib/a/libcuda.so.1\n"
                "\tlibnvidia-ml.so.1 (libc6,x86-64) => /lib/a/libnvidia-ml.so.1\n");
  }
  bool has_ours() const { return machine.files().exists(kOurs); }
  bool holds() { return cdi.check(context, params)->holds == Holds::yes; }
  size_t restarts() const {
    size_t count = 0;
    for (const auto& call : machine.calls) count += call == "systemctl restart nvidia-cdi-refresh.service";
    return count;
  }
  void apply() {
    const Status done = cdi.apply(context, params);
    INFO((done.ok() ? "" : done.error().message));
    REQUIRE(done.ok());
    CHECK(cdi.verify(context, params).ok());
    CHECK(holds());
  }
};

// With the unit that writes the toolkit's file; `now`: what it would write.
struct Refreshed : Toolkit {
  explicit Refreshed(const std::string& now = kComplete) {
    machine.put("/etc/systemd/system/nvidia-cdi-refresh.service", "");
    if (!now.empty()) machine.put("/cdi-generated", now);
  }
};

}  // namespace

TEST_CASE("cdi: a host's file may name GPUs by UUID, and MIG devices instead of GPUs", "[steps]") {
  Toolkit n;
  std::string theirs;
  SECTION("by UUID") { theirs = generated({{"GPU-4cf8", "0"}, {"GPU-4404", "1"}, {"all", "01"}}); }
  SECTION("by index and UUID") {
    theirs = generated({{"0", "0"}, {"GPU-4cf8", "0"}, {"1", "1"}, {"GPU-4404", "1"}, {"all", "01"}});
  }
  SECTION("by type") { theirs = generated({{"gpu0", "0"}, {"mig1:0", "1"}, {"all", "01"}}); }
  SECTION("one is divided") { theirs = generated({{"0:0", "0"}, {"0:1", "0"}, {"1", "1"}, {"all", "01"}}); }
  SECTION("both are divided") {
    theirs = generated({{"MIG-1a", "0"}, {"MIG-1b", "0"}, {"MIG-2a", "1"}, {"all", "01"}});
  }
  n.machine.put("/etc/cdi/nvidia.yaml", theirs);
  n.apply();
  CHECK_FALSE(n.has_ours());
  CHECK(n.machine.get("/etc/cdi/nvidia.yaml") == theirs);
}

TEST_CASE("cdi: a host's file that lacks a GPU is refused, however it names them", "[steps]") {
  Toolkit n;
  std::string theirs;
  SECTION("one UUID") { theirs = generated({{"GPU-4cf8", "0"}, {"all", "0"}}); }
  SECTION("parts of one GPU") { theirs = generated({{"0:0", "0"}, {"0:1", "0"}, {"all", "0"}}); }
  SECTION("parts of one GPU by UUID") {
    theirs = generated({{"MIG-1a", "0"}, {"MIG-1b", "0"}, {"all", "0"}});
  }
  SECTION("no name for all") { theirs = generated({{"0", "0"}, {"1", "1"}}); }
  n.machine.put("/etc/cdi/nvidia.yaml", theirs);
  CHECK_FALSE(n.holds());
  CHECK(n.cdi.apply(n.context, n.params).error().code == Code::denied);
  CHECK_FALSE(n.cdi.verify(n.context, n.params).ok());
  CHECK_FALSE(n.has_ours());
}

TEST_CASE("cdi: the toolkit's own unit takes over, and is run again where its file is not right", "[steps]") {
  Refreshed n;
  SECTION("it has not run") {}
  SECTION("it ran before there was a second GPU") {
    n.machine.put(kRefreshed, generated({{"0", "0"}, {"all", "0"}}));
  }
  SECTION("muster's file was there first") { n.machine.put(kOurs, "{}"); }
  CHECK_FALSE(n.holds());
  n.apply();
  CHECK_FALSE(n.has_ours());
  CHECK(n.machine.get(kRefreshed) == kComplete);
  CHECK(n.restarts() == 1);
  n.apply();
  CHECK(n.restarts() == 1);
}

TEST_CASE("cdi: muster's file stays until that of the toolkit's unit is right", "[steps]") {
  Refreshed n("");
  n.machine.put(kOurs, "{}");
  SECTION("the unit fails") {
    n.machine.broken = {"systemctl restart"};
    CHECK(n.cdi.apply(n.context, n.params).error().code == Code::failed);
  }
  SECTION("the unit writes nothing") { CHECK(n.cdi.apply(n.context, n.params).error().code == Code::denied); }
  CHECK(n.has_ours());
  CHECK_FALSE(n.holds());
  CHECK_FALSE(n.cdi.verify(n.context, n.params).ok());
}

TEST_CASE("cdi: a masked unit writes no file, so muster does", "[steps]") {
  Toolkit n;
  const std::string unit = "systemd/system/nvidia-cdi-refresh.service";
  n.machine.put("/usr/lib/" + unit, "");
  REQUIRE(n.machine.files().make_directories("/etc/systemd/system").ok());
  REQUIRE(n.machine.files().symlink("/dev/null", "/etc/" + unit).ok());
  n.apply();
  CHECK(n.has_ours());
  CHECK(n.restarts() == 0);
}

TEST_CASE("cdi: the toolkit must list the devices", "[steps]") {
  Toolkit n;
  n.apply();
  n.machine.broken = {"/usr/bin/nvidia-ctk"};
  CHECK_FALSE(n.cdi.verify(n.context, n.params).ok());
  REQUIRE(n.machine.files().remove("/usr/bin/nvidia-ctk").ok());
  CHECK(n.cdi.verify(n.context, n.params).ok());
}

}  // namespace muster
