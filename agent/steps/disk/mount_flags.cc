// mount_flags: sets mount flags on the file system mounted at `target`, however it was mounted.
//
// For file systems that a service mounts and whose configuration has no mount flags. Remounts in place: users
// of the mount are not disturbed.
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedMountFlags {
  std::string target, flags;
};

Result<WantedMountFlags> wanted_mount_flags(const Json& params) {
  WantedMountFlags out{text_of(params, "target"), text_of(params, "flags", kSafeFlags)};
  if (out.target.size() < 2 || out.target[0] != '/' || out.target.back() == '/')
    return fail(Code::invalid, "mount_flags: 'target' must be an absolute path");
  for (const auto& flag : split(out.flags, ','))
    if (flag != "nosuid" && flag != "nodev" && flag != "noexec")
      return fail(Code::invalid, "mount_flags: '" + flag + "' is not one of nosuid, nodev, noexec");
  return out;
}

Result<CheckResult> check_mount_flags(StepContext& context, const Json& params) {
  TRY(const WantedMountFlags want, wanted_mount_flags(params));
  const std::string lacking = lacking_flags(context.files, want.target, want.flags);
  return lacking.empty() ? holds() : differs(lacking);
}

Status apply_mount_flags(StepContext& context, const Json& params) {
  TRY(const WantedMountFlags want, wanted_mount_flags(params));
  if (!find_mount(context.files, want.target)) return fail(Code::not_found, want.target + " is not mounted");
  return set_flags(context, want.target, want.flags);
}

}  // namespace

StepModule mount_flags_module() {
  StepModule m;
  m.name = "mount_flags";
  m.help =
      "Sets mount flags on the file system mounted at `target`, however it was mounted. Nothing is mounted "
      "or unmounted.";
  m.parameters = Json::array(
      {parameter("target", "string", true, "mount point"),
       parameter("flags", "string", false, "any of nosuid, nodev and noexec, comma-separated", kSafeFlags)});
  m.check = check_mount_flags;
  m.apply = apply_mount_flags;
  return m;
}

}  // namespace muster::steps
