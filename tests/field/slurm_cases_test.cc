// What an agent reports of its node's state in Slurm, and what a rollout and a trial make of it; the words of
// libslurm.
#include <sstream>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/storage_state.h"
#include "base/slurm_state.h"
#include "controller/link/storage_reports.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

// A compute node and its controller. sinfo shows `line`, or gives up if that is empty.
struct Compute : Process {
  FakeMachine machine;
  Files files = machine.files();
  StorageState state{files, *this, kMinute};
  StorageReports reports;
  std::string line;
  int64_t seconds = 0;

  Compute() {
    for (const char* file : {"/etc/slurm/slurm.conf", "/usr/sbin/slurmd", "/proc/self/mountinfo"})
      machine.put(file, "");
    machine.put("/proc/sys/kernel/hostname", "node01\n");
  }
  Result<Output> run(const Command&) override {
    if (!line.empty()) return Output{0, "node01|" + line + "\n", ""};
    return Output{1, "", "slurm_load_partitions: Unable to contact slurm controller (connect failure)"};
  }
  SchedulerState seen(const std::string& now) {
    line = now.empty() ? "" : now + "|Unknown|Unknown";
    reports.update("node01", state.text(seconds));
    seconds += 3600;
    return reports.scheduler("node01");
  }
};

}  // namespace

FIELD_CASE("slurm-inval-resume: it is out, for whatever reason it is drained") {
  Compute node;
  for (const char* line : {"inval|muster reimage", "inval*|muster reimage", "inval|Low RealMemory"}) {
    CAPTURE(line);
    CHECK(node.seen(line).out);
    CHECK_FALSE(node.seen(line).paused);
  }
  CHECK_FALSE(node.seen("drained|muster reimage").out);
  CHECK(node.seen("drained|muster reimage").paused);
}

FIELD_CASE("slurm-silent-poll") {
  Compute node;
  CHECK(node.seen("").busy);  // nothing is known of it yet
  CHECK_FALSE(node.seen("idle|none").busy);
  CHECK(node.seen("").busy);
  CHECK_FALSE(node.seen("").out);
  CHECK(node.seen("drained|bad fan").out);
  CHECK(node.seen("").out);
  CHECK(node.seen("").busy);
  CHECK_FALSE(node.seen("idle|none").busy);
}

FIELD_CASE("job-before-the-node-is-ready") {
  const bool has_job = GENERATE(false, true);
  FakeMachine machine;
  StepContext context = machine.context();
  const std::string seen = field_input("job-before-the-node-is-ready", "sinfo.txt");
  machine.put("/slurm/node01", seen.substr(0, seen.find('\n')));
  if (has_job) machine.put("/slurm-jobs/node01", "17\n");
  machine.put("/proc/stat", "cpu 1\nbtime 1000\n");
  machine.put("/slurm-started/node01", "1060");
  const StepModule& one = *find_step_module("slurm_node");
  const Json on_trial = {
      {"node", "node01"}, {"state", "registered"}, {"reason", "muster reimage"}, {"deadline_seconds", 0}};
  CHECK(one.check(context, on_trial)->holds == Holds::no);
  CHECK(one.apply(context, on_trial).ok() != has_job);
  CHECK(machine.get("/slurm/node01") == (has_job ? "draining|muster reimage" : "drained|muster reimage"));
}

FIELD_CASE("slurm-power-states: off, or on its way there, is out") {
  Compute node;
  for (const char* word : {"idle~", "idle#", "idle!", "idle%", "mixed%", "powered_down", "power_down",
                           "powering_down", "powering_up", "hibernating"}) {
    CAPTURE(word);
    CHECK(node.seen(std::string(word) + "|none").out);
  }
  CHECK_FALSE(node.seen("idle|none").out);
}

// Each line: what `scontrol show node` prints, which hides nothing, sinfo's long word, its short one.
FIELD_CASE("slurm-power-states: libslurm's words say no more than is so") {
  std::istringstream lines(field_input("slurm-power-states", "libslurm.txt"));
  int tried = 0;
  for (std::string whole, with_mark, short_form; lines >> whole >> with_mark >> short_form; ++tried) {
    CAPTURE(whole, with_mark, short_form);
    const slurm::State all = slurm::read_state(whole);
    CHECK(all.unknown.empty());
    for (const auto& word : {with_mark, short_form}) {
      const slurm::State state = slurm::read_state(word);
      CHECK(state.unknown.empty());
      // "completing" hides the base state, for a moment.
      if (state.takes_jobs() && with_mark != "COMPLETING") CHECK(all.takes_jobs());
      if (state.draining) CHECK(all.draining);
      if (state.lacking || all.lacking) CHECK(state.lacking == all.lacking);
      if (state.busy) CHECK(all.busy);
      // What it hides, it is known to hide; or the node is away. `drained` hides an unknown base state, and
      // its jobs are squeue's.
      if (all.busy) CHECK((state.busy || state.unclear || state.absent));
      if (all.draining) CHECK((state.draining || state.reboots));
      CHECK((state.takes_jobs() || !all.takes_jobs() || state.unclear));
    }
  }
  CHECK(tried == 280);
}

}  // namespace muster::tests
