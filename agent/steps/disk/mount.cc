// mount: mounts a file system of the given type at a mount point, now and at every boot.
//
// If disks are listed, they determine the device (mounts.h), and the UUID read from it now is
// mounted and written to /etc/fstab. A label selects nothing: it is only compared. If a second device has the
// UUID, the step fails before anything is mounted and names it. Other lines of fstab for the same mount
// point, however its path is written, are removed: systemd uses the first one.
//
// Only what the kernel has mounted counts; /etc/fstab alone proves nothing. The folder below the mount point
// gets mode 0000, so that no ordinary user writes to the root disk while the mount is missing.
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/disk/bearers.h"
#include "agent/steps/accounts.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kFstab = "/etc/fstab";

struct WantedMount {
  std::string source, target, fs = "xfs", options = "defaults", mode;
  bool fstab = true;
  std::vector<WantedDisk> disks;  // empty: `source` selects the device
  std::string partition, label;
};
MUSTER_PARAMETERS(
    WantedMount,
    optional(source,
             "what to mount if no disks are listed: UUID=..., PARTUUID=..., a link below /dev/disk/by-id, or "
             "SERVER:/PATH"),
    required(target, "mount point"), optional(fs, "file system type"), optional(options, "mount options"),
    optional(mode, "octal mode of the mounted file system's root folder; default: unchanged"),
    optional(fstab, "add the mount to /etc/fstab so that the file system is mounted at every boot"),
    optional(disks, "disks that contain the file system, found by serial or WWID"),
    optional(partition, "use the partition with this name on the one listed disk"),
    optional(label, "label that the file system must have; not used to find the device"))

struct Place {
  std::string source;  // as written in fstab and given to mount
  std::string device;  // kernel name; for a source without disks, the device it resolves to
  FileSystemOn on = {};
};

// True for names that a second device may also have, or that depend on the order in which devices appeared.
bool chooses_by_chance(const std::string& source) {
  for (const char* start :
       {"LABEL=", "PARTLABEL=", "/dev/disk/by-label/", "/dev/disk/by-partlabel/", "/dev/md/"})
    if (source.starts_with(start)) return true;
  // The kernel's own names have no folder; "/dev/vdata/home" is a logical volume.
  if (source.find('/', 5) != std::string::npos) return false;
  for (const char* start : {"/dev/md", "/dev/sd", "/dev/nvme", "/dev/vd", "/dev/hd", "/dev/dm-"})
    if (source.starts_with(start)) return true;
  return false;
}

Status complete_mount(const StepContext&, WantedMount& want) {
  if (want.target.size() < 2 || want.target[0] != '/' || plain_path(want.target) != want.target)
    return fail(Code::invalid, "mount: 'target' must be an absolute path without extra slashes");
  if ((want.source + want.target + want.options).find_first_of(" \t\n") != std::string::npos)
    return fail(Code::invalid, "mount: source, target and options must not contain white space");
  if (!want.disks.empty()) {
    // Older playbooks select the device by its label.
    if (want.source.starts_with("LABEL=") && want.label.empty()) want.label = want.source.substr(6);
    return Ok{};
  }
  if (want.source.empty()) return fail(Code::invalid, "mount: neither 'disks' nor 'source' is given");
  if (!want.partition.empty() || !want.label.empty())
    return fail(Code::invalid, "mount: 'partition' and 'label' are only valid with 'disks'");
  if (chooses_by_chance(want.source))
    return fail(Code::invalid,
                fmt::format("mount: '{}' does not identify the device: another device may "
                            "have that name. List the 'disks' of the file system, or use UUID=...",
                            want.source));
  return Ok{};
}

// Only if no disks are listed.
Result<Place> named_place(const Files& files, const WantedMount& want) {
  Place out{want.source, kernel_name(files, want.source)};
  std::vector<std::string> all;
  if (want.source.starts_with("UUID=")) all = file_system_bearers(files, want.source.substr(5));
  if (want.source.starts_with("PARTUUID=")) all = partition_bearers(files, want.source.substr(9));
  if (all.size() > 1)
    return fail(
        Code::conflict,
        fmt::format("{} matches {}, so the device is ambiguous; remove one device, or list the 'disks'",
                    want.source, join(all, " and ")));
  if (all.size() == 1) out.device = all.front();
  return out;
}

// not_found: the disks have no such device yet, or it has no file system.
Result<Place> find_place(const Files& files, const WantedMount& want) {
  if (want.disks.empty()) return named_place(files, want);
  Place out;
  TRY(out.device, selected_device(files, want.disks, want.partition));
  TRY(out.on, file_system_on(files, out.device));
  const std::string path = device_path(out.device);
  const bool of_ext = want.fs.starts_with("ext") && out.on.type.starts_with("ext");
  if (out.on.type != want.fs && !of_ext)
    return fail(Code::conflict, fmt::format("{} contains {}, not {}", path, out.on.type, want.fs));
  if (!want.label.empty() && out.on.label != want.label)
    return fail(Code::conflict, fmt::format("the {} on {} is labelled '{}', not '{}'", out.on.type, path,
                                            out.on.label, want.label));
  out.source = "UUID=" + out.on.uuid;
  const bool by_label = want.source.starts_with("LABEL=") || want.source.empty();
  if (!by_label && want.source != out.source && kernel_name(files, want.source) != out.device)
    return fail(Code::conflict, fmt::format("the listed disks resolve to {} ({}), but 'source' is {}", path,
                                            out.source, want.source));
  TRY_(only_bearer(files, out.on));
  return out;
}

// No octal escapes are needed, because its fields contain no white space.
std::string fstab_line(const WantedMount& want, const Place& place) {
  return fmt::format("{} {} {} {} 0 0", place.source, want.target, want.fs, want.options);
}

bool is_for(const std::string& line, const std::string& target) {
  std::string spaced = line;
  for (char& c : spaced)
    if (c == '\t') c = ' ';
  const auto words = split(spaced, ' ');
  return words.size() >= 2 && words[0][0] != '#' && plain_path(words[1]) == target;
}

std::vector<std::string> fstab_lines(const Files& files, const std::string& target) {
  std::vector<std::string> out;
  const auto text = files.read(kFstab);
  if (!text.ok()) return out;
  for (const auto& line : split_lines(*text))
    if (is_for(line, target)) out.push_back(line);
  return out;
}

// "" if fstab has our line for this mount point and no other one.
std::string fstab_diff(const Files& files, const WantedMount& want, const Place& place) {
  if (!want.fstab) return "";
  const auto have = fstab_lines(files, want.target);
  const std::string line = fstab_line(want, place);
  if (have == std::vector<std::string>{line}) return "";
  if (have.empty()) return std::string(kFstab) + " has no line for " + want.target;
  return fmt::format("{}: {} -> {}", kFstab, join(have, " | "), line);
}

// "" if it is mounted as declared.
std::string mounted_diff(const Files& files, const WantedMount& want, const Place& place) {
  const auto entry = find_mount(files, want.target);
  if (!entry) return want.target + " is not mounted";
  if (entry->fs != want.fs) return fmt::format("{} is {}, not {}", want.target, entry->fs, want.fs);
  const bool right = place.device == place.source ? entry->source == place.source
                                                  : is_on_device(files, *entry, place.device);
  if (right) return "";
  return fmt::format("{} is {} ({}), not {} ({})", want.target, entry->source,
                     kernel_name(files, entry->source), place.source, place.device);
}

Result<CheckResult> check_mount(StepContext& context, const WantedMount& want) {
  const auto place = find_place(context.files, want);
  if (!place.ok() && place.error().code == Code::not_found) return differs(place.error().message);
  if (!place.ok()) return place.error();
  Diff diff;
  const std::string wrong = mounted_diff(context.files, want, *place);
  if (!wrong.empty()) diff.add(wrong);
  if (const auto text = fstab_diff(context.files, want, *place); !text.empty()) diff.add(text);
  if (wrong.empty())
    if (const auto flags = lacking_flags(context.files, want.target, want.options); !flags.empty())
      diff.add(flags);
  if (wrong.empty() && !want.mode.empty()) {
    TRY(const unsigned mode, parse_mode(want.mode));
    if (look(context.files, want.target).mode != mode) diff.add(want.target + ": the mode differs");
  }
  return diff.result();
}

Status write_fstab(StepContext& context, const WantedMount& want, const Place& place) {
  const auto have = context.files.read(kFstab);
  std::string text;
  if (have.ok())
    for (const auto& line : split_lines(*have))
      if (!is_for(line, want.target)) text += line + "\n";
  return context.files.write(kFstab, text + fstab_line(want, place) + "\n");
}

// Checks afterwards which device was mounted: a copy with the same UUID may have appeared since the lookup.
Status mount_it(StepContext& context, const WantedMount& want, const Place& place) {
  if (!look(context.files, want.target).exists) TRY_(context.files.make_directories(want.target, 0));
  TRY(auto out,
      run_tool(context, {"mount", "-t", want.fs, "-o", want.options, place.source, want.target}, kMinute));
  (void)out;
  if (want.disks.empty()) return Ok{};
  const std::string wrong = mounted_diff(context.files, want, place);
  if (wrong.empty()) return Ok{};
  (void)run_tool(context, {"umount", want.target}).ok();
  return fail(Code::conflict, wrong + "; it was unmounted again");
}

Status apply_mount(StepContext& context, const WantedMount& want) {
  TRY(const Place place, find_place(context.files, want));
  const bool mounted = find_mount(context.files, want.target).has_value();
  // Something else is mounted there: unmounting it could take it from a running job.
  if (const std::string wrong = mounted_diff(context.files, want, place); mounted && !wrong.empty())
    return fail(Code::conflict, wrong);
  if (!fstab_diff(context.files, want, place).empty()) TRY_(write_fstab(context, want, place));
  TRY_(mounted ? set_flags(context, want.target, want.options) : mount_it(context, want, place));
  if (want.mode.empty()) return Ok{};
  TRY(const unsigned mode, parse_mode(want.mode));
  return context.files.set_permissions(want.target, mode);
}

}  // namespace

StepModule mount_module() {
  return step_module<WantedMount>({
      .name = "mount",
      .help =
          "Mounts a file system at `target`, now and at every boot: the one on the listed disks, by its "
          "UUID, or the one that `source` names. Type and device are checked against the kernel's mounts.",
      .check = check_mount,
      .apply = apply_mount,
      .complete = complete_mount,
  });
}

}  // namespace muster::steps
