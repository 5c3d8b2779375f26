// file: writes a regular file with exactly the declared content, mode and owner, or removes it.
#include <fmt/format.h>

#include "agent/steps/accounts.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/files/rewritten.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedFile {
  std::string path, content;
  unsigned mode = 0644;
  int64_t uid = -1, gid = -1;
  bool absent = false;
};

Result<WantedFile> wanted_file(const StepContext& context, const Json& params) {
  WantedFile out;
  out.path = text_of(params, "path");
  if (out.path.empty() || out.path[0] != '/') return fail(Code::invalid, "file: 'path' must be absolute");
  out.content = text_of(params, "content");
  out.absent = text_of(params, "ensure", "present") == "absent";
  TRY(out.mode, parse_mode(text_of(params, "mode", "0644")));
  TRY(out.uid, uid_of(context.files, text_of(params, "owner")));
  TRY(out.gid, gid_of(context.files, text_of(params, "group")));
  return out;
}

// Describes the first line that differs, without the content of files that only their owner may read.
std::string content_diff(const WantedFile& want, const std::string& have) {
  if ((want.mode & 0077) == 0) return "content differs (not shown)";
  const auto before = lines_of(have), after = lines_of(want.content);
  size_t i = 0;
  while (i < before.size() && i < after.size() && before[i] == after[i]) ++i;
  return fmt::format("line {}: '{}' -> '{}'", i + 1, i < before.size() ? before[i] : "",
                     i < after.size() ? after[i] : "");
}

Result<CheckResult> check_file(StepContext& context, const Json& params) {
  // The owner may be created by an earlier step of the same order that has not been applied yet.
  auto read = wanted_file(context, params);
  if (!read.ok() && read.error().code == Code::not_found) return differs(read.error().message);
  TRY(const WantedFile want, std::move(read));
  const FileState state = look(context.files, want.path);
  if (want.absent) return state.exists ? differs(want.path + " exists") : holds();
  if (!state.exists) return differs(want.path + " does not exist");
  if (!state.regular) return differs(want.path + " is not a regular file");
  TRY(const std::string have, context.files.read(want.path));
  Diff diff;
  if (have != want.content) diff.add(want.path + ": " + content_diff(want, have));
  if (const auto text = permission_diff(state, want.mode, want.uid, want.gid); !text.empty())
    diff.add(want.path + ": " + text);
  for (const auto& beside : keeps_written(context.files, want.path))
    if (differs_from(context.files, beside))
      diff.add(want.path + " would be rewritten at the next boot: " + beside.path +
               ", which prevents that, is missing or differs");
  return diff.result();
}

Status apply_file(StepContext& context, const Json& params) {
  TRY(const WantedFile want, wanted_file(context, params));
  const FileState state = look(context.files, want.path);
  if (state.directory) return fail(Code::conflict, want.path + " is a directory");
  if (want.absent) return context.files.remove(want.path);
  // These are written first: once the file itself is correct, nothing overwrites it.
  for (const auto& beside : keeps_written(context.files, want.path)) TRY_(put(context.files, beside));
  const auto have =
      state.regular ? context.files.read(want.path) : Result<std::string>(fail(Code::not_found, ""));
  if (!have.ok() || *have != want.content) TRY_(context.files.write(want.path, want.content, want.mode));
  return set_permissions(context.files, want.path, want.mode, want.uid, want.gid);
}

}  // namespace

StepModule file_module() {
  StepModule m;
  m.name = "file";
  m.help =
      "Writes a regular file with exactly this content, mode and owner. If only the owner may read the file, "
      "diffs do not show its content. For /etc/hosts, cloud-init (if present) is configured not to rewrite "
      "it.";
  m.parameters = Json::array(
      {parameter("path", "string", true, "absolute path"),
       parameter("content", "string", false, "whole content", ""),
       parameter("mode", "string", false, "octal mode", "0644"),
       parameter("owner", "string", false, "user name or UID; default: unchanged (root for a new file)"),
       parameter("group", "string", false, "group name or GID"),
       parameter("ensure", "string", false, "present | absent", "present")});
  m.check = check_file;
  m.apply = apply_file;
  return m;
}

}  // namespace muster::steps
