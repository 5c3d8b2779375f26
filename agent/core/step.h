// StepModule: one small kind of change to a node. Playbook steps are built from these.
//
// Contract of every module:
//   check(params)  reads only. Returns whether the declared state holds, with a readable diff if it does not.
//   apply(params)  makes it so. Idempotent: applying what holds changes nothing. May be started again after
//                  a crash at any point.
//   verify(params) tests the effect in the running system, not the configuration, and can fail.
// Modules access the machine through StepContext only (no direct system calls on absolute paths: in tests
// Files has a folder as its root, and Process is scripted). A module is one file in agent/steps/ (or
// storage/, checks/) and one line in agent/all_drivers.cc. Order, retries and the journal are handled
// elsewhere (agent/core/runner.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/secrets.h"
#include "base/time.h"
#include "sys/os.h"

namespace muster {

struct StepContext {
  Files& files;
  Process& process;
  std::string node;  // name of this node
  // Sends a progress or log line while the step runs.
  std::function<void(const std::string& text)> say = {};
  // True when the order was cancelled or its deadline passed: long work stops at the next safe point.
  std::function<bool()> cancelled = {};
  // Another module by its name; nullptr if there is none.
  std::function<const struct StepModule*(const std::string& name)> module = {};
  std::string order = {};  // id of the current order; empty: none
  // Programs that came with the order (agent/work/carried_programs.h): name -> path. Others come with images.
  std::map<std::string, std::string> programs = {};
  std::string folder = "/run";  // for data passed between steps of one agent; `{folder}` in options
  bool root = true;             // false: the agent runs as an unprivileged user
  DurationMs pause = kSecond;   // between two looks at what a step waits for
  SecretMask secrets = {};      // those of the current order
};

enum class Holds { yes, no, not_applicable };

struct CheckResult {
  Holds holds = Holds::no;
  std::string diff;       // what would change, as readable text
  std::string note = {};  // remark for any outcome; the report shows it with the step
};

struct StepModule {
  std::string name;
  std::string help;  // one paragraph
  // [{"name","type":"string|int|bool|list|object","required","default","help","secret"}...]; unknown ones are
  // errors. "secret": true where a value may be a secret: the module puts it into no argument of a program.
  // Elsewhere a playbook with "secret:NAME" is refused.
  Json parameters = Json::array();
  std::function<Result<CheckResult>(StepContext&, const Json& params)> check;
  std::function<Status(StepContext&, const Json& params)> apply;   // null: a pure test, `check` decides
  std::function<Status(StepContext&, const Json& params)> verify;  // null: check again
  // For measuring modules (acceptance): returns the measurement, which is attached to the step event. If set,
  // apply is unused, and check, which may be null, only returns whether there is anything to measure.
  std::function<Result<Json>(StepContext&, const Json& params)> measure;
  // Many checks at once where one process can answer for all (packages, services...), in the order of the
  // input. Null: one by one.
  std::function<std::vector<Result<CheckResult>>(StepContext&, const std::vector<Json>& params)> check_many;
  // Its check reads files and the kernel's state, at once: it starts no program that does something, makes no
  // connection and does not wait. Set in agent/all_drivers.cc.
  bool only_reads = false;
};

// {"boot_id", "loader", "reasons"}: the restart made by the current order (agent/steps/system/reboot.cc).
// While it exists and is from a different boot, the order is being repeated after that restart.
inline constexpr const char* kRebootRecord = "/var/lib/muster/reboot.json";

// Defined in agent/all_drivers.cc.
const std::vector<StepModule>& step_modules();
const StepModule* find_step_module(const std::string& name);
// Code::invalid with all missing, unknown and wrongly typed parameters.
Status check_parameters(const StepModule& module, const Json& params);

}  // namespace muster
