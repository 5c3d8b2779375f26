#include "agent/work/own_functions.h"

#include <fmt/format.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "agent/boot/kexec.h"
#include "agent/boot/ram_init.h"
#include "agent/core/identity.h"
#include "agent/core/restart.h"
#include "agent/image/image_job.h"
#include "agent/image/slot_boot.h"
#include "agent/image/slot_child.h"
#include "agent/work/carried_programs.h"
#include "base/record.h"
#include "sys/log.h"

namespace muster {
namespace {

struct FileSource {
  std::string base_url = {};
};
MUSTER_RECORD(FileSource, lenient, base_url)

Status leave_ram(int how) {
  sync();
  if (reboot(how) != 0) return fail(Code::failed, "reboot(2) failed");
  return Ok{};
}

// Seconds after which an ordered restart has failed if this system is still running.
struct Leave {
  int seconds = 300;
  CancelCheck withdrawn = {};
};
// The controller concludes after three minutes that a node did not restart (ExecutorTiming::leave_shows), and
// continues with the system that responds: the next boot must by then start that system again.
constexpr int kSlotLeaveSeconds = 150;

// Gives the installed system this agent's identity, because this boot's join revoked all earlier identities.
Status start_disk(const Files& files, const std::string& node, const Json& params) {
  const std::string digest = params.is_object() ? params.value("digest", "") : "";
  const Status handed = hand_over_identity(files, kRamIdentity, node, digest);
  if (!handed.ok())
    log::warning("the system on the disk keeps its previous identity", {{"why", handed.error().message}});
  // Without a BMC, only the firmware's own list decides what boots next.
  if (ram_options(files.read_line("/proc/cmdline"), {}).until_joined) {
    const Status first = start_own_disk_first(files, node, digest);
    if (!first.ok())
      log::warning("the firmware's boot order decides what boots", {{"why", first.error().message}});
  }
  return leave_ram(RB_AUTOBOOT);
}

}  // namespace

WorkFunctions ram_functions(const Files& files, Process& process, const std::string& node) {
  WorkFunctions out;
  out.image = [&files, &process](const wire::WorkOrder& order, const WorkRunner::Emit& emit,
                                 const CancelCheck& cancelled) {
    return run_image_job(files, process, order, emit, cancelled);
  };
  out.boot_disk = [&files, node](const Json& params, const CancelCheck&) {
    return start_disk(files, node, params);
  };
  out.reboot = [](const Json&, const CancelCheck&) { return leave_ram(RB_AUTOBOOT); };
  out.power_off = [](const Json&, const CancelCheck&) { return leave_ram(RB_POWER_OFF); };
  return out;
}

WorkFunctions installed_functions(const Files& files, Process& process, std::function<void()> a_second) {
  const auto systemctl = [&process, a_second](const char* verb, const CancelCheck& ended,
                                              const Leave& leave) -> Status {
    // From systemd 257 on also root is refused while a process holds an inhibitor lock (`block`), as apt does
    // while it works. Nothing was done then, which says nothing about what was to be started.
    const auto begun = run_ok(process, systemctl_now(verb));
    if (!begun.ok())
      return fail(begun.error().code == Code::failed ? Code::unavailable : begun.error().code,
                  begun.error().message);
    // systemd ends this process during the restart.
    for (int i = 0; i < leave.seconds; ++i) {
      if (ended()) return Ok{};  // this process is being stopped: the restart is under way
      if (leave.withdrawn && leave.withdrawn()) return fail(Code::cancelled, "withdrawn by the controller");
      a_second();
    }
    return fail(Code::failed,
                fmt::format("{} s after `systemctl {}`, this system is still running", leave.seconds, verb));
  };
  WorkFunctions out;
  out.a_second = a_second;
  out.reboot = [&files, systemctl](const Json&, const CancelCheck& ended) {
    if (slot_boot_armed(files)) disarm_slot_boot(files);  // an ordered restart must be a normal boot
    return systemctl("reboot", ended, {});
  };
  out.power_off = [systemctl](const Json&, const CancelCheck& ended) {
    return systemctl("poweroff", ended, {});
  };
  out.kexec = [&files, &process](const wire::WorkOrder& order, const CancelCheck& cancelled) -> Result<Json> {
    TRY(const wire::KexecJob job, wire::kexec_job_from_json(order.params));
    return prepare_kexec({files, process, fetch_from_boot_server, cancelled}, job);
  };
  out.write_slot = [&files, &process](const wire::WorkOrder& order, const WorkRunner::Emit& emit,
                                      const CancelCheck& cancelled) {
    return run_write_slot(files, process, order, emit, cancelled);
  };
  out.boot_slot = [&files](const Json& params) -> Result<Json> {
    TRY(const wire::BootSlotJob job, wire::boot_slot_job_from_json(params));
    return arm_slot_boot(files, job);
  };
  out.programs = [&files](const Json& params, const std::vector<CarriedProgram>& programs,
                          const CancelCheck& cancelled) -> Result<std::map<std::string, std::string>> {
    TRY(const FileSource source, read_record<FileSource>(params, "order"));
    return fetched_programs(files, [&source] { return http_source(source.base_url); })
        ->ready(programs, cancelled);
  };
  // The restart may still come after the wait; it then boots the default slot.
  out.leave_slot = [&files, systemctl](const CancelCheck& ended, const CancelCheck& withdrawn) -> Status {
    const Status left = systemctl("reboot", ended, {kSlotLeaveSeconds, withdrawn});
    if (!left.ok()) disarm_slot_boot(files);
    return left;
  };
  out.drop_slot = [&files]() -> Status {
    disarm_slot_boot(files);
    return Ok{};
  };
  out.leave_ready = [&files, &process] { return leave_by_kexec(files, process); };
  out.drop_ready = [&files, &process]() -> Status {
    forget_kexec(files, process);
    return Ok{};
  };
  return out;
}

}  // namespace muster
