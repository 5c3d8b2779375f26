// Mounts the shared file system, and sets the number of copies and the trash time of new files in it.
//
// mfsmount is a process on the node: when it ends unexpectedly, the kernel keeps a mount with the correct
// source but no server. So a mount is accepted only if an access through it succeeds.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "agent/steps/accounts.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/metadata.h"
#include "agent/storage/moosefs.h"

namespace muster::steps {
namespace {

constexpr DurationMs kMasterAnswer = 20 * kSecond;  // timeout of one query to the master through the mount
constexpr int kStacked = 8;                         // maximum number of stacked mounts that are removed
// An access to a mount whose mfsmount has ended (ENOTCONN, in the C locale).
constexpr const char* kNotConnected = "Transport endpoint is not connected";

struct SharedMount {
  std::string name = "shared", master, target;
};
MUSTER_PARAMETERS(SharedMount, optional(name, "name of the storage"),
                  required(master, "address of the master"), required(target, "mount point"))

struct WantedMount {
  SharedMount mount;
  int64_t deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedMount, flat(mount), optional(deadline_seconds, "how long to wait for the mount"))

struct WantedPolicy {
  SharedMount mount;
  int64_t copies = 2, trash_seconds = 0;
};
MUSTER_PARAMETERS(WantedPolicy, flat(mount), optional(copies, "number of copies, 1 to 9"),
                  optional(trash_seconds, "how long deleted files are kept"))

std::string unit_name(const SharedMount& want) {
  return "muster-mfs-" + plain_serial(want.name) + ".service";
}
std::string unit_path(const SharedMount& want) { return "/etc/systemd/system/" + unit_name(want); }

// Compares type and source, which Debian's mfsmount 3 ("fuse", "mfs#10.20.0.11:9421") and later versions
// ("fuse.mfs") show differently.
std::string mount_problem(const Files& files, const SharedMount& want) {
  const auto entry = find_mount(files, want.target);
  if (!entry) return want.target + " is not mounted";
  if (!entry->fs.starts_with("fuse"))
    return fmt::format("the file system at {} is {}, not MooseFS", want.target, entry->fs);
  const std::string end = want.master + ":9421", source = entry->source;
  const bool fits = source.size() >= end.size() &&
                    source.compare(source.size() - end.size(), end.size(), end) == 0 &&
                    (source.size() == end.size() || source[source.size() - end.size() - 1] == '#');
  return fits ? ""
              : fmt::format("{} is mounted from {}, not from master {}", want.target, source, want.master);
}

// The result of an access to a mount with the correct source, made by a separate process, because an access
// that waits for a master cannot be cancelled. `dead`: its mfsmount has ended, so no answer will ever arrive.
struct Answer {
  std::string problem = {};
  bool dead = false;
};
Answer query(StepContext& context, const SharedMount& want) {
  Command command;
  command.argv = {"stat", "--file-system", "--format=%T", want.target};
  command.deadline = kMasterAnswer;
  command.env["LC_ALL"] = "C";
  const auto out = context.process.run(command);
  if (out.ok() && out->ok()) return {};
  const auto lines = split_lines(out.ok() ? out->err : out.error().message);
  const std::string said = lines.empty() ? "" : lines.back();
  return {fmt::format("{} is mounted, but does not answer: {}", want.target, said),
          said.find(kNotConnected) != std::string::npos};
}

std::vector<Part> mount_parts(const SharedMount& want, bool restart = false) {
  const std::string unit = fmt::format(
      "{0}[Unit]\nDescription=MooseFS at {1}\nWants=network-online.target\n"
      "After=network-online.target moosefs-master.service\nStartLimitIntervalSec=0\n\n"
      "[Service]\nType=simple\nTimeoutStopSec=20\n"
      // mfsmount refuses a mount point that a dead one holds: without this, each restart would fail.
      "ExecStartPre=-/bin/sh -c 'while LC_ALL=C stat --file-system {1} 2>&1 | grep -q \"{3}\"; do "
      "umount --lazy {1} || exit; done'\n"
      "ExecStart=/usr/bin/mfsmount {1} -H {2} -P 9421 -f -o nosuid,nodev\nExecStop=/usr/bin/umount {1}\n"
      "Restart=on-failure\nRestartSec=5\n\n[Install]\nWantedBy=multi-user.target\n",
      kHead, want.target, want.master, kNotConnected);
  const std::string path = unit_path(want);
  // While something is mounted, a new unit file does not restart the service: running jobs would lose the
  // file system. While nothing is mounted it does, so that a start does not go on trying a former master.
  return {file_part(path, unit),
          service_part("muster-mfs-" + plain_serial(want.name),
                       restart ? std::vector<std::string>{path} : std::vector<std::string>{})};
}

Result<CheckResult> check_mounted(StepContext& context, const WantedMount& wanted) {
  const SharedMount& want = wanted.mount;
  TRY(const CheckResult parts, check_parts(context, mount_parts(want)));
  if (parts.holds == Holds::no) return parts;
  std::string problem = mount_problem(context.files, want);
  if (problem.empty()) problem = lacking_flags(context.files, want.target, kSafeFlags);
  if (problem.empty()) problem = query(context, want).problem;
  return problem.empty() ? holds() : differs(problem);
}

// True if this unit mounted the file system of a former master, before the spec named a different node as the
// server.
bool is_of_former_master(const Files& files, const SharedMount& want) {
  const auto entry = find_mount(files, want.target);
  const std::string end = ":9421";
  return entry && entry->fs.starts_with("fuse") && entry->source.size() > end.size() &&
         entry->source.compare(entry->source.size() - end.size(), end.size(), end) == 0 &&
         files.exists(unit_path(want));
}

// Programs lose the files that they have open there, but their server is gone anyway. Mounts may be stacked.
Status leave(StepContext& context, const SharedMount& want) {
  TRY_(apply_parts(context, {mount_parts(want).front()}));
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{"systemctl", "daemon-reload"}, {"systemctl", "stop", unit_name(want)}}) {
    TRY_(run_tool(context, argv, 3 * kMinute));
  }
  for (int i = 0; i < kStacked && find_mount(context.files, want.target); ++i)
    TRY_(run_tool(context, {"umount", "--lazy", want.target}));
  return Ok{};
}

// Makes way for the mount: unmounts a former master's mount and a dead one. Any other mount stays.
Status make_room(StepContext& context, const SharedMount& want) {
  if (!find_mount(context.files, want.target)) return Ok{};
  const std::string problem = mount_problem(context.files, want);
  if (problem.empty() && !query(context, want).dead) return Ok{};
  if (!problem.empty() && !is_of_former_master(context.files, want)) return fail(Code::conflict, problem);
  return leave(context, want);
}

Status apply_mounted(StepContext& context, const WantedMount& wanted) {
  const SharedMount& want = wanted.mount;
  TRY_(make_room(context, want));
  if (!look(context.files, want.target).exists) TRY_(context.files.make_directories(want.target, 0));
  TRY_(apply_parts(context, mount_parts(want, !find_mount(context.files, want.target))));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(wanted.deadline_seconds);
  for (;;) {
    std::string still = mount_problem(context.files, want);
    if (still.empty()) still = query(context, want).problem;
    if (still.empty()) return set_flags(context, want.target, kSafeFlags);
    if (is_cancelled(context)) return fail(Code::cancelled, still);
    if (std::chrono::steady_clock::now() >= until) return fail(Code::failed, still);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
}

// MooseFS 4 (Debian 13) has storage classes instead of goals; "2CP" and "3CP" always exist (mfsscadmin(1)).
constexpr const char* kCopiesClass = "CP";

// The number after "PATH: " in the output of mfsgetgoal and mfsgettrashtime.
Result<std::string> attribute(StepContext& context, const char* tool, const std::string& target) {
  TRY(const std::string out, run_tool(context, {tool, target}));
  const auto colon = out.find(": ");
  if (colon == std::string::npos)
    return fail(Code::failed, std::string(tool) + " printed unexpected output: " + out.substr(0, 100));
  std::string value = out.substr(colon + 2);
  while (!value.empty() && isspace(static_cast<unsigned char>(value.back()))) value.pop_back();
  return value;
}

Result<CheckResult> check_policy(StepContext& context, const WantedPolicy& want) {
  const std::string& target = want.mount.target;
  if (const auto problem = mount_problem(context.files, want.mount); !problem.empty())
    return fail(Code::conflict, problem);
  Diff diff;
  TRY(const std::string copies, attribute(context, "mfsgetgoal", target));
  const std::string wanted = std::to_string(want.copies);
  if (copies != wanted && copies != wanted + kCopiesClass) diff.add("copies of new files: " + copies);
  TRY(const std::string trash, attribute(context, "mfsgettrashtime", target));
  if (trash != std::to_string(want.trash_seconds)) diff.add("trash time: " + trash);
  TRY(const CheckResult top, check_parts(context, open_top(target)));
  if (top.holds == Holds::no) diff.add(top.diff);
  return diff.result();
}

Status apply_policy(StepContext& context, const WantedPolicy& want) {
  const std::string& target = want.mount.target;
  if (const auto problem = mount_problem(context.files, want.mount); !problem.empty())
    return fail(Code::conflict, problem);
  const std::string copies = std::to_string(want.copies);
  auto goal = run_tool(context, {"mfssetgoal", copies, target});
  if (!goal.ok() && goal.error().message.find("No such class") != std::string::npos)
    goal = run_tool(context, {"mfssetgoal", copies + kCopiesClass, target});
  if (!goal.ok()) return goal.error();
  TRY_(run_tool(context, {"mfssettrashtime", std::to_string(want.trash_seconds), target}));
  return apply_parts(context, open_top(target));
}

}  // namespace

StepModule moosefs_mount_module() {
  return step_module<WantedMount>({
      .name = "moosefs_mount",
      .help = "Mounts the shared file system from the given master, now and at every boot.",
      .check = check_mounted,
      .apply = apply_mounted,
  });
}

StepModule moosefs_policy_module() {
  return step_module<WantedPolicy>({
      .name = "moosefs_policy",
      .help =
          "Sets the number of copies and the trash time of new files in the shared file system, and prepares "
          "its top-level folder, where every user may create files. Runs on the master's node.",
      .check = check_policy,
      .apply = apply_policy,
  });
}

}  // namespace muster::steps
