// mount: this source is mounted here with this type, now and at every boot.
//
// Right is only what the kernel says is mounted; /etc/fstab alone proves nothing. The folder below the mount
// point gets mode 0000, so that no ordinary user writes to the root disk while the mount is missing.
#include <fmt/format.h>

#include "agent/steps/system/accounts.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/disk/mounts.h"

namespace muster::steps {
namespace {

struct Wanted {
  std::string source, target, fs, options, mode;
  bool fstab = true;
};

Result<Wanted> wanted(const Json& params) {
  Wanted out{text_of(params, "source"),    text_of(params, "target"),
             text_of(params, "fs", "xfs"), text_of(params, "options", "defaults"),
             text_of(params, "mode"),      bool_of(params, "fstab", true)};
  if (out.target.size() < 2 || out.target[0] != '/' || out.target.back() == '/')
    return fail(Code::invalid, "mount: 'target' must be an absolute path");
  if ((out.source + out.target + out.options).find_first_of(" \t\n") != std::string::npos)
    return fail(Code::invalid, "mount: white space in source, target or options");
  return out;
}

std::string fstab_line(const Wanted& want) {
  return fmt::format("{} {} {} {} 0 0", want.source, want.target, want.fs, want.options);
}

bool fstab_names(const Files& files, const Wanted& want) {
  const auto text = files.read("/etc/fstab");
  if (!text.ok()) return false;
  for (const auto& line : lines_of(*text))
    if (line == fstab_line(want)) return true;
  return false;
}

// Which device the disks say it must be; "" when the step names no disks.
Result<std::string> expected_device(const Files& files, const Json& params) {
  if (!params.contains("disks")) return std::string();
  TRY(const auto wanted_list, wanted_disks(params));
  TRY(const auto disks, resolve_disks(files, wanted_list));
  TRY(const std::string md, array_over(files, disks));
  if (!md.empty()) return md;
  if (disks.size() == 1) return disks[0].name;
  return fail(Code::not_found, "there is no array over the disks");
}

// "" when it is mounted as declared.
Result<std::string> mounted_diff(const Files& files, const Json& params, const Wanted& want) {
  const auto entry = find_mount(files, want.target);
  if (!entry) return want.target + " is not mounted";
  if (entry->fs != want.fs) return fmt::format("{} is {}, not {}", want.target, entry->fs, want.fs);
  TRY(const std::string device, expected_device(files, params));
  const std::string have = kernel_name(files, entry->source),
                    should = device.empty() ? kernel_name(files, want.source) : device;
  if (have != should)
    return fmt::format("{} is {} ({}), not {} ({})", want.target, entry->source, have, want.source, should);
  return std::string();
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  TRY(const Wanted want, wanted(params));
  Diff diff;
  auto mounted = mounted_diff(context.files, params, want);
  if (!mounted.ok() && mounted.error().code == Code::not_found) return differs(mounted.error().message);
  if (!mounted.ok()) return mounted.error();
  if (!mounted->empty()) diff.add(*mounted);
  if (want.fstab && !fstab_names(context.files, want)) diff.add("/etc/fstab does not name " + want.target);
  if (mounted->empty())
    if (const auto flags = lacking_flags(context.files, want.target, want.options); !flags.empty())
      diff.add(flags);
  if (mounted->empty() && !want.mode.empty()) {
    TRY(const unsigned mode, parse_mode(want.mode));
    if (look(context.files, want.target).mode != mode) diff.add(want.target + ": mode");
  }
  return diff.result();
}

// fstab with one line for this target, ours.
Status write_fstab(StepContext& context, const Wanted& want) {
  const auto have = context.files.read("/etc/fstab");
  std::string text;
  if (have.ok())
    for (const auto& line : lines_of(*have)) {
      std::string spaced = line;
      for (char& c : spaced)
        if (c == '\t') c = ' ';
      const auto words = split(spaced, ' ');
      if (words.size() >= 2 && words[0][0] != '#' && words[1] == want.target) continue;
      text += line + "\n";
    }
  return context.files.write("/etc/fstab", text + fstab_line(want) + "\n");
}

Status apply(StepContext& context, const Json& params) {
  TRY(const Wanted want, wanted(params));
  if (want.fstab && !fstab_names(context.files, want)) TRY_(write_fstab(context, want));
  if (const auto entry = find_mount(context.files, want.target)) {
    TRY(const std::string wrong, mounted_diff(context.files, params, want));
    // Something else lies there: taking it away could take it from a running job.
    if (!wrong.empty()) return fail(Code::conflict, wrong);
    TRY_(set_flags(context, want.target, want.options));
  } else {
    if (!look(context.files, want.target).exists) TRY_(context.files.make_directories(want.target, 0));
    TRY(auto out,
        run_tool(context, {"mount", "-t", want.fs, "-o", want.options, want.source, want.target}, kMinute));
    (void)out;
  }
  if (want.mode.empty()) return Ok{};
  TRY(const unsigned mode, parse_mode(want.mode));
  return set_permissions(context.files, want.target, mode, -1, -1);
}

}  // namespace

StepModule mount_module() {
  StepModule m;
  m.name = "mount";
  m.help =
      "A file system is mounted here, now and at every boot. Checked against what the kernel has mounted: "
      "type and device.";
  m.parameters = Json::array(
      {parameter("source", "string", true, "LABEL=..., UUID=..., /dev/..."),
       parameter("target", "string", true, "mount point"), parameter("fs", "string", false, "type", "xfs"),
       parameter("options", "string", false, "mount options", "defaults"),
       parameter("mode", "string", false,
                 "mode of the mounted root folder, octal; left alone when not given"),
       parameter("fstab", "bool", false, "mounted at every boot", true),
       parameter("disks", "list", false, "the disks it must lie on; found by identity")});
  m.check = check;
  m.apply = apply;
  return m;
}

}  // namespace muster::steps
