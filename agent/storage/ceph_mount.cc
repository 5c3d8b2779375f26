// CephFS, mounted by the kernel.
#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include "agent/steps/accounts.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr unsigned kOpen = 01777;  // mode of the file system's top folder: every user may create files there

struct CephMount {
  std::string name, fsid, target;
  int64_t deadline_seconds = 120;
  std::string source, unit;
};
MUSTER_PARAMETERS(CephMount, required(name, "name of the file system"), required(fsid, "fsid of the cluster"),
                  required(target, "mount point"), optional(deadline_seconds, kCephDeadline))

Status complete_ceph_mount(const StepContext&, CephMount& want) {
  want.source = fmt::format("muster@{}.{}=/", want.fsid, want.name);
  want.unit = "muster-ceph-" + want.name;
  return Ok{};
}

std::string mount_problem(const Files& files, const CephMount& want) {
  const auto entry = find_mount(files, want.target);
  if (!entry) return want.target + " is not mounted";
  if (entry->fs == "ceph" && entry->source == want.source) return "";
  return fmt::format("{} is mounted from {} ({}), not from {} (ceph)", want.target, entry->source, entry->fs,
                     want.source);
}

// A service, because systemd does not retry a failed mount unit, and a node may be up before the monitors
// are. It names no monitor, so that it need not change while jobs run; mount.ceph finds them in ceph.conf.
// The key is in a file, never an argument.
std::vector<Part> mount_parts(const CephMount& want) {
  const std::string unit = fmt::format(
      "{0}[Unit]\nDescription=CephFS at {2}\nWants=network-online.target\n"
      "After=network-online.target ceph.target\nStartLimitIntervalSec=0\n\n"
      "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/mount -t ceph {1} {2} -o "
      "secretfile=/etc/ceph/muster.secret,ms_mode=prefer-crc,noatime,nosuid,nodev\n"
      "ExecStop=/usr/bin/umount {2}\nTimeoutStopSec=60\nRestart=on-failure\nRestartSec=5\n\n"
      "[Install]\nWantedBy=multi-user.target\n",
      kHead, want.source, want.target);
  return {file_part("/etc/systemd/system/" + want.unit + ".service", unit), service_part(want.unit, {})};
}

Result<CheckResult> check_mount(StepContext& context, const CephMount& want) {
  TRY(const CheckResult parts, check_parts(context, mount_parts(want)));
  if (parts.holds == Holds::no) return parts;
  if (const std::string problem = mount_problem(context.files, want); !problem.empty())
    return differs(problem);
  if (const std::string flags = lacking_flags(context.files, want.target, kSafeFlags); !flags.empty())
    return differs(flags);
  return look(context.files, want.target).mode == kOpen ? holds() : differs(want.target + ": mode");
}

Status apply_mount(StepContext& context, const CephMount& want) {
  const std::string problem = mount_problem(context.files, want);
  if (!problem.empty() && find_mount(context.files, want.target)) return fail(Code::conflict, problem);
  if (!look(context.files, want.target).exists) TRY_(context.files.make_directories(want.target, 0));
  TRY_(apply_parts(context, mount_parts(want)));
  TRY_(wait_for_storage(context, want.deadline_seconds,
                        [&]() -> Result<std::string> { return mount_problem(context.files, want); }));
  TRY_(set_flags(context, want.target, kSafeFlags));
  return context.files.set_permissions(want.target, kOpen);
}

}  // namespace

StepModule ceph_mount_module() {
  return step_module<CephMount>({
      .name = "ceph_mount",
      .help =
          "Mounts CephFS with the kernel client, now and at every boot, and checks the mount in the kernel's "
          "mount table. Requires Ceph 17 or later.",
      .check = check_mount,
      .apply = apply_mount,
      .complete = complete_ceph_mount,
  });
}

}  // namespace muster::steps
