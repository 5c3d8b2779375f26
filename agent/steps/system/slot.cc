// slot: makes the running root slot the one that boots by default. This is the last step for a node that was
// re-imaged in place: until it holds, the node rolls back automatically (muster-trial.timer of the image).
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/image/commit_slot.h"
#include "agent/image/image_job.h"
#include "agent/image/own_slots.h"
#include "agent/steps/step_modules.h"
#include "base/kernel_line.h"

namespace muster::steps {
namespace {

// This timer does not start if the file kTrialEnded exists. Stopping it is not enough: the next unit that has
// it in Wants= would start it again.
constexpr const char* kTimer = "muster-trial.timer";

struct WantedSlot {
  std::string slot, digest;
};
MUSTER_PARAMETERS(WantedSlot, required(slot, "the running slot, a or b"),
                  required(digest, "digest of the image in the slot"))

SlotCommit commit_of(const StepContext& context, const WantedSlot& want) {
  return {want.slot, want.digest, work_of(context.order)};
}

// "active", "inactive", ...; also "inactive" if the unit does not exist.
Result<std::string> timer_state(StepContext& context) {
  TRY(const std::string out,
      run_tool(context, {"systemctl", "show", "--value", "-p", "ActiveState", kTimer}));
  return out.substr(0, out.find_last_not_of(" \n") + 1);
}

Result<CheckResult> check_slot(StepContext& context, const WantedSlot& want) {
  TRY(const std::string left, uncommitted(context.files, commit_of(context, want)));
  if (!left.empty()) return differs(left);
  return on_trial(context.files) ? differs("the trial is still running") : holds();
}

// Stops the trial's hardware watchdog. If that fails, the commit still succeeds: systemd keeps feeding the
// watchdog, which only interferes with a kexec. A watchdog with `nowayout` stays on, because it would reset
// the node as soon as systemd stopped feeding it.
void stop_watchdog(StepContext& context) {
  if (kernel_argument(context.files.read_line("/proc/cmdline"), "systemd.watchdog_sec").empty()) return;
  const std::string dogs = "/sys/class/watchdog";
  for (const auto& dog : context.files.list(dogs))
    if (context.files.read_line(dogs + "/" + dog + "/nowayout", "0") == "1")
      return say(context, "the trial's hardware watchdog cannot be stopped: systemd keeps feeding it");
  const auto off =
      run_tool(context, {"busctl", "set-property", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                         "org.freedesktop.systemd1.Manager", "RuntimeWatchdogUSec", "t", "0"});
  if (!off.ok()) say(context, "the trial's hardware watchdog stays on: " + off.error().message);
}

bool has_ended(const std::string& active) { return active == "inactive" || active == "failed"; }

// Ends the trial. The reload removes its units: emergency mode no longer restarts the machine, and no unit
// starts the timer again.
Status end_trial(StepContext& context, const std::string& slot) {
  TRY_(context.files.write(kTrialEnded, slot + "\n"));
  TRY(const std::string state, timer_state(context));
  if (!has_ended(state)) TRY_(run_tool(context, {"systemctl", "stop", kTimer}));
  if (!trial_seconds(context.files).empty())
    if (const auto read = run_tool(context, {"systemctl", "daemon-reload"}); !read.ok())
      say(context, "the trial's units stay until the next restart: " + read.error().message);
  return Ok{};
}

// The timer is stopped only after the commit: should it fire in between, it restarts the node into the slot
// that has just been committed.
Status apply_slot(StepContext& context, const WantedSlot& want) {
  const SlotCommit commit = commit_of(context, want);
  TRY(const std::string left, uncommitted(context.files, commit));
  if (!left.empty()) {
    const Status committed = commit_slot({context.files}, commit);
    if (!committed.ok()) {
      const auto now = uncommitted(context.files, commit);
      if (!now.ok() || !now->empty()) return committed;
      say(context, "the slot is committed despite an error: " + committed.error().message);
    }
  }
  TRY_(end_trial(context, commit.slot));
  stop_watchdog(context);
  return Ok{};
}

Status verify_slot(StepContext& context, const WantedSlot& want) {
  TRY(const std::string left, uncommitted(context.files, commit_of(context, want)));
  if (!left.empty()) return fail(Code::failed, "not committed: " + left);
  TRY(const std::string state, timer_state(context));
  if (!has_ended(state) || on_trial(context.files))
    return fail(Code::failed, fmt::format("{} is {}: it would roll the system back", kTimer, state));
  return Ok{};
}

}  // namespace

StepModule slot_module() {
  return step_module<WantedSlot>({
      .name = "slot",
      .help = "Makes the running root slot the default one. Fails if a different slot or image is running.",
      .check = check_slot,
      .apply = apply_slot,
      .verify = verify_slot,
  });
}

}  // namespace muster::steps
