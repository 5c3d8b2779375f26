// kept_directory: a directory whose content survives a re-image. The content is in /state, which no re-image
// writes, and the path in the root slot is a link to it.
//
// Nothing is deleted, and one content never replaces another: what the root slot has at the path is copied
// if /state has nothing yet, as when an older muster configured the node, and is an error otherwise, because
// this slot may have been in use after the other one. A path that an operator has linked elsewhere or made a
// mount point stays as it is.
//
// Slurm's data is compared with the installed Slurm first, before anything is changed or another account
// owns it: after a refusal the other slot uses it as before. An operator who gives it up makes the file
// kStartEmpty in it; then it is renamed.
#include <fmt/format.h>

#include "agent/disk/mount_table.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/services/service_module.h"
#include "agent/steps/services/slurm_data.h"
#include "agent/steps/step_modules.h"
#include "sys/foreign_entries.h"

namespace muster::steps {
namespace {

struct WantedKeptDirectory {
  std::string path, name, mode = "0755", owner, group;
  Texts services;
  std::string slurm, cluster;
  std::string kept = {};  // empty on a system without /state
  Access access = {};
};
MUSTER_PARAMETERS(WantedKeptDirectory, required(path, "absolute path"), required(name, "name in /state"),
                  optional(mode, "octal mode"),
                  optional(owner, "user name or UID; replaces the present owner in all that it owns there"),
                  optional(group, "group name or GID"),
                  optional(services, "units that use it; stopped while it is moved, not started again"),
                  optional(slurm,
                           "slurmctld or slurmdbd, if that is whose data it is; data that it cannot "
                           "read is an error"),
                  optional(cluster, "Slurm's name of the cluster"))

constexpr const char* kStartEmpty = "muster-start-empty";

Status complete_kept_directory(const StepContext& context, WantedKeptDirectory& want) {
  if (!want.path.starts_with('/')) return fail(Code::invalid, "kept_directory: 'path' must be absolute");
  TRY_(check_name(want.name, "kept_directory"));
  if (want.name == "muster") return fail(Code::invalid, "kept_directory: /state/muster is the agent's own");
  if (context.files.is_directory("/state")) want.kept = "/state/" + want.name;
  TRY(want.access, access_of(context.files, want.mode, want.owner, want.group));
  return Ok{};
}

// Where the path leads.
enum class Leads { nowhere, kept, root_slot, elsewhere };

Result<Leads> leads(const Files& files, const WantedKeptDirectory& want) {
  TRY(const FileState state, files.look(want.path));
  if (!state.exists) return Leads::nowhere;
  if (state.link) {
    TRY(const std::string target, files.read_link(want.path));
    if (target == want.kept) return Leads::kept;
    if (target[0] != '/' ? files.is_directory(want.path) : files.is_directory(target))
      return Leads::elsewhere;
    return fail(Code::conflict, want.path + " is a link to " + target + ", which is not a directory");
  }
  if (!state.directory) return fail(Code::conflict, want.path + " exists but is not a directory");
  return find_mount(files, want.path) ? Leads::elsewhere : Leads::root_slot;
}

// A link remains only in the slot whose content was moved to /state, so its target did exist.
Status check_target(const Files& files, const WantedKeptDirectory& want) {
  if (look(files, want.kept).directory) return Ok{};
  return fail(
      Code::conflict,
      fmt::format("{} is a link to {}, which is lost. Restore it from a backup, or remove the link to "
                  "begin with an empty directory",
                  want.path, want.kept));
}

Result<CheckResult> permissions(const Files& files, const WantedKeptDirectory& want,
                                const std::string& path) {
  const auto text = permission_diff(look(files, path), want.access.mode, want.access.uid, want.access.gid);
  return text.empty() ? holds() : differs(path + ": " + text);
}

// What is in the directory is as a backup or another image left it: an account whose number is another there
// cannot open its own files. "" if all belongs to the wanted account or to root.
std::string strange_owners(const Files& files, const WantedKeptDirectory& want, const std::string& path) {
  if (want.access.uid < 0) return "";
  const ForeignEntries found = foreign_entries(files, path, want.access.uid);
  if (found.count == 0) return "";
  return fmt::format(
      "{} entries of {} belong neither to {} nor to root, the first of them {} (UID {}): give them to "
      "{} with `chown -R -h --from={} {} {}`",
      found.count, path, want.owner, found.first, found.uid, want.owner, found.uid, want.owner, path);
}

Result<std::string> content_of(const Files& files, const WantedKeptDirectory& want) {
  TRY(const Leads to, leads(files, want));
  return to != Leads::elsewhere && !want.kept.empty() && look(files, want.kept).directory ? want.kept
                                                                                          : want.path;
}

// Why the content is given up, as the operator confirmed; "" if it is used. conflict: it can be neither.
Result<std::string> given_up(StepContext& context, const WantedKeptDirectory& want) {
  if (want.slurm.empty()) return std::string();
  TRY(const std::string at, content_of(context.files, want));
  TRY(const std::string why, slurm_refusal(context, want.slurm, at, want.cluster));
  if (why.empty()) return std::string();
  const std::string mark = at + "/" + kStartEmpty, what = fmt::format("the data in {} {}", at, why);
  if (context.files.exists(mark)) return what;
  return fail(
      Code::conflict,
      fmt::format("{}. Nothing was changed. To begin without it, create {}: it is then renamed", what, mark));
}

Result<CheckResult> check_kept_directory(StepContext& context, const WantedKeptDirectory& want) {
  TRY(const std::string up, given_up(context, want));
  if (!up.empty()) return differs(up + ": it is renamed");
  if (!want.access.lacks.empty()) return differs(want.access.lacks);
  TRY(const Leads to, leads(context.files, want));
  if (to == Leads::elsewhere) return holds();
  if (to == Leads::nowhere) return differs(want.path + " does not exist");
  if (want.kept.empty()) return permissions(context.files, want, want.path);
  if (to == Leads::root_slot) return differs(want.path + " is not in /state, so a re-image would lose it");
  TRY_(check_target(context.files, want));
  const std::string strange = strange_owners(context.files, want, want.kept);
  return strange.empty() ? permissions(context.files, want, want.kept) : differs(strange);
}

Status run_services(StepContext& context, const WantedKeptDirectory& want, bool running) {
  if (want.services.empty() || !is_booted(context.files)) return Ok{};
  return apply_service(context, {.names = want.services, .running = running});
}

std::string free_name(const Files& files, const std::string& name) {
  std::string out = name;
  for (int i = 2; look(files, out).exists; ++i) out = name + "." + std::to_string(i);
  return out;
}

// A copy that is not complete, or complete if there is nothing at the path any more.
std::string part_of(const WantedKeptDirectory& want) { return want.kept + ".muster-part"; }

// The accounts of another image may have other numbers. chown changes the directory itself after its content,
// so that an interrupted run is repeated. Only what the account owned is changed: it may have given a file of
// root a second name there, or swapped a folder for a link while root copied the content. Entries of a third
// owner are refused.
Status own(StepContext& context, const WantedKeptDirectory& want, const std::string& path) {
  const FileState state = look(context.files, path);
  const auto& [mode, uid, gid, lacks] = want.access;
  const bool user = uid >= 0 && state.uid != uid;
  if (user || (gid >= 0 && state.gid != gid)) {
    const std::string from = std::to_string(state.uid) + (user ? "" : ":" + std::to_string(state.gid));
    const std::string to =
        (uid >= 0 ? std::to_string(uid) : "") + (gid >= 0 ? ":" + std::to_string(gid) : "");
    TRY_(run_tool(context, {"chown", "-R", "-h", "--from=" + from, to, path}, 30 * kMinute));
  }
  TRY_(context.files.set_permissions(path, mode, {uid, gid}));
  const std::string strange = strange_owners(context.files, want, path);
  return strange.empty() ? Status(Ok{}) : fail(Code::conflict, strange);
}

Status sync_at(StepContext& context, const std::string& path) {
  TRY_(run_tool(context, {"sync", "-f", path}, 30 * kMinute));
  return Ok{};
}

Status copy(StepContext& context, const WantedKeptDirectory& want) {
  const std::string part = part_of(want), aside = free_name(context.files, want.path + ".before-muster");
  say(context, "copying " + want.path + " to " + want.kept);
  TRY_(run_tool(context, {"rm", "-rf", part}));
  TRY_(run_tool(context, {"cp", "-a", "-T", want.path, part}, 30 * kMinute));
  TRY_(own(context, want, part));
  TRY_(sync_at(context, part));
  TRY_(context.files.move(want.path, aside));
  return sync_at(context, aside);
}

// With the services stopped. At no time do both have content, and the link is made last.
Status move_to_state(StepContext& context, const WantedKeptDirectory& want, Leads from) {
  const Files& files = context.files;
  const bool has_content = from == Leads::root_slot && !files.list(want.path).empty();
  if (has_content) TRY_(copy(context, want));
  const bool copied = has_content || from == Leads::nowhere;
  if (copied && !look(files, want.kept).exists && look(files, part_of(want)).directory)
    TRY_(files.move(part_of(want), want.kept));
  TRY_(files.make_directories(want.kept, want.access.mode));
  TRY_(own(context, want, want.kept));
  TRY_(sync_at(context, want.kept));
  if (from == Leads::root_slot && !has_content) TRY_(files.remove(want.path));  // fails if it is not empty
  return files.symlink(want.kept, want.path);
}

Status keep(StepContext& context, const WantedKeptDirectory& want, Leads from) {
  const Files& files = context.files;
  if (from == Leads::kept) {
    TRY_(check_target(files, want));
    return own(context, want, want.kept);
  }
  const FileState kept = look(files, want.kept);
  if (kept.exists && !kept.directory)
    return fail(Code::conflict, want.kept + " exists but is not a directory");
  if (kept.exists && from == Leads::root_slot && !files.list(want.path).empty())
    return fail(Code::conflict,
                fmt::format("{} has content, and so has {}: it is not known which is newer. Stop "
                            "what uses it and rename the older one, then run `muster up`",
                            want.path, want.kept));
  TRY_(run_services(context, want, false));
  Status moved = move_to_state(context, want, from);
  if (!moved.ok() && from == Leads::root_slot) (void)run_services(context, want, true);
  return moved;
}

// The link goes first: one that leads nowhere would look like lost content.
Status start_empty(StepContext& context, const WantedKeptDirectory& want, const std::string& why) {
  TRY(const std::string old, content_of(context.files, want));
  const std::string aside = free_name(context.files, old + ".before-muster");
  say(context, fmt::format("{}: renamed to {}", why, aside));
  TRY_(run_services(context, want, false));
  if (old == want.kept && look(context.files, want.path).link) TRY_(context.files.remove(want.path));
  return context.files.move(old, aside);
}

Status apply_kept_directory(StepContext& context, const WantedKeptDirectory& want) {
  TRY(const std::string up, given_up(context, want));
  if (!want.access.lacks.empty()) return fail(Code::not_found, want.access.lacks);
  if (!up.empty()) TRY_(start_empty(context, want, up));
  TRY(const Leads from, leads(context.files, want));
  if (from == Leads::elsewhere) return Ok{};
  if (!want.kept.empty()) return keep(context, want, from);
  const auto& [mode, uid, gid, lacks] = want.access;
  if (from == Leads::nowhere) TRY_(context.files.make_directories(want.path, mode, {uid, gid}));
  return context.files.set_permissions(want.path, mode, {uid, gid});
}

}  // namespace

StepModule kept_directory_module() {
  return step_module<WantedKeptDirectory>({
      .name = "kept_directory",
      .help = "Keeps the content of a directory over re-images: it is in /state/NAME, and the path is a "
              "link to it. What the path had is copied there once; content in both is an error. A path that "
              "is a mount point or a link of the operator's is not changed. Without /state (adopted "
              "machines) it is a plain directory.",
      .check = check_kept_directory,
      .apply = apply_kept_directory,
      .complete = complete_kept_directory,
  });
}

}  // namespace muster::steps
