// directory: creates a directory and sets its mode and owner.
#include "agent/steps/accounts.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedDirectory {
  std::string path;
  unsigned mode = 0755;
  int64_t uid = -1, gid = -1;
};

Result<WantedDirectory> wanted_directory(const StepContext& context, const Json& params) {
  WantedDirectory out;
  out.path = text_of(params, "path");
  if (out.path.empty() || out.path[0] != '/')
    return fail(Code::invalid, "directory: 'path' must be absolute");
  TRY(out.mode, parse_mode(text_of(params, "mode", "0755")));
  TRY(out.uid, uid_of(context.files, text_of(params, "owner")));
  TRY(out.gid, gid_of(context.files, text_of(params, "group")));
  return out;
}

Result<CheckResult> check_directory(StepContext& context, const Json& params) {
  auto read = wanted_directory(context, params);
  if (!read.ok() && read.error().code == Code::not_found) return differs(read.error().message);
  TRY(const WantedDirectory want, std::move(read));
  const FileState state = look(context.files, want.path);
  if (!state.exists) return differs(want.path + " does not exist");
  if (!state.directory) return fail(Code::conflict, want.path + " exists but is not a directory");
  Diff diff;
  if (const auto text = permission_diff(state, want.mode, want.uid, want.gid); !text.empty())
    diff.add(want.path + ": " + text);
  return diff.result();
}

Status apply_directory(StepContext& context, const Json& params) {
  TRY(const WantedDirectory want, wanted_directory(context, params));
  if (!look(context.files, want.path).exists) TRY_(context.files.make_directories(want.path, want.mode));
  return set_permissions(context.files, want.path, want.mode, want.uid, want.gid);
}

}  // namespace

StepModule directory_module() {
  StepModule m;
  m.name = "directory";
  m.help = "Creates a directory and sets its mode and owner. Its content is not changed.";
  m.parameters = Json::array({parameter("path", "string", true, "absolute path"),
                              parameter("mode", "string", false, "octal mode", "0755"),
                              parameter("owner", "string", false, "user name or UID"),
                              parameter("group", "string", false, "group name or GID")});
  m.check = check_directory;
  m.apply = apply_directory;
  return m;
}

}  // namespace muster::steps
