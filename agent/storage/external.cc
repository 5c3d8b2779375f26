// File systems of the site (engine external): mounted and checked, never created.
//
// Their server is not ours and may fail at any time, and an access to a hard mount then blocks forever. So
// the agent itself never accesses a path below the mount: /proc/self/mountinfo shows what is mounted, and
// everything that needs the server is a separate process with a timeout. They are mounted by a service rather
// than by a mount unit, as for Ceph and MooseFS, because systemd does not retry a mount unit that failed
// because the server was unreachable when the node booted.
#include <fmt/format.h>

#include <algorithm>

#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/parts.h"

namespace muster::steps {
namespace {

constexpr int64_t kMountSeconds = 30;               // one attempt
constexpr DurationMs kServerAnswer = 10 * kSecond;  // timeout of one query to the server
constexpr int kAnswers = 6;                         // queries before the server counts as gone
constexpr DurationMs kReadWrite = 20 * kSecond;     // timeout to write or read a few bytes

struct ExternalMount {
  std::string name, fstype, source, server, target, options;
  bool writable = false;
  std::string unit;
};
MUSTER_PARAMETERS(ExternalMount, required(name, "name of the storage"),
                  required(fstype, "nfs4 | ceph | lustre"),
                  required(source, "source, as the kernel shows it when mounted"),
                  required(server, "server name to show in error messages"), required(target, "mount point"),
                  optional(options, "mount options besides hard, noatime, nosuid, nodev"),
                  optional(writable, "true: test the storage by writing to it"))

// True if no character has a special meaning in unit files; the spec does not allow such characters either.
bool is_plain(const std::string& text) {
  return text.find_first_of(" \t\r\n\"'`\\%$;*?") == std::string::npos;
}

// Adds our own options, unless the declared ones set the same thing.
std::string all_options(const std::string& fstype, const std::string& declared) {
  const auto words = split(declared, ',');
  const auto says = [&](std::initializer_list<const char*> any) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::any_of(any.begin(), any.end(), [&](const char* one) {
        return word == one || (std::string(one).back() == '=' && word.starts_with(one));
      });
    });
  };
  std::vector<std::string> out;
  if (fstype == "nfs4" && !says({"hard", "soft", "softerr"})) out.push_back("hard");
  // A failed attempt ends at once: the unit retries.
  if (fstype == "nfs4" && !says({"retry="})) out.push_back("retry=0");
  if (!says({"atime", "noatime", "relatime", "strictatime"})) out.push_back("noatime");
  if (!says({"suid", "nosuid"})) out.push_back("nosuid");
  if (!says({"dev", "nodev"})) out.push_back("nodev");
  out.insert(out.end(), words.begin(), words.end());
  return join(out, ",");
}

Status complete_external(const StepContext&, ExternalMount& want) {
  if (want.fstype != "nfs4" && want.fstype != "ceph" && want.fstype != "lustre")
    return fail(Code::invalid, "external_mount: '" + want.fstype + "' is not one of nfs4, ceph, lustre");
  if (want.name.empty() || want.name.find_first_of("/ .%") != std::string::npos)
    return fail(Code::invalid, "external_mount: '" + want.name + "' is not a valid name");
  if (want.target.size() < 2 || want.target[0] != '/' || want.target.back() == '/')
    return fail(Code::invalid, "external_mount: 'target' must be an absolute path");
  if (want.source.empty() || want.source[0] == '-' || !is_plain(want.source + want.target + want.options))
    return fail(Code::invalid, "external_mount: source, target and options must be plain words");
  want.options = all_options(want.fstype, want.options);
  want.unit = "muster-external-" + want.name;
  return Ok{};
}

std::string mount_problem(const Files& files, const ExternalMount& want) {
  const auto entry = find_mount(files, want.target);
  if (!entry) return want.target + " is not mounted";
  if (entry->fs == want.fstype && entry->source == want.source) return "";
  return fmt::format("{} is {} ({}), not {} ({})", want.target, entry->source, entry->fs, want.source,
                     want.fstype);
}

// "" if the client is complete on this node.
std::string lacks_client(const Files& files, const ExternalMount& want) {
  if (want.fstype == "lustre") {
    const std::string kernel = files.read_line("/proc/sys/kernel/osrelease");
    const auto known = files.read("/proc/filesystems"),
               modules = files.read("/lib/modules/" + kernel + "/modules.dep");
    const bool loaded = known.ok() && known->find("\tlustre\n") != std::string::npos;
    if (!loaded && (!modules.ok() || modules->find("/lustre.ko") == std::string::npos))
      return fmt::format(
          "there is no module 'lustre' for this node's kernel {}, and no distribution includes that module. "
          "Build or buy the client's packages for this kernel, and install them with a playbook of your own "
          "that comes before storage-external",
          kernel);
  }
  const std::string helper = "mount." + want.fstype;
  if (files.exists("/usr/sbin/" + helper) || files.exists("/sbin/" + helper)) return "";
  const char* package = want.fstype == "nfs4"   ? "nfs-common"
                        : want.fstype == "ceph" ? "ceph-common"
                                                : "lustre-client-utils";
  return fmt::format("{} is not installed on this node (package {})", helper, package);
}

std::string unit_file(const ExternalMount& want) { return "/etc/systemd/system/" + want.unit + ".service"; }

Part unit_part(const ExternalMount& want) {
  return file_part(
      unit_file(want),
      fmt::format("# Written by muster.\n[Unit]\nDescription=Storage of the site at {0}\n"
                  "Wants=network-online.target\nAfter=network-online.target\nStartLimitIntervalSec=0\n\n"
                  "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
                  "ExecStart=/usr/bin/mount -t {1} -o {2} {3} {0}\nExecStop=-/usr/bin/umount {0}\n"
                  "TimeoutStartSec={4}\nTimeoutStopSec=30\nRestart=on-failure\nRestartSec=15\n\n"
                  "[Install]\nWantedBy=multi-user.target\n",
                  want.target, want.fstype, want.options, want.source, kMountSeconds));
}

Result<bool> is_enabled(StepContext& context, const ExternalMount& want) {
  TRY(const std::string out, run_tool(context, {"systemctl", "show", "--no-pager",
                                                "--property=Id,UnitFileState", want.unit + ".service"}));
  return out.find("UnitFileState=enabled") != std::string::npos;
}

std::string last_line(const std::string& text) {
  const auto lines = split_lines(text);
  return lines.empty() ? "" : lines.back();
}

// "" if the server responds through the mount. Checked by a separate process, which can be killed.
std::string no_answer(StepContext& context, const ExternalMount& want) {
  Command query;
  query.argv = {"stat", "--file-system", "--format=%T", want.target};
  query.deadline = kServerAnswer;
  const auto out = context.process.run(query);
  if (out.ok() && out->ok()) return "";
  return fmt::format("{} is mounted, but {} does not answer: {}", want.target, want.server,
                     out.ok() ? last_line(out->err) : out.error().message);
}

CheckResult as_declared() {
  CheckResult out = holds();
  out.note = "site storage: the profile's minimum speeds do not apply";
  return out;
}

Result<CheckResult> check_external(StepContext& context, const ExternalMount& want) {
  Diff diff;
  if (const std::string lacking = lacks_client(context.files, want); !lacking.empty()) diff.add(lacking);
  TRY(const CheckResult unit, check_parts(context, {unit_part(want)}));
  if (unit.holds == Holds::no) diff.add(unit.diff);
  TRY(const bool enabled, is_enabled(context, want));
  if (!enabled) diff.add(want.unit + ".service is not enabled");
  std::string problem = mount_problem(context.files, want);
  if (problem.empty()) problem = lacking_flags(context.files, want.target, want.options);
  if (problem.empty()) problem = no_answer(context, want);
  if (!problem.empty()) diff.add(problem);
  return diff.empty() ? as_declared() : diff.result();
}

// Why the unit's last attempt failed, as reported by mount.
std::string mounts_words(StepContext& context, const ExternalMount& want) {
  const auto out = run_tool(
      context, {"journalctl", "--no-pager", "--output=cat", "--lines=20", "--unit=" + want.unit + ".service"},
      kServerAnswer);
  std::string found;
  if (out.ok())
    for (const auto& line : split_lines(*out))
      if (line.starts_with("mount")) found = line;
  return found;
}

Error not_mounted(StepContext& context, const ExternalMount& want, const std::string& problem) {
  const std::string words = mounts_words(context, want);
  return fail(Code::failed,
              fmt::format("{} ({}) could not be mounted at {}: {} {}. The mount is retried in the "
                          "background; run `muster up` once the server is back",
                          want.source, want.fstype, want.target, want.server,
                          words.empty() ? "did not respond (" + problem + ")" : "(" + words + ")"));
}

Status mount_now(StepContext& context, const ExternalMount& want) {
  // Files::exists() cannot hang here: nothing is mounted.
  if (!context.files.exists(want.target)) TRY_(context.files.make_directories(want.target, 0));
  say(context, fmt::format("mounting {} at {}", want.source, want.target));
  Command restart;
  restart.argv = {"systemctl", "restart", want.unit + ".service"};
  restart.deadline = (kMountSeconds + 30) * kSecond;
  const auto out = run_ok(context.process, restart);
  const std::string problem = mount_problem(context.files, want);
  if (problem.empty()) return Ok{};
  return not_mounted(context, want, out.ok() ? problem : out.error().message);
}

Status apply_external(StepContext& context, const ExternalMount& want) {
  if (const std::string lacking = lacks_client(context.files, want); !lacking.empty())
    return fail(Code::failed, fmt::format("{} ({}): {}", want.source, want.fstype, lacking));
  const bool there = find_mount(context.files, want.target).has_value();
  const std::string problem = mount_problem(context.files, want);
  // Not unmounted, because a running job may be using it.
  if (there && !problem.empty()) return fail(Code::conflict, problem);
  const Part unit = unit_part(want);
  TRY(const CheckResult written, check_parts(context, {unit}));
  if (written.holds == Holds::no) {
    // An existing mount keeps its options: new ones apply at the next mount.
    TRY_(apply_parts(context, {unit}));
    TRY_(run_tool(context, {"systemctl", "daemon-reload"}));
  }
  TRY(const bool enabled, is_enabled(context, want));
  if (!enabled) TRY_(run_tool(context, {"systemctl", "enable", want.unit + ".service"}));
  if (!there) TRY_(mount_now(context, want));
  // TCP reconnects to a server that is back only at its next retransmission, up to half a minute later.
  std::string silent = no_answer(context, want);
  for (int attempt = 1; attempt < kAnswers && !silent.empty() && !is_cancelled(context); ++attempt)
    silent = no_answer(context, want);
  if (!silent.empty()) return fail(Code::failed, silent);
  return set_flags(context, want.target, want.options);
}

// Writes a few bytes as this node, reads them back and removes them.
Status write_and_read(StepContext& context, const ExternalMount& want) {
  const std::string path = want.target + "/.muster-probe." + context.node,
                    text = fmt::format("written by {}\n", context.node);
  const auto run = [&](std::vector<std::string> argv, const std::string& input) -> Result<std::string> {
    Command command;
    command.argv = std::move(argv);
    command.input = input;
    command.deadline = kReadWrite;
    auto out = run_ok(context.process, command);
    if (out.ok()) return out;
    return std::move(out).error().with(fmt::format(
        "{} is declared writable, but {} does not allow this node's root to write, read and remove {}",
        want.source, want.server, path));
  };
  TRY_(run({"rm", "-f", path}, ""));
  TRY_(run({"dd", "of=" + path, "conv=excl,fsync", "status=none"}, text));
  const auto read = run({"cat", path}, "");
  TRY_(run({"rm", "-f", path}, ""));
  if (!read.ok()) return read.error();
  if (*read != text) return fail(Code::corrupt, fmt::format("{} does not read back as written", path));
  return Ok{};
}

Status verify_external(StepContext& context, const ExternalMount& want) {
  TRY(const CheckResult now, check_external(context, want));
  if (now.holds != Holds::yes) return fail(Code::failed, now.diff);
  return want.writable ? write_and_read(context, want) : Status(Ok{});
}

}  // namespace

StepModule external_mount_module() {
  return step_module<ExternalMount>({
      .name = "external_mount",
      .help =
          "Mounts a file system of the site, now and at every boot, and checks its type and source, and that "
          "its server responds. The file system is never created or changed; if it is declared writable, a "
          "few bytes are written, read and removed. A server that does not respond is an error within two "
          "minutes.",
      .check = check_external,
      .apply = apply_external,
      .verify = verify_external,
      .complete = complete_external,
  });
}

}  // namespace muster::steps
