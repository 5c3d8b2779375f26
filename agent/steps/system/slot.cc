// slot: the running root slot is the one that is started from now on. Last of a node that was re-imaged in
// place: until it holds, the node takes itself back (muster-trial.timer of the image).
#include <fmt/format.h>

#include "agent/image/commit_slot.h"
#include "agent/image/image_job.h"
#include "agent/steps/step_modules.h"
#include "base/kernel_line.h"

namespace muster::steps {
namespace {

constexpr const char* kTimer = "muster-trial.timer";
// The timer's own condition, and the generator's (controller/image/customize.cc): systemd would start a timer
// that was only stopped again with the next unit that wants it.
constexpr const char* kCommitted = "/run/muster-committed";

SlotCommit commit_of(const StepContext& context, const Json& params) {
  return {text_of(params, "slot"), text_of(params, "digest"), work_of(context.order)};
}

// "active", "inactive", ...; "inactive" too where there is no such unit.
Result<std::string> timer_state(StepContext& context) {
  TRY(const std::string out,
      run_tool(context, {"systemctl", "show", "--value", "-p", "ActiveState", kTimer}));
  return out.substr(0, out.find_last_not_of(" \n") + 1);
}

bool is_trial(const StepContext& context) {
  return !kernel_argument(context.files.read_line("/proc/cmdline"), "muster.trial").empty();
}

// This very boot is one on trial, and nothing keeps its timer from ending it.
bool may_be_taken_back(const StepContext& context) {
  return is_trial(context) && !context.files.exists(kCommitted);
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  TRY(const std::string left, uncommitted(context.files, commit_of(context, params)));
  if (!left.empty()) return differs(left);
  return may_be_taken_back(context) ? differs("the trial goes on") : holds();
}

// A running one is fed by systemd, so that it stops nothing but a kexec: no reason to take a system back. One
// that cannot be stopped would be fed no more, and reset the node.
void stop_watchdog(StepContext& context) {
  if (kernel_argument(context.files.read_line("/proc/cmdline"), "systemd.watchdog_sec").empty()) return;
  const std::string dogs = "/sys/class/watchdog";
  for (const auto& dog : context.files.list(dogs))
    if (context.files.read_line(dogs + "/" + dog + "/nowayout", "0") == "1")
      return say(context, "the trial's hardware watchdog cannot be stopped: systemd goes on feeding it");
  const auto off =
      run_tool(context, {"busctl", "set-property", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                         "org.freedesktop.systemd1.Manager", "RuntimeWatchdogUSec", "t", "0"});
  if (!off.ok()) say(context, "the trial's hardware watchdog goes on: " + off.error().message);
}

// systemd's words for a timer that does not run.
bool has_ended(const std::string& active) { return active == "inactive" || active == "failed"; }

// The units of the trial go: emergency mode no longer restarts, and no start of a unit wants the timer.
Status end_trial(StepContext& context, const std::string& slot) {
  TRY_(context.files.write(kCommitted, slot + "\n"));
  TRY(const std::string state, timer_state(context));
  if (!has_ended(state)) TRY_(run_tool(context, {"systemctl", "stop", kTimer}));
  if (is_trial(context))
    if (const auto read = run_tool(context, {"systemctl", "daemon-reload"}); !read.ok())
      say(context, "the trial's units stay until the next restart: " + read.error().message);
  return Ok{};
}

// The timer runs until the slot stands: one that ends the trial between the two restarts into the slot that
// stands by then.
Status apply(StepContext& context, const Json& params) {
  const SlotCommit commit = commit_of(context, params);
  TRY(const std::string left, uncommitted(context.files, commit));
  if (!left.empty()) {
    const Status committed = commit_slot({context.files}, commit);
    if (!committed.ok()) {
      const auto now = uncommitted(context.files, commit);
      if (!now.ok() || !now->empty()) return committed;
      say(context, "the slot stands, though: " + committed.error().message);
    }
  }
  TRY_(end_trial(context, commit.slot));
  stop_watchdog(context);
  return Ok{};
}

Status verify(StepContext& context, const Json& params) {
  TRY(const std::string left, uncommitted(context.files, commit_of(context, params)));
  if (!left.empty()) return fail(Code::failed, "not committed: " + left);
  TRY(const std::string state, timer_state(context));
  if (!has_ended(state) || may_be_taken_back(context))
    return fail(Code::failed, fmt::format("{} is {}: it would take the system back", kTimer, state));
  return Ok{};
}

}  // namespace

StepModule slot_module() {
  StepModule m;
  m.name = "slot";
  m.help =
      "The root slot that runs is started from now on. An error where another slot or another image runs.";
  m.parameters = Json::array({parameter("slot", "string", true, "a or b: the slot that runs"),
                              parameter("digest", "string", true, "of the image in it")});
  m.check = check;
  m.apply = apply;
  m.verify = verify;
  return m;
}

}  // namespace muster::steps
