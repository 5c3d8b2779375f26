// reboot: restarts the node once for all earlier steps that requested a restart.
//
// A step whose change needs a reboot leaves a record in /run/muster/reboot (own_file.h, request_reboot). This
// step restarts the machine if there is such a record, or Debian's own /run/reboot-required. Afterwards the
// agent receives the order again and starts from its first step, so that everything before the reboot is
// checked and verified again (step_runner.h, `reverify`). If the same request exists after the reboot, or if
// firmware and boot loader were skipped, the step fails, so that the node does not restart in a loop. A
// system that is not committed yet (slot.cc) boots again and remains uncommitted.
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/core/restart.h"
#include "agent/image/efi_variables.h"
#include "agent/image/slot_boot.h"
#include "agent/steps/files/own_file.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kNotes = "/run/muster/reboot";
// {"boot_id", "loader", "reasons"} of the restart made by the current order; agent/work/work_runner.cc
// removes it when the order ends.
constexpr const char* kRecord = kRebootRecord;

std::string boot_id(const Files& files) { return files.read_line("/proc/sys/kernel/random/boot_id"); }

// Set by systemd-boot at each start, and kept by a kernel that was started without it; "": another loader.
std::string loader_start(const Files& files) { return efi::loader_text(files, "LoaderTimeInitUSec"); }

struct WantedReboot {
  bool packages = true;
};
MUSTER_PARAMETERS(WantedReboot, optional(packages, "also restart if packages requested it"))

// Step -> reason.
Json reasons(const Files& files, const WantedReboot& want) {
  Json out = Json::object();
  for (const auto& who : files.list(kNotes)) out[who] = files.read_line(std::string(kNotes) + "/" + who);
  if (want.packages && files.exists("/run/reboot-required"))
    out["packages"] = join(split_lines(files.read("/run/reboot-required.pkgs").value_or("")), " ");
  return out;
}

std::string text(const Json& reasons) {
  std::string out;
  for (const auto& [who, why] : reasons.items())
    out += (out.empty() ? "" : "; ") + who + ": " + why.get<std::string>();
  return out;
}

Result<CheckResult> check_reboot(StepContext& context, const WantedReboot& want) {
  if (!is_booted(context.files)) return CheckResult{Holds::not_applicable, "nothing to restart in an image"};
  const auto record = parse_json(context.files.read(kRecord).value_or("{}"));
  if (record.ok() && record->is_object() && record->value("boot_id", "") != boot_id(context.files) &&
      !record->value("loader", "").empty() && record->value("loader", "") == loader_start(context.files))
    return fail(Code::failed,
                "the restart skipped firmware and boot loader (kexec?): what needs them is not in effect");
  const Json why = reasons(context.files, want);
  return why.empty() ? holds() : differs("restart requested by " + text(why));
}

Status apply_reboot(StepContext& context, const WantedReboot& want) {
  const Json why = reasons(context.files, want);
  if (why.empty()) return Ok{};
  const std::string now = boot_id(context.files);
  const auto record = parse_json(context.files.read(kRecord).value_or("{}"));
  if (record.ok() && record->is_object() && record->value("reasons", Json()) == why &&
      record->value("boot_id", "") != now)
    return fail(Code::failed,
                "the node was already restarted for the same reason, but the reason remains: " + text(why));
  TRY_(context.files.write(
      kRecord,
      dump_json(Json{{"boot_id", now}, {"loader", loader_start(context.files)}, {"reasons", why}}) + "\n"));
  TRY_(keep_trial(context.files));
  say(context, "restarting for " + text(why));
  TRY_(run_ok(context.process, systemctl_now("reboot")));
  // The restart ends this process. Returning before that would start the next step.
  for (int i = 0; i < 300 && !is_cancelled(context); ++i) {
    if (reasons(context.files, want).empty()) return Ok{};  // restarted, but this process survived
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return fail(Code::failed, "five minutes after `systemctl reboot` this system is still running");
}

}  // namespace

StepModule reboot_module() {
  return step_module<WantedReboot>({
      .name = "reboot",
      .help = "Restarts the node once if any step before it requested a restart, or if packages did "
              "(/run/reboot-required). The order continues after the restart, and all of its steps are "
              "checked and verified again. Put this step after the steps that may request a restart.",
      .check = check_reboot,
      .apply = apply_reboot,
  });
}

}  // namespace muster::steps
