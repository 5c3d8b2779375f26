// A node that muster and others drain in Slurm and give back, while Slurm's controller may be starting.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"
#include "tests/source_dir.h"

using namespace muster;
using tests::FakeMachine;

namespace {

// Its Slurm does not answer so many calls.
struct Late : Process {
  explicit Late(FakeMachine& of) : machine(of) {}
  Result<Output> run(const Command& command) override {
    if (silent-- <= 0) return machine.run(command);
    Output out;
    out.exit_code = 1;
    out.err = "slurm_load_node: Unable to contact slurm controller";
    return out;
  }
  FakeMachine& machine;
  int silent = 1;
};

Json params(const std::string& state, int deadline) {
  return {{"node", "node01"}, {"state", state}, {"deadline_seconds", deadline}};
}

// The shipped playbook's step for Slurm in that phase (that brings a node to that state), for node01, in a
// plan that is of a rollout or not.
Json shipped(const std::string& phase, const std::string& state = "", bool in_rollout = false) {
  std::ifstream in(source_dir() + "/playbooks/scheduler.yaml");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto steps = parse_playbook(text).playbook.steps;
  const Json with = {
      {"node", {{"name", "node01"}}}, {"in_rollout", in_rollout}, {"drain_timeout_seconds", 0}};
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const PlaybookStep& s) {
    if (s.phase != phase || s.module != "slurm_node") return false;
    if (phase == "resume" && render_params(Json(s.when), with).value() != "yes") return false;
    return state.empty() || s.params["state"] == state;
  });
  REQUIRE(found != steps.end());
  Json out = render_params(found->params, with).value();
  out["deadline_seconds"] = 0;
  return out;
}

}  // namespace

TEST_CASE("slurm: the phase resume gives back what the phase pause took out, and nothing else", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const Json pause = shipped("pause"), resume = shipped("resume");
  SECTION("at work") {
    machine.put("/slurm/node01", "idle|none");
    REQUIRE(one.apply(context, pause).ok());
    CHECK(one.check(context, resume)->holds == Holds::no);
    REQUIRE(one.apply(context, resume).ok());
    CHECK(machine.get("/slurm/node01") == "idle|none");
  }
  SECTION("drained before, by another") {
    const std::string reason =
        GENERATE("muster drain", "muster", "bad DIMM, ask Ann", "not for muster reimage", "muster reimages");
    machine.put("/slurm/node01", "drained|" + reason);
    CHECK(one.check(context, pause)->holds == Holds::yes);  // so that it keeps the reason
    CHECK(one.check(context, resume)->holds == Holds::yes);
    REQUIRE(one.apply(context, resume).ok());
    CHECK(machine.get("/slurm/node01") == "drained|" + reason);
    CHECK_FALSE(machine.called("scontrol"));
  }
}

TEST_CASE("slurm: whatever is wanted of a node waits for a controller that restarts", "[steps]") {
  FakeMachine machine;
  const StepModule& one = *find_step_module("slurm_node");
  const std::string state = GENERATE("drain", "resume", "registered");
  CAPTURE(state);
  machine.put("/slurm/node01", state == "resume" ? "drained|muster drain" : "idle|none");
  machine.put("/proc/stat", "cpu 1\nbtime 1000\n");
  machine.put("/slurm-started/node01", "1060");
  Late late(machine);
  StepContext context{machine.context().files, late, "node01"};
  context.pause = 0;
  SECTION("the look is quick, and does not hold") {
    late.silent = 1000;
    const auto looked = one.check(context, params(state, 30));
    REQUIRE(looked.ok());
    CHECK(looked->holds == Holds::no);
    CHECK(late.silent == 999);
  }
  SECTION("it is done") {
    REQUIRE(one.apply(context, params(state, 30)).ok());
    CHECK(machine.get("/slurm/node01") == (state == "resume" ? "idle|none" : "drained|muster drain"));
  }
  SECTION("and seen to be done, if the controller restarts then") {
    late.silent = 0;
    REQUIRE(one.apply(context, params(state, 30)).ok());
    late.silent = 1;
    CHECK(one.verify(context, params(state, 30)).ok());
  }
  SECTION("not for ever") {
    late.silent = 1000;
    const Status end = one.apply(context, params(state, 0));
    REQUIRE_FALSE(end.ok());
    CHECK(end.error().code == Code::timeout);
  }
  SECTION("a node that it does not list is an error at once") {
    late.silent = 0;
    Json other = params(state, 1000);
    other["node"] = "node09";
    CHECK(one.check(context, other).error().code == Code::not_found);
    CHECK(one.apply(context, other).error().code == Code::not_found);
    CHECK(one.verify(context, other).error().code == Code::not_found);
  }
}

TEST_CASE("slurm: a change that slurmctld refuses is not waited for", "[steps]") {
  struct Refuses : Process {
    explicit Refuses(FakeMachine& of) : machine(of) {}
    Result<Output> run(const Command& command) override {
      if (command.argv[0] != "scontrol") return machine.run(command);
      return Output{1, "", "slurm_update error: Invalid user id"};
    }
    FakeMachine& machine;
  };
  FakeMachine machine;
  machine.put("/slurm/node01", "idle|none");
  Refuses process(machine);
  StepContext context{machine.context().files, process, "node01"};
  context.pause = 0;
  const Status end = find_step_module("slurm_node")->apply(context, params("drain", 86400));
  REQUIRE_FALSE(end.ok());
  CHECK(end.error().message.find("Invalid user id") != std::string::npos);
}

TEST_CASE("slurm: a node with jobs is not drained yet, whatever its state shows", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  machine.put("/slurm/node01", "idle|none");
  // With suspended jobs only, and after a restart of slurmctld until the node has registered.
  const std::string where = GENERATE("/slurm-suspended/node01", "/slurm-jobs/node01");
  machine.put(where, "17\n18\n");
  const Status paused = one.apply(context, shipped("pause"));
  REQUIRE_FALSE(paused.ok());
  CHECK(paused.error().code == Code::timeout);
  machine.put("/slurm/node01", "drained|muster reimage");
  const auto looked = one.check(context, shipped("pause"));
  REQUIRE(looked.ok());
  CHECK(looked->holds == Holds::no);
  CHECK(looked->diff.find("17,18") != std::string::npos);
  machine.put(where, "");
  CHECK(one.check(context, shipped("pause"))->holds == Holds::yes);
}

// The executor runs this check again right before it reboots a node.
TEST_CASE("slurm: the look before a reboot", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  struct Case {
    const char* state;
    Holds right, in_rollout = right;
  };
  for (const auto& [state, right, in_rollout] : std::vector<Case>{
           {"drained|muster reimage", Holds::yes},
           {"drained*|muster reimage", Holds::yes},
           {"inval|muster reimage", Holds::yes},  // no jobs: squeue has none
           {"drained|muster reimage : reboot issued", Holds::yes},
           // Its operator named it, and may have drained it for that; a rollout leaves it to them.
           {"drained|bad fan|ann|2026-11-29T09:48:25", Holds::yes, Holds::no},
           {"drained|muster drain", Holds::yes, Holds::no},
           {"drained|muster health: memory_uncorrected +2", Holds::yes, Holds::no},
           {"draining|muster reimage", Holds::no},
           {"draining|bad fan|ann|2026-11-29T09:48:25", Holds::no},
           {"failing|bad fan", Holds::no},
           {"idle|none", Holds::no},
           {"idle|muster reimage", Holds::no},  // 24.11 keeps the reason of a drain that has ended
           {"mixed|none", Holds::no},
           {"maint|none", Holds::no},
           {"maint|muster reimage", Holds::no},                 // 24.11, in a reservation that began since
           {"drained$|muster reimage", Holds::yes, Holds::no},  // and that of 22.05
           {"down|Not responding", Holds::no},
           {"down|bad fan|ann|2026-11-29T09:48:25", Holds::no},
           {"fail|bad fan|ann|2026-11-29T09:48:25", Holds::yes, Holds::no},
           {"unknown|none", Holds::no},
           {"hibernating|muster reimage", Holds::no},
           {"draining@|weekly", Holds::no},  // drains that end with Slurm's own reboot
           {"drained@|muster reimage", Holds::no},
           {"reboot^|muster reimage : reboot issued", Holds::no},
       }) {
    CAPTURE(state);
    machine.calls.clear();
    machine.put("/slurm/node01", state);
    for (const bool rollout : {false, true}) {
      const auto looked = one.check(context, shipped("pause", "", rollout));
      if (!looked.ok()) CHECK(looked.error().code == Code::denied);
      CHECK((looked.ok() ? looked->holds : Holds::no) == (rollout ? in_rollout : right));
      CHECK((rollout || looked.ok()));
    }
    CHECK(machine.get("/slurm/node01") == state);
    CHECK_FALSE(machine.called("scontrol"));
  }
}

TEST_CASE("slurm: a drain by others keeps its reason, is waited for, and is not ended", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const std::string drained = "drained|bad fan|ann|2026-11-29T09:48:25";
  machine.put("/slurm/node01", "draining|bad fan|ann|2026-11-29T09:48:25");
  CHECK_FALSE(one.apply(context, shipped("pause")).ok());
  const auto waiting = one.check(context, shipped("pause"));
  CHECK(waiting->holds == Holds::no);
  machine.put("/slurm/node01", drained);
  for (const char* phase : {"pause", "resume", "undrain", "drain"}) {
    CAPTURE(phase);
    const Json step = shipped(phase);
    REQUIRE(one.apply(context, step).ok());
    const auto looked = one.check(context, step);
    CHECK(looked->holds == Holds::yes);
    for (const char* part : {"ann", "2026-11-29T09:48:25", "bad fan"})
      CHECK(looked->note.find(part) != std::string::npos);
  }
  CHECK(machine.get("/slurm/node01") == drained);
  CHECK_FALSE(machine.called("scontrol"));
}

TEST_CASE("slurm: a rollout waits for no decision of others, names it, and leaves it", "[steps]") {
  // An operator takes the node out before the rollout's drain, or while that waits for its jobs.
  struct Replaced : Process {
    Replaced(FakeMachine& of, int at, std::string by) : machine(of), look(at), then(std::move(by)) {}
    Result<Output> run(const Command& command) override {
      if (command.argv[0] == "sinfo" && ++looks == look) machine.put("/slurm/node01", then);
      return machine.run(command);
    }
    FakeMachine& machine;
    int look, looks = 0;
    std::string then;
  };
  FakeMachine machine;
  const int at = GENERATE(1, 3);
  const std::string taken_out = std::string(GENERATE("draining", "down", "down*", "fail", "failing")) +
                                "|bad fan|ann|2026-11-29T09:48:25";
  CAPTURE(at, taken_out);
  Replaced process(machine, at, taken_out);
  StepContext context{machine.context().files, process, "node01"};
  context.pause = 0;
  const StepModule& one = *find_step_module("slurm_node");
  Json pause = shipped("pause", "", true);
  pause["deadline_seconds"] = 86400;
  machine.put("/slurm/node01", "mixed|none");
  machine.put("/slurm-jobs/node01", "41\n");
  const Status end = one.apply(context, pause);
  REQUIRE_FALSE(end.ok());
  CHECK(end.error().code == Code::denied);
  CHECK(process.looks == at);
  for (const char* part : {"ann", "2026-11-29T09:48:25", "bad fan"})
    CHECK(end.error().message.find(part) != std::string::npos);
  // Given back: to that person.
  REQUIRE(one.apply(context, shipped("resume", "", true)).ok());
  CHECK(machine.get("/slurm/node01") == taken_out);
}

TEST_CASE("slurm: a node that a person has set down stays out beyond a boot, and is theirs", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const std::string down = "down|bad fan|ann|2026-11-29T09:48:25";
  machine.put("/slurm/node01", down);
  machine.put("/proc/stat", "cpu 1\nbtime 1000\n");
  machine.put("/slurm-started/node01", "1060");
  // What resumes leaves it as it is.
  for (const Json& step : {shipped("resume"), shipped("undrain"), shipped("cluster", "resume")}) {
    CAPTURE(step);
    REQUIRE(one.apply(context, step).ok());
    CHECK(machine.get("/slurm/node01") == down);
    const auto looked = one.check(context, step);
    CHECK(looked->holds == Holds::yes);
    for (const char* part : {"ann", "2026-11-29T09:48:25", "bad fan"})
      CHECK(looked->note.find(part) != std::string::npos);
  }
  // Its registration ends `state=down` (ReturnToService), but no drain.
  for (const Json& step : {shipped("pause"), shipped("drain"), shipped("cluster", "registered")}) {
    CAPTURE(step);
    machine.put("/slurm/node01", down);
    CHECK(one.check(context, step)->holds == Holds::no);
    REQUIRE(one.apply(context, step).ok());
    CHECK(machine.get("/slurm/node01") == "drained|bad fan");
    CHECK(one.check(context, step)->note.find("bad fan") != std::string::npos);
    for (const Json& later : {shipped("resume"), shipped("undrain")}) REQUIRE(one.apply(context, later).ok());
    CHECK(machine.get("/slurm/node01") == "drained|bad fan");
  }
  // Without a reason it stays theirs, too.
  machine.put("/slurm/node01", "down|none|ann|2026-11-29T09:48:25");
  REQUIRE(one.apply(context, shipped("pause")).ok());
  REQUIRE(one.apply(context, shipped("resume")).ok());
  CHECK(machine.get("/slurm/node01") == "drained|set down");
  // What slurmctld has set down by itself is no decision.
  machine.put("/slurm/node01", "down*|Not responding");
  REQUIRE(one.apply(context, shipped("drain")).ok());
  CHECK(machine.get("/slurm/node01") == "drained|muster drain");
}

TEST_CASE("slurm: a rollout ends no drain of the health check, measured or not", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const std::string drained = "drained|muster health: memory_uncorrected +2 (mc1)";
  machine.put("/slurm/node01", drained);
  CHECK(one.apply(context, shipped("pause", "", true)).error().code == Code::denied);
  const auto looked = one.check(context, shipped("resume", "", true));
  CHECK(looked->holds == Holds::yes);
  CHECK(looked->note.find("memory_uncorrected") != std::string::npos);
  REQUIRE(one.apply(context, shipped("resume", "", true)).ok());
  CHECK(machine.get("/slurm/node01") == drained);
  CHECK_FALSE(machine.called("muster-health"));
}

TEST_CASE("slurm: what is no decision is taken over", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  SECTION("a drain that an earlier run left, by `muster drain`") {
    machine.put("/slurm/node01", "drained|muster reimage");
    REQUIRE(one.apply(context, shipped("drain")).ok());
    CHECK(machine.get("/slurm/node01") == "drained|muster drain");
    REQUIRE(one.apply(context, shipped("undrain")).ok());
    CHECK(machine.get("/slurm/node01") == "idle|none");
  }
  SECTION("the reason that slurmctld 24.11 writes over muster's") {
    machine.put("/slurm/node01", "drained|gres/gpu count reported lower than configured (1 < 2)");
    REQUIRE(one.apply(context, shipped("pause")).ok());
    CHECK(machine.get("/slurm/node01") == "drained|muster reimage");
  }
}

TEST_CASE("slurm: `undrain` ends `muster drain` only", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const std::string reason = GENERATE("muster health: memory_uncorrected +3", "muster reimage",
                                      "muster drains it", "bad DIMM, ask Ann");
  machine.put("/slurm/node01", "drained|" + reason);
  REQUIRE(one.apply(context, shipped("undrain")).ok());
  CHECK(machine.get("/slurm/node01") == "drained|" + reason);
}

TEST_CASE("slurm: a node that registered with less than slurm.conf has is not given back", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const std::string reason =
      GENERATE("muster reimage", "muster drain", "Low RealMemory (reported:900 < 1000)", "bad fan",
               "muster health: gpu_xids +1");
  machine.put("/slurm/node01", "inval|" + reason);
  machine.put("/proc/stat", "cpu 1\nbtime 1000\n");
  machine.put("/slurm-started/node01", "1060");
  for (const Json& step : {shipped("resume"), shipped("undrain"), shipped("cluster", "resume"),
                           shipped("cluster", "registered")}) {
    CAPTURE(step);
    CHECK(one.check(context, step)->holds == Holds::no);
    CHECK_FALSE(one.apply(context, step).ok());
    CHECK(machine.get("/slurm/node01") == "inval|" + reason);
  }
  CHECK_FALSE(machine.called("scontrol update"));
}

TEST_CASE("slurm: that a node registered with less than slurm.conf has is not waited for", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  context.pause = 0;
  const StepModule& one = *find_step_module("slurm_node");
  machine.put("/slurm/node01", "inval|gres/gpu count reported lower than configured (1 < 2)");
  machine.put("/proc/stat", "cpu 1\nbtime 1000\n");
  SECTION("since its boot") {
    machine.put("/slurm-started/node01", "1060");
    CHECK(one.apply(context, params("registered", 600)).error().code == Code::conflict);
    CHECK(one.verify(context, params("registered", 600)).error().code == Code::conflict);
    CHECK(one.check(context, params("registered", 600))->holds == Holds::no);
  }
  SECTION("before its boot: it may register again") {
    machine.put("/slurm-started/node01", "900");
    CHECK(one.apply(context, params("registered", 0)).error().code == Code::timeout);
  }
  CHECK_FALSE(machine.called("scontrol update"));
}

TEST_CASE("slurm: a slurmd that was just started may not have registered yet", "[steps]") {
  // Its second look finds the registration of the slurmd that was started again.
  struct Again : Process {
    explicit Again(FakeMachine& of) : machine(of) {}
    Result<Output> run(const Command& command) override {
      if (command.argv[0] == "sinfo" && ++looks == 2) machine.put("/slurm/node01", "drained|muster reimage");
      return machine.run(command);
    }
    FakeMachine& machine;
    int looks = 0;
  };
  FakeMachine machine;
  machine.put("/slurm/node01", "inval|gres/gpu count reported lower than configured (1 < 2)");
  machine.put("/proc/stat", "cpu 1\nbtime 1000\n");
  machine.put("/slurm-started/node01", "1060");
  Again process(machine);
  StepContext context{machine.context().files, process, "node01"};
  context.pause = 0;
  Json want = params("registered", 600);
  want["reason"] = "muster reimage";
  CHECK(find_step_module("slurm_node")->apply(context, want).ok());
  CHECK(process.looks == 2);
}

TEST_CASE("slurm: only a node that takes jobs has been given back", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  for (const char* state : {"idle|none", "mixed|none", "planned|none", "completing|none"}) {
    machine.put("/slurm/node01", state);
    CHECK(one.check(context, shipped("resume"))->holds == Holds::yes);
  }
  for (const char* state : {"down*|Not responding", "idle*|none", "unknown|none", "powered_down|none",
                            "reboot^|weekly : reboot issued", "hibernating|none"}) {
    CAPTURE(state);
    machine.put("/slurm/node01", state);
    CHECK(one.check(context, shipped("resume"))->holds == Holds::no);
  }
  machine.put("/slurm/node01", "maint|none");  // as much a person's decision as a drain
  CHECK(one.check(context, shipped("resume"))->holds == Holds::yes);
  CHECK_FALSE(one.check(context, shipped("resume"))->note.empty());
}

TEST_CASE("slurm: a node that the health check drained is given back after a measurement only", "[steps]") {
  struct Measured : Process {
    explicit Measured(FakeMachine& of) : machine(of) {}
    Result<Output> run(const Command& command) override {
      if (command.argv[0] != "/etc/slurm/muster-health") return machine.run(command);
      measured.push_back(command.argv);
      return Output{result, "", "memory_uncorrected +1"};
    }
    FakeMachine& machine;
    int result = 0;
    std::vector<std::vector<std::string>> measured;
  };
  FakeMachine machine;
  const std::string drained = "drained|muster health: memory_uncorrected +2 (mc1)";
  machine.put("/slurm/node01", drained);
  Measured process(machine);
  StepContext context{machine.context().files, process, "node01"};
  const StepModule& one = *find_step_module("slurm_node");
  const Json step = GENERATE(false, true) ? shipped("resume") : shipped("cluster", "resume");
  SECTION("passed") {
    CHECK(one.check(context, step)->holds == Holds::no);
    REQUIRE(one.apply(context, step).ok());
    CHECK(machine.get("/slurm/node01") == "idle|none");
    CHECK(process.measured.back() == std::vector<std::string>{"/etc/slurm/muster-health", "--measure"});
  }
  SECTION("failed: it stays out, and nothing else fails") {
    process.result = 1;
    const auto looked = one.check(context, step);
    CHECK(looked->holds == Holds::yes);
    CHECK(looked->note.find("memory_uncorrected +1") != std::string::npos);
    REQUIRE(one.apply(context, step).ok());
    CHECK(machine.get("/slurm/node01") == drained);
  }
  SECTION("not while jobs run") {
    machine.put("/slurm/node01", "draining|muster health: gpu_xids +1");
    CHECK(one.check(context, step)->holds == Holds::yes);
    CHECK(process.measured.empty());
  }
  SECTION("no measurement, no return") {
    Json without = step;
    without.erase("measure");
    without.erase("only_reason");
    CHECK(one.check(context, without)->holds == Holds::yes);
    REQUIRE(one.apply(context, without).ok());
    CHECK(machine.get("/slurm/node01") == drained);
  }
}

TEST_CASE("slurm: a node on trial is registered since its boot, drained, and without jobs", "[steps]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& one = *find_step_module("slurm_node");
  const Json step = shipped("cluster", "registered");
  machine.put("/proc/stat", "cpu 1\nbtime 100000\nprocesses 1\n");
  machine.put("/slurm/node01", "drained|muster reimage");
  SECTION("registered") {
    machine.put("/slurm-started/node01", "100050");
    CHECK(one.check(context, step)->holds == Holds::yes);
    CHECK(one.apply(context, step).ok());
    CHECK_FALSE(machine.called("scontrol update"));
  }
  SECTION("only before its boot, or not since slurmctld started") {
    machine.put("/slurm-started/node01", GENERATE("", "90000"));
    CHECK(one.check(context, step)->holds == Holds::no);
    CHECK_FALSE(one.apply(context, step).ok());
  }
  machine.put("/slurm-started/node01", "100050");
  SECTION("silent or down") {
    machine.put("/slurm/node01", GENERATE("drained*|muster reimage", "down|muster reimage", "unknown|none"));
    CHECK(one.check(context, step)->holds == Holds::no);
  }
  SECTION("its drain was ended: it is drained again") {
    machine.put("/slurm/node01", GENERATE("idle|none", "idle|weekly : reboot issued"));
    CHECK(one.check(context, step)->holds == Holds::no);
    Json patient = step;
    patient["deadline_seconds"] = 5;
    CHECK(one.apply(context, patient).ok());
    CHECK(machine.get("/slurm/node01") == "drained|muster reimage");
  }
  SECTION("and jobs began: no more begin, and it is not in order while they run") {
    machine.put("/slurm/node01", "mixed|none");
    machine.put("/slurm-jobs/node01", "41\n");
    CHECK_FALSE(one.apply(context, step).ok());
    CHECK(machine.get("/slurm/node01") == "draining|muster reimage");
  }
  SECTION("drained by a person in the meantime: left to them") {
    machine.put("/slurm/node01", "drained|bad fan|ann|2026-11-29T09:48:25");
    CHECK(one.check(context, step)->holds == Holds::yes);
    CHECK(one.check(context, step)->note.find("ann") != std::string::npos);
  }
}
