// file: writes a regular file with exactly the declared content, mode and owner, or removes it.
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/cloud_init.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

// The files that must exist so that `path` stays as written; empty if nothing would rewrite it at a boot.
std::vector<OwnFile> keeps_written(const Files& files, const std::string& path) {
  const auto kept = path == "/etc/hosts" ? keeps_names(files) : std::nullopt;
  return kept ? std::vector<OwnFile>{*kept} : std::vector<OwnFile>{};
}

struct WantedFile {
  std::string path, content, mode, owner, group, ensure = "present";
  Access access = {};
  bool absent = false;
};
MUSTER_PARAMETERS(WantedFile, required(path, "absolute path"),
                  optional(content, "whole content", kMayBeSecret),
                  optional(mode, "octal mode; default: 0644, or 0600 if the content has a secret"),
                  optional(owner, "user name or UID; default: unchanged (root for a new file)"),
                  optional(group, "group name or GID"), optional(ensure, "present | absent"))

Status complete_file(const StepContext& context, WantedFile& want) {
  want.absent = want.ensure == "absent";
  if (!want.path.starts_with('/')) return fail(Code::invalid, "file: 'path' must be absolute");
  if (want.mode.empty()) want.mode = fmt::format("{:04o}", mode_of_new(context.secrets, want.content));
  TRY(want.access, access_of(context.files, want.mode, want.owner, want.group));
  return Ok{};
}

Result<CheckResult> check_file(StepContext& context, const WantedFile& want) {
  const auto& [mode, uid, gid, lacks] = want.access;
  // The owner may be created by an earlier step of the same order that has not been applied yet.
  if (!lacks.empty()) return differs(lacks);
  TRY(const FileState state, context.files.look(want.path));
  if (want.absent) return state.exists ? differs(want.path + " exists") : holds();
  if (!state.exists) return differs(want.path + " does not exist");
  if (!state.regular) return differs(want.path + " is not a regular file");
  TRY(const FileText have, context.files.open_text(want.path));
  Diff diff;
  if (have.text != want.content)
    diff.add(want.path + ": " + text_difference(context.secrets, state.mode & mode, have.text, want.content));
  if (const auto text = permission_diff(state, mode, uid, gid); !text.empty())
    diff.add(want.path + ": " + text);
  for (const auto& beside : keeps_written(context.files, want.path))
    if (differs_from(context.files, beside))
      diff.add(want.path + " would be rewritten at the next boot: " + beside.path +
               ", which prevents that, is missing or differs");
  return diff.result();
}

Status apply_file(StepContext& context, const WantedFile& want) {
  const auto& [mode, uid, gid, lacks] = want.access;
  if (!lacks.empty()) return fail(Code::not_found, lacks);
  TRY(const FileState state, context.files.look(want.path));
  if (state.directory) return fail(Code::conflict, want.path + " is a directory");
  if (want.absent) return context.files.remove(want.path);
  // These are written first: once the file itself is correct, nothing overwrites it.
  for (const auto& beside : keeps_written(context.files, want.path)) TRY_(put(context.files, beside));
  const auto have = context.files.open_text(want.path);
  if (!have.ok() || have->linked || have->text != want.content)
    return context.files.write(want.path, want.content, mode, {uid, gid});
  return context.files.set_permissions(want.path, mode, {uid, gid});
}

}  // namespace

StepModule file_module() {
  return step_module<WantedFile>({
      .name = "file",
      .help = "Writes a regular file with exactly this content, mode and owner. Diffs show no content of a "
              "file that some users may not read, or that a secret is written to. For /etc/hosts, cloud-init "
              "(if present) is configured to write neither it nor the host name.",
      .check = check_file,
      .apply = apply_file,
      .complete = complete_file,
  });
}

}  // namespace muster::steps
