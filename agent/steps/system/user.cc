// user: creates an account without a password, with exactly the listed SSH keys, and with or without sudo.
//
// The password field is `*`, which no password matches. With `!` in front, as `usermod -L` and a plain
// useradd leave it, the whole account counts as locked for an sshd that runs with `UsePAM no`: keys are
// rejected.
//
// Check reads the account files; apply runs useradd or usermod, writes authorized_keys and the sudoers
// drop-in (tested by visudo before it is put in place: a broken one would disable sudo for all users).
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/system/subordinate_ids.h"

namespace muster::steps {
namespace {

struct WantedUser {
  std::string name;
  int64_t uid = 0;
  std::optional<Texts> keys;
  bool sudo = false;
  Texts groups;
  std::string shell = "/bin/bash", home;
  std::string keys_text = {}, sudoers_path = {};
};
MUSTER_PARAMETERS(WantedUser, required(name, "login name"), optional(uid, "UID; 0: any"),
                  optional(keys, "complete set of SSH public keys; default: unchanged"),
                  optional(sudo, "whether the user may use sudo without a password"),
                  optional(groups, "additional groups"), optional(shell, "login shell"),
                  optional(home, "home folder; default: /home/NAME"))

Status complete_user(const StepContext&, WantedUser& want) {
  if (want.home.empty()) want.home = "/home/" + want.name;
  if (want.keys)
    for (const auto& key : *want.keys) want.keys_text += key + "\n";
  want.sudoers_path = "/etc/sudoers.d/muster-" + want.name;
  return Ok{};
}

std::string sudoers_text(const WantedUser& want) { return want.name + " ALL=(ALL:ALL) NOPASSWD: ALL\n"; }
// True if login requires a key. An empty field means no line in /etc/shadow, or login without any password.
bool takes_keys_only(const std::string& password_field) {
  return !password_field.empty() && password_field[0] == '*';
}
std::string ssh_folder(const PasswdEntry& user) { return user.home + "/.ssh"; }

void account_diff(const StepContext& context, const WantedUser& want, const PasswdEntry& user, Diff& diff) {
  if (want.uid > 0 && user.uid != want.uid) diff.add(fmt::format("uid {} -> {}", user.uid, want.uid));
  if (user.shell != want.shell) diff.add("shell " + user.shell + " -> " + want.shell);
  const std::string password = password_field(context.files, want.name);
  if (!takes_keys_only(password))
    diff.add(!password.empty() && password[0] == '!'
                 ? "the whole account is locked, not only its password login"
                 : "password login is not disabled");
  for (const auto& name : want.groups) {
    const auto group = find_group(context.files, name);
    bool member = false;
    if (group)
      for (const auto& m : group->members) member = member || m == want.name;
    if (!member && !(group && group->gid == user.gid)) diff.add("not in group " + name);
  }
}

// The user can link both to anywhere. Root does nothing there then, also where the link would do no harm.
Status refuse_links(const StepContext& context, const std::string& folder, const std::string& path) {
  TRY(const FileState dir, context.files.look(folder));
  if (dir.link) return fail(Code::denied, folder + " is a symbolic link");
  TRY(const FileState file, context.files.look(path));
  return file.link ? fail(Code::denied, path + " is a symbolic link") : Status(Ok{});
}

Status keys_diff(const StepContext& context, const WantedUser& want, const PasswdEntry& user, Diff& diff) {
  if (!want.keys) return Ok{};
  const std::string folder = ssh_folder(user), path = folder + "/authorized_keys";
  TRY_(refuse_links(context, folder, path));
  TRY(const FileState dir, context.files.look(folder));
  if (!dir.directory || !permission_diff(dir, 0700, user.uid, user.gid).empty())
    diff.add(folder + ": mode or owner differs");
  const auto have = context.files.open_text(path);
  if (!have.ok() || have->text != want.keys_text)
    diff.add("authorized keys differ");
  else if (!permission_diff(have->state, 0600, user.uid, user.gid).empty())
    diff.add(path + ": mode or owner differs");
  return Ok{};
}

Result<CheckResult> check_user(StepContext& context, const WantedUser& want) {
  const auto user = find_user(context.files, want.name);
  if (!user) return differs("user " + want.name + " does not exist");
  Diff diff;
  account_diff(context, want, *user, diff);
  TRY_(keys_diff(context, want, *user, diff));
  const auto sudoers = context.files.read(want.sudoers_path);
  if (want.sudo != sudoers.ok() || (want.sudo && *sudoers != sudoers_text(want)))
    diff.add(want.sudo ? "no sudo" : "has sudo");
  if (diff.empty()) return holds();
  return differs(want.name + ": " + diff.result().diff);
}

// Options of useradd: of subordinate ids it takes the first range that is free from SUB_UID_MIN on.
std::vector<std::string> subordinate_options(int64_t uid) {
  std::vector<std::string> out;
  const auto start = subordinate_start(uid);
  for (const char* kind : {"UID", "GID"})
    if (start)
      out.insert(out.end(), {"-K", fmt::format("SUB_{}_MIN={}", kind, *start), "-K",
                             fmt::format("SUB_{}_MAX={}", kind, kLastSubordinateId)});
  return out;
}

Status make_account(StepContext& context, const WantedUser& want) {
  const auto user = find_user(context.files, want.name);
  std::vector<std::string> argv;
  if (!user) {
    // -m creates a missing home from /etc/skel; one that survived a re-image is not changed.
    argv = {"useradd", "-m", "-d", want.home, "-s", want.shell, "-p", "*"};
    if (want.uid > 0) argv.insert(argv.end(), {"-u", std::to_string(want.uid)});
    const auto subordinate = subordinate_options(want.uid);
    argv.insert(argv.end(), subordinate.begin(), subordinate.end());
    // A group of that name from an earlier step becomes the user's primary group.
    if (find_group(context.files, want.name))
      argv.insert(argv.end(), {"-g", want.name});
    else
      argv.push_back("-U");
    if (!want.groups.empty()) argv.insert(argv.end(), {"-G", join(want.groups, ",")});
  } else {
    Diff diff;
    account_diff(context, want, *user, diff);
    if (diff.empty()) return Ok{};
    argv = {"usermod", "-s", want.shell};
    if (!takes_keys_only(password_field(context.files, want.name))) argv.insert(argv.end(), {"-p", "*"});
    if (want.uid > 0 && user->uid != want.uid) argv.insert(argv.end(), {"-u", std::to_string(want.uid)});
    if (!want.groups.empty()) argv.insert(argv.end(), {"-a", "-G", join(want.groups, ",")});
  }
  argv.push_back(want.name);
  TRY_(run_tool(context, argv));
  return Ok{};
}

Status write_keys(StepContext& context, const WantedUser& want) {
  if (!want.keys) return Ok{};
  const auto user = find_user(context.files, want.name);
  if (!user) return fail(Code::failed, "useradd left no entry for " + want.name + " in /etc/passwd");
  const std::string folder = ssh_folder(*user), path = folder + "/authorized_keys";
  const FileOwner owner{user->uid, user->gid};
  TRY_(refuse_links(context, folder, path));
  TRY_(context.files.make_directories(folder, 0700, owner));
  TRY_(context.files.set_permissions(folder, 0700, owner));
  const auto have = context.files.open_text(path);
  if (!have.ok() || have->text != want.keys_text)
    return context.files.write(path, want.keys_text, 0600, owner);
  return context.files.set_permissions(path, 0600, owner);
}

Status write_sudoers(StepContext& context, const WantedUser& want) {
  if (!want.sudo) return context.files.remove(want.sudoers_path);
  const auto have = context.files.read(want.sudoers_path);
  if (have.ok() && *have == sudoers_text(want)) return Ok{};
  // sudo ignores names with a dot, so the candidate is never in force.
  const std::string candidate = want.sudoers_path + ".new";
  TRY_(context.files.write(candidate, sudoers_text(want), 0440));
  auto tested = run_tool(context, {"visudo", "-c", "-q", "-f", candidate});
  TRY_(context.files.remove(candidate));
  if (!tested.ok()) return std::move(tested).error().with("sudoers for " + want.name);
  return context.files.write(want.sudoers_path, sudoers_text(want), 0440);
}

Status apply_user(StepContext& context, const WantedUser& want) {
  TRY_(make_account(context, want));
  TRY_(write_keys(context, want));
  return write_sudoers(context, want);
}

}  // namespace

StepModule user_module() {
  return step_module<WantedUser>({
      .name = "user",
      .help = "Creates an account with password login disabled (`*`, so key login works even with sshd's "
              "`UsePAM no`). `keys` is the complete set: unlisted keys are removed.",
      .check = check_user,
      .apply = apply_user,
      .complete = complete_user,
  });
}

}  // namespace muster::steps
