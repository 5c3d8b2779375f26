// mount_flags: sets mount flags on the file system mounted at `target`, however it was mounted.
//
// For file systems that a service mounts and whose configuration has no mount flags. Remounts in place: users
// of the mount are not disturbed.
#include "agent/core/parameters.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedMountFlags {
  std::string target, flags = kSafeFlags;
};
MUSTER_PARAMETERS(WantedMountFlags, required(target, "mount point"),
                  optional(flags, "any of nosuid, nodev and noexec, comma-separated"))

Status complete_mount_flags(const StepContext&, WantedMountFlags& want) {
  if (want.target.size() < 2 || want.target[0] != '/' || want.target.back() == '/')
    return fail(Code::invalid, "mount_flags: 'target' must be an absolute path");
  for (const auto& flag : split(want.flags, ','))
    if (flag != "nosuid" && flag != "nodev" && flag != "noexec")
      return fail(Code::invalid, "mount_flags: '" + flag + "' is not one of nosuid, nodev, noexec");
  return Ok{};
}

Result<CheckResult> check_mount_flags(StepContext& context, const WantedMountFlags& want) {
  const std::string lacking = lacking_flags(context.files, want.target, want.flags);
  return lacking.empty() ? holds() : differs(lacking);
}

Status apply_mount_flags(StepContext& context, const WantedMountFlags& want) {
  if (!find_mount(context.files, want.target)) return fail(Code::not_found, want.target + " is not mounted");
  return set_flags(context, want.target, want.flags);
}

}  // namespace

StepModule mount_flags_module() {
  return step_module<WantedMountFlags>({
      .name = "mount_flags",
      .help = "Sets mount flags on the file system mounted at `target`, however it was mounted. Nothing is "
              "mounted or unmounted.",
      .check = check_mount_flags,
      .apply = apply_mount_flags,
      .complete = complete_mount_flags,
  });
}

}  // namespace muster::steps
