// file: writes a regular file with exactly the declared content, mode and owner, or removes it.
#include <algorithm>
#include <optional>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

constexpr const char* kCloud = "/etc/cloud/cloud.cfg";
constexpr const char* kCloudParts = "/etc/cloud/cloud.cfg.d/";
constexpr const char* kOurs = "zz-muster-hosts.cfg";  // the last file that sets a key wins
constexpr const char* kList = "cloud_init_modules:";

// Items of the list kList in this text, each with its "- "; nullopt if it has no such list, or on one line.
std::optional<std::vector<std::string>> items_of(const std::string& text) {
  std::optional<std::vector<std::string>> out;
  bool inside = false;
  for (const auto& line : split_lines(text)) {
    const size_t first = line.find_first_not_of(" \t");
    if (line.starts_with(kList)) {
      inside = line.find_first_not_of(" \t\r", std::string(kList).size()) == std::string::npos;
      if (inside) out.emplace();
    } else if (inside && first != std::string::npos && line[first] == '-') {
      out->push_back(line.substr(first));
    } else if (first != std::string::npos && line[first] != '#') {
      inside = false;
    }
  }
  return out;
}

OwnFile cloud_init_without_hosts(const Files& files) {
  auto items = items_of(files.read(kCloud).value_or(""));
  auto names = files.list(kCloudParts);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    if (name == kOurs || name.size() < 5 || !name.ends_with(".cfg")) continue;
    if (auto later = items_of(files.read(kCloudParts + name).value_or(""))) items = std::move(later);
  }
  OwnFile out{std::string(kCloudParts) + kOurs,
              "# Written by muster: /etc/hosts has the cluster's names, which cloud-init would remove at "
              "every boot.\n"
              "manage_etc_hosts: false\n",
              0644};
  if (!items) return out;
  out.text += std::string(kList) + "\n";
  for (const auto& item : *items)
    if (item.find("update_etc_hosts") == std::string::npos &&
        item.find("update-etc-hosts") == std::string::npos)
      out.text += " " + item + "\n";
  return out;
}

// The files that must exist so that `path` stays as written; empty if nothing would rewrite it at a boot.
//   /etc/hosts  cloud-init rewrites it if its configuration or the provider's data (which overrides any file
//               on the host) sets `manage_etc_hosts`. The returned file takes this module off the list
std::vector<OwnFile> keeps_written(const Files& files, const std::string& path) {
  if (path == "/etc/hosts" && files.exists(kCloud)) return {cloud_init_without_hosts(files)};
  return {};
}

struct WantedFile {
  std::string path, content, mode = "0644", owner, group, ensure = "present";
  Access access = {};
  bool absent = false;
};
MUSTER_PARAMETERS(WantedFile, required(path, "absolute path"), optional(content, "whole content"),
                  optional(mode, "octal mode"),
                  optional(owner, "user name or UID; default: unchanged (root for a new file)"),
                  optional(group, "group name or GID"), optional(ensure, "present | absent"))

Status complete_file(const StepContext& context, WantedFile& want) {
  want.absent = want.ensure == "absent";
  if (!want.path.starts_with('/')) return fail(Code::invalid, "file: 'path' must be absolute");
  TRY(want.access, access_of(context.files, want.mode, want.owner, want.group));
  return Ok{};
}

Result<CheckResult> check_file(StepContext& context, const WantedFile& want) {
  const auto& [mode, uid, gid, lacks] = want.access;
  // The owner may be created by an earlier step of the same order that has not been applied yet.
  if (!lacks.empty()) return differs(lacks);
  const FileState state = look(context.files, want.path);
  if (want.absent) return state.exists ? differs(want.path + " exists") : holds();
  if (!state.exists) return differs(want.path + " does not exist");
  if (!state.regular) return differs(want.path + " is not a regular file");
  TRY(const std::string have, context.files.read(want.path));
  Diff diff;
  // The content of files that only their owner may read is not shown.
  if (have != want.content)
    diff.add(want.path + ": " +
             ((mode & 0077) == 0 ? "content differs (not shown)" : first_difference(have, want.content)));
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
  const FileState state = look(context.files, want.path);
  if (state.directory) return fail(Code::conflict, want.path + " is a directory");
  if (want.absent) return context.files.remove(want.path);
  // These are written first: once the file itself is correct, nothing overwrites it.
  for (const auto& beside : keeps_written(context.files, want.path)) TRY_(put(context.files, beside));
  const auto have =
      state.regular ? context.files.read(want.path) : Result<std::string>(fail(Code::not_found, ""));
  if (!have.ok() || *have != want.content) TRY_(context.files.write(want.path, want.content, mode));
  return set_permissions(context.files, want.path, mode, uid, gid);
}

}  // namespace

StepModule file_module() {
  return step_module<WantedFile>({
      .name = "file",
      .help = "Writes a regular file with exactly this content, mode and owner. If only the owner may read "
              "the file, diffs do not show its content. For /etc/hosts, cloud-init (if present) is "
              "configured not to rewrite it.",
      .check = check_file,
      .apply = apply_file,
      .complete = complete_file,
  });
}

}  // namespace muster::steps
