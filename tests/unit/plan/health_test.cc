// Slurm's prolog and health check (/etc/slurm/muster-health, playbook scheduler), run by a shell over what
// muster-accept says of a made-up kernel log; sinfo, scontrol and logger are stand-ins.
#include <filesystem>

#include "base/json_dump.h"
#include "base/split.h"
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
    for (const char* folder : {"bin", "run", "machine", "slurm"})
      fs::create_directories(folder_.path(folder));
    std::string script = reference_step("scheduler/health")["params"]["content"].get<std::string>();
    const std::string run = "/run/", here = folder_.path("run/");
    for (size_t at = 0; (at = script.find(run, at)) != std::string::npos; at += here.size())
      script.replace(at, run.size(), here);
    folder_.write("health", replaced(script, "accept=/usr/lib/muster/", "accept=" + folder_.path("bin/")));
    // Counters that are saved while something was found are a later base: nothing is found since then.
    program("muster-accept",
            "case $1 in sdc) echo '{\"check\":\"sdc\"}'; . \"$here/sdc\"; exit ;; esac\n"
            "if [ \"$2\" = --save ]; then cp \"$here/counters.json\" \"$3\"; exit; fi\n"
            "if cmp -s \"$3\" \"$here/counters.json\"; then cat \"$here/clean.json\"; else cat "
            "\"$here/counters.json\"; fi\n");
    program("logger", "echo \"$@\" >>\"$here/log\"\n");
    program("sleep", "[ ! -e \"$here/meanwhile\" ] || sh \"$here/meanwhile\"\n");
    // A file per node: its state, when its reason was given, the reason. The file `clock` is slurmctld's.
    program("scontrol",
            "echo \"$@\" >>\"$here/scontrol\"\n"
            "[ ! -e \"$here/no-scontrol\" ] || exit 1\n"
            "node=$here/slurm/${2#nodename=}\n"
            "case $3 in state=drain) echo \"idle+drain $(cat \"$here/clock\") ${4#reason=}\" >\"$node\" ;;\n"
            "*) sed -i 's/+drain//' \"$node\" ;; esac\n");
    program("sinfo",
            "[ ! -e \"$here/no-sinfo\" ] || exit 1\n"
            "cd \"$here/slurm\" && for node in *; do echo \"$node $(cat $node)   \"; done\n");
    for (const char* node : {"hgx01", "hgx02", "hgx03", "hgx04"}) slurm(node, "idle Unknown none");
    folder_.write("clock", "200");
    folder_.write("sdc", "");
    counted({});
    folder_.write("clean.json", folder_.read("counters.json"));
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
  void slurm(const std::string& node, const std::string& line) {
    folder_.write("slurm/" + node, line + "\n");
  }
  // While these are there, sinfo or scontrol gets no answer.
  void silent(const std::string& program, bool is) {
    if (is) return folder_.write("no-" + program, "");
    fs::remove(folder_.path("no-" + program));
  }
  // What happens between the drain that is written and the look at what became of it.
  void meanwhile(const std::string& shell) {
    folder_.write("meanwhile", "cd " + folder_.path("slurm") + "\n" + shell);
  }
  void computes(const std::string& said) { folder_.write("sdc", said); }
  int health(const std::string& option = "") {
    for (const char* reported : {"log", "scontrol"}) folder_.write(reported, "");
    std::vector<std::string> argv = {"sh", folder_.path("health")};
    if (!option.empty()) argv.push_back(option);
    auto out = make_process()->run({.argv = argv, .env = {{"PATH", folder_.path("bin") + ":/usr/bin:/bin"}}});
    REQUIRE(out.ok());
    INFO(out->err);
    lines_ = split_lines(out->err).size();
    return out->exit_code;
  }
  size_t lines() const { return lines_; }  // that the last run printed
  bool is_out(const std::string& node = "hgx01") const {
    return folder_.read("slurm/" + node).find("+drain") != std::string::npos;
  }
  std::string shown(const std::string& node = "hgx01") const { return folder_.read("slurm/" + node); }
  std::string drained() const { return folder_.read("scontrol"); }
  bool logged() const { return !folder_.read("log").empty(); }

 private:
  void program(const std::string& name, const std::string& text) {
    folder_.write("bin/" + name, "#!/bin/sh\nhere=" + folder_.path("") + "\n" + text);
    fs::permissions(folder_.path("bin/" + name), fs::perms::owner_all);
  }
  TempDir folder_;
  size_t lines_ = 0;
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
  bench.slurm("hgx01", "idle Unknown none");
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
  bench.slurm("hgx01", "idle Unknown none");
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
    bench.slurm("hgx02", "idle+drain 100 muster health: gpu_xids +1");
  }
  CHECK(bench.health() == 0);
  CHECK(bench.drained().empty());
  CHECK(bench.logged());
  // It counted once.
  CHECK(bench.health() == 0);
  CHECK(bench.drained().empty());
}

TEST_CASE("a node that is back, whose reason Slurm still shows, does not count as taken out",
          "[plan][scheduler]") {
  Bench bench;
  bench.slurm("hgx01", "idle 90 muster health: gpu_xids +1");
  bench.slurm("hgx02", "idle 100 muster health: gpu_xids +1");
  bench.counted({kHardware});
  CHECK(bench.health() == 1);
  CHECK(bench.is_out());
}

TEST_CASE("without an answer of Slurm nothing is held against a node, and its finding is not lost",
          "[plan][scheduler]") {
  Bench bench;
  bench.counted({kHardware});
  const char* program = GENERATE("sinfo", "scontrol");
  bench.silent(program, true);
  CHECK(bench.health() == 0);
  CHECK(bench.logged());
  CHECK_FALSE(bench.is_out());
  CHECK(bench.health() == 0);
  bench.silent(program, false);
  CHECK(bench.health() == 1);
  CHECK(bench.is_out());
  bench.slurm("hgx01", "idle 200 muster health: gpu_xids +1");
  CHECK(bench.health() == 0);  // it counted once
}

TEST_CASE("of nodes that look at the same time those stay out whose drains Slurm has first",
          "[plan][scheduler]") {
  Bench bench;
  bench.counted({kHardware});
  SECTION("another one was before") {
    bench.meanwhile("echo 'idle+drain 199 muster health: x' >hgx02");
    CHECK(bench.health() == 0);
    CHECK_FALSE(bench.is_out());
    CHECK(bench.health() == 0);  // it counted once
    CHECK(bench.drained().empty());
  }
  SECTION("in the same second, by name") {
    bench.meanwhile(
        "echo 'idle+drain 200 muster health: x' >hgx02; echo 'idle+drain 200 muster health: x' >hgx04");
    CHECK(bench.health() == 1);
    CHECK(bench.is_out());
  }
  SECTION("one that is out for another reason is none of them") {
    bench.meanwhile("echo 'idle+drain 100 broken fan' >hgx02");
    CHECK(bench.health() == 1);
    CHECK(bench.is_out());
  }
}

TEST_CASE("a drain that was not decided is decided by the next look", "[plan][scheduler]") {
  Bench bench;
  bench.counted({kHardware});
  bench.meanwhile("echo 'idle+drain 100 muster health: x' >hgx02; touch ../no-sinfo");
  CHECK(bench.health() == 0);
  CHECK(bench.is_out());
  bench.silent("sinfo", false);
  bench.meanwhile("");
  SECTION("beyond the limit: given back") {
    CHECK(bench.health() == 0);
    CHECK_FALSE(bench.is_out());
  }
  SECTION("given back, and forgotten by a controller that was killed") {
    CHECK(bench.health() == 0);
    bench.slurm("hgx01", "idle+drain 200 muster health: gpu_xids +1 (GPU 0000:3b:00)");
    CHECK(bench.health() == 0);
    CHECK_FALSE(bench.is_out());
  }
  SECTION("within the limit: out, and the finding is taken") {
    bench.slurm("hgx02", "idle Unknown none");
    CHECK(bench.health() == 1);
    CHECK(bench.is_out());
    bench.slurm("hgx01", "idle 200 muster health: x");
    CHECK(bench.health() == 0);
  }
  SECTION("drained by a person meanwhile: left alone") {
    bench.slurm("hgx01", "idle+drain 300 RMA 17");
    CHECK(bench.health() == 1);
    CHECK(bench.shown() == "idle+drain 300 RMA 17\n");
  }
}

TEST_CASE("a reason that is not the health check's stays, and the finding waits for its end",
          "[plan][scheduler]") {
  Bench bench;
  bench.counted({kHardware});
  const char* shown = GENERATE("idle+drain 100 broken fan", "idle+drain 100 muster reimage",
                               "idle+drain 100 muster drain", "idle+fail 100 broken fan");
  bench.slurm("hgx01", shown);
  CHECK(bench.health() == 1);  // no job is to start
  CHECK(bench.drained().empty());
  bench.slurm("hgx01", "idle Unknown none");
  CHECK(bench.health() == 1);
  CHECK(bench.is_out());
}

TEST_CASE("a node is given back only when it was measured and nothing was found", "[plan][scheduler]") {
  Bench bench;
  CHECK(bench.health("--measure") == 0);
  CHECK(bench.lines() == 0);
  SECTION("an error is counted") { bench.counted({kHardware}); }
  SECTION("a processor computes wrong") { bench.computes("exit 1"); }
  SECTION("no verdict about the processors") { bench.computes("exit 3"); }
  SECTION("the kernel's log cannot be read") { bench.counted({}, false); }
  CHECK(bench.health("--measure") != 0);
  CHECK(bench.lines() == 1);
  CHECK(bench.drained().empty());
}
