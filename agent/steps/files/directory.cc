// directory: creates a directory and sets its mode and owner.
#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedDirectory {
  std::string path, mode = "0755", owner, group;
  Access access = {};
};
MUSTER_PARAMETERS(WantedDirectory, required(path, "absolute path"), optional(mode, "octal mode"),
                  optional(owner, "user name or UID"), optional(group, "group name or GID"))

Status complete_directory(const StepContext& context, WantedDirectory& want) {
  if (!want.path.starts_with('/')) return fail(Code::invalid, "directory: 'path' must be absolute");
  TRY(want.access, access_of(context.files, want.mode, want.owner, want.group));
  return Ok{};
}

Result<CheckResult> check_directory(StepContext& context, const WantedDirectory& want) {
  if (!want.access.lacks.empty()) return differs(want.access.lacks);
  TRY(const FileState state, context.files.look(want.path));
  if (!state.exists) return differs(want.path + " does not exist");
  if (!state.directory) return fail(Code::conflict, want.path + " exists but is not a directory");
  Diff diff;
  const auto& [mode, uid, gid, lacks] = want.access;
  if (const auto text = permission_diff(state, mode, uid, gid); !text.empty())
    diff.add(want.path + ": " + text);
  return diff.result();
}

Status apply_directory(StepContext& context, const WantedDirectory& want) {
  const auto& [mode, uid, gid, lacks] = want.access;
  if (!lacks.empty()) return fail(Code::not_found, lacks);
  TRY_(context.files.make_directories(want.path, mode, {uid, gid}));
  return context.files.set_permissions(want.path, mode, {uid, gid});
}

}  // namespace

StepModule directory_module() {
  return step_module<WantedDirectory>({
      .name = "directory",
      .help = "Creates a directory and sets its mode and owner. Its content is not changed.",
      .check = check_directory,
      .apply = apply_directory,
      .complete = complete_directory,
  });
}

}  // namespace muster::steps
