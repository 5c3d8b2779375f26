#include "agent/own_functions.h"

#include <sys/reboot.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "agent/hand_over.h"
#include "agent/identity.h"
#include "agent/image/image_job.h"
#include "agent/image/slot_child.h"
#include "agent/kexec.h"
#include "agent/ram_init.h"
#include "agent/image/slot_boot.h"
#include "base/log.h"

namespace muster {
namespace {

Status leave_ram(int how) {
  sync();
  if (reboot(how) != 0) return fail(Code::failed, "reboot(2) refused");
  return Ok{};
}

// The next boot's agent must be this one: the join of this boot ended all that were before.
Status start_disk(const Files& files, const std::string& node, const Json& params) {
  const std::string digest = params.is_object() ? params.value("digest", "") : "";
  const Status handed = hand_over_identity(files, kRamIdentity, node, digest);
  if (!handed.ok())
    log::warning("the system on the disk keeps the identity it has", {{"why", handed.error().message}});
  // Nobody else can tell this machine what to boot.
  if (ram_options(files.read_line("/proc/cmdline"), {}).until_joined) {
    const Status first = start_own_disk_first(files, node, digest);
    if (!first.ok())
      log::warning("the firmware's order decides what boots", {{"why", first.error().message}});
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

WorkFunctions installed_functions(const Files& files, Process& process) {
  const auto systemctl = [&process](const char* verb, const CancelCheck& ended) -> Status {
    Command command;
    command.argv = {"systemctl", "--no-block", verb};
    TRY(auto out, run_ok(process, command));
    (void)out;
    // The manager ends this process; a failure is what comes back from here while nobody ends it.
    for (int i = 0; i < 300; ++i) {
      if (ended()) return Ok{};  // told to end: the restart is under way
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return fail(Code::failed,
                std::string("five minutes after `systemctl ") + verb + "` this system still runs");
  };
  WorkFunctions out;
  out.reboot = [&files, systemctl](const Json&, const CancelCheck& ended) {
    if (slot_boot_armed(files)) disarm_slot_boot(files);  // whoever orders a restart means a usual one
    return systemctl("reboot", ended);
  };
  out.power_off = [systemctl](const Json&, const CancelCheck& ended) { return systemctl("poweroff", ended); };
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
  out.leave_slot = [&files, systemctl](const CancelCheck& ended) -> Status {
    const Status left = systemctl("reboot", ended);
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
