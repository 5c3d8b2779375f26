// Slurm's prolog and health check (/etc/slurm/muster-health, playbook scheduler), run by a shell over what
// muster-accept says of a made-up kernel log; sinfo, scontrol and logger are stand-ins.
#include <filesystem>

#include "base/json_dump.h"
#include "base/standin.h"
#include "kernels/common/kernels.h"
#include "kernels/counters/counters.h"
#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/reference_step.h"

using namespace muster;
using namespace muster::testing;

namespace fs = std::filesystem;

namespace {

class Bench {
 public:
  Bench() {
    for (const char* folder : {"bin", "run", "machine"}) fs::create_directories(folder_.path(folder));
    std::string script = reference_step("scheduler/health")["params"]["content"].get<std::string>();
    const std::string run = "/run/", here = folder_.path("run/");
    for (size_t at = 0; (at = script.find(run, at)) != std::string::npos; at += here.size())
      script.replace(at, run.size(), here);
    folder_.write("health", replaced(script, "accept=/usr/lib/muster/", "accept=" + folder_.path("bin/")));
    program("muster-accept",
            "case $1 in sdc) exit 0 ;; esac\n"
            "if [ \"$2\" = --save ]; then : >\"$3\"; else cat \"$here/counters.json\"; fi\n");
    program("logger", "echo \"$@\" >>\"$here/log\"\n");
    program("scontrol", "echo \"$@\" >>\"$here/scontrol\"\n");
    program("sinfo", "printf 'hgx01|none\\nhgx02|%s\\n' \"$(cat \"$here/hgx02\")\"\n");
    folder_.write("hgx02", "none");
    counted({});
    REQUIRE(health() == 0);  // the first time it only remembers
  }

  // What muster-accept says when the kernel wrote these lines since the last look.
  void counted(const std::vector<std::string>& lines, bool readable = true) {
    const Files machine(folder_.path("machine"));
    REQUIRE(machine.write("/proc/sys/kernel/random/boot_id", "one\n").ok());
    REQUIRE(machine.write("/dev/kmsg", "6,1,1,-;Linux version 6.1\n").ok());
    REQUIRE(kernels::run_counters(machine, {.save = "/before"}).outcome == kernels::Outcome::measured);
    std::string log = "6,1,1,-;Linux version 6.1\n";
    int number = 2;
    for (const auto& line : lines) log += fmt::format("3,{0},{0},-;{1}\n", number++, line);
    REQUIRE((readable ? machine.write("/dev/kmsg", log) : machine.remove("/dev/kmsg")).ok());
    folder_.write("counters.json",
                  dump_json(to_json(kernels::run_counters(machine, {.since = "/before"}))) + "\n");
  }
  void other_node(const std::string& reason) { folder_.write("hgx02", reason); }
  int health() {
    for (const char* reported : {"log", "scontrol"}) folder_.write(reported, "");
    auto out = make_process()->run(
        {.argv = {"sh", folder_.path("health")}, .env = {{"PATH", folder_.path("bin") + ":/usr/bin:/bin"}}});
    REQUIRE(out.ok());
    INFO(out->err);
    return out->exit_code;
  }
  std::string drained() const { return folder_.read("scontrol"); }
  bool logged() const { return !folder_.read("log").empty(); }

 private:
  void program(const std::string& name, const std::string& text) {
    folder_.write("bin/" + name, "#!/bin/sh\nhere=" + folder_.path("") + "\n" + text);
    fs::permissions(folder_.path("bin/" + name), fs::perms::owner_all);
  }
  TempDir folder_;
};

const char* kHardware = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.";
const char* kStandIn = "NVRM: Xid (PCI:0000:e1:00): 79, pid=1, SIMULATED GPU, has fallen off the bus.";
const char* kDrive = "I/O error, dev sda, sector 1 op 0x0:(READ)";
const char* kProgram = "NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=python3, MMU Fault";
const char* kClassError = "NVRM: Xid (PCI:0000:3b:00): 69, pid=1, name=python3, Class Error";
const char* kInstance = "NVRM: Xid (PCI:0000:3b:00 GPU-I:01): 48, pid=1, name=python3, DBE";
const char* kSwitchText = "nvidia-nvswitch3: SXid (PCI:0000:c7:00.0): 22013, Non-fatal, Link 02";
const char* kSwitchDetails =
    "nvidia-nvswitch3: SXid (PCI:0000:c7:00.0): 22013, Severity 0 Engine instance 02";

}  // namespace

TEST_CASE("before a job a GPU's hardware Xid takes the node out of Slurm; a program's own fault does not",
          "[plan][scheduler]") {
  Bench bench;
  CHECK(bench.health() == 0);
  CHECK_FALSE(bench.logged());
  for (const std::vector<std::string>& harmless : {std::vector<std::string>{kProgram, kClassError},
                                                   std::vector<std::string>{kSwitchText, kSwitchDetails}}) {
    bench.counted(harmless);
    CHECK(bench.health() == 0);
    CHECK(bench.drained().empty());
  }
  bench.counted({kInstance});
  CHECK(bench.health() == 1);
  bench.counted({kHardware, kProgram});
  CHECK(bench.health() == 1);
  CHECK(bench.drained().find("nodename=hgx01 state=drain") != std::string::npos);
  CHECK(bench.drained().find("gpu_xids +1") != std::string::npos);
}

TEST_CASE("the reason in Slurm names the GPU, and says SIMULATED GPU of one that a lab stands in for",
          "[plan][scheduler][standin]") {
  Bench bench;
  bench.counted({kDrive, kHardware});
  CHECK(bench.health() == 1);
  CHECK(bench.drained().find("GPU 0000:3b:00") != std::string::npos);
  CHECK(bench.drained().find("sda") == std::string::npos);  // a drive's error takes no node out here
  CHECK(bench.drained().find(kSimulatedGpu) == std::string::npos);
  bench.counted({kStandIn, kHardware, kHardware});
  CHECK(bench.health() == 1);
  CHECK(bench.drained().find("gpu_xids +3") != std::string::npos);
  CHECK(bench.drained().find("SIMULATED GPU 0000:e1:00") != std::string::npos);
  CHECK(bench.drained().find("GPU 0000:3b:00") != std::string::npos);
}

TEST_CASE("what Slurm's health check could not look at, or finds on many nodes, is logged and drains no node",
          "[plan][scheduler]") {
  Bench bench;
  SECTION("the kernel's log") { bench.counted({kHardware}, false); }
  SECTION("a quarter of the nodes is out for it") {
    bench.counted({kHardware});
    bench.other_node("muster health: gpu_xids +1");
  }
  CHECK(bench.health() == 0);
  CHECK(bench.drained().empty());
  CHECK(bench.logged());
}
