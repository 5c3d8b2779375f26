// own_devices: muster's lines about the system's own disk must identify its partitions uniquely.
//
// Earlier versions wrote labels: PARTLABEL=muster-esp into /etc/fstab, and root=PARTLABEL=... into boot
// entries. A second disk with muster's partitions has the same labels, so it is undefined which disk a label
// selects. The host's own lines are not changed.
#include <algorithm>

#include <fmt/format.h>

#include "agent/core/identity.h"
#include "agent/disk/bearers.h"
#include "agent/disk/gpt.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/system/own_esp.h"
#include "base/kernel_line.h"
#include "host/by_label.h"

namespace muster::steps {
namespace {

constexpr const char* kFstab = "/etc/fstab";

Result<std::string> guid_of(const Files& files, const std::string& part) {
  const std::string disk = disk_of_partition(files, part);
  TRY(const auto device, BlockDevice::open(files.real("/dev/" + disk), BlockDevice::Access::read));
  TRY(const auto table, read_gpt(device));
  const std::string number = files.read_line("/sys/class/block/" + part + "/partition");
  const auto found = std::find_if(table.partitions.begin(), table.partitions.end(),
                                  [&](const GptPartition& p) { return std::to_string(p.number) == number; });
  if (found == table.partitions.end())
    return fail(Code::conflict, "the partition table of /dev/" + disk + " has no partition " + number);
  const auto all = partition_bearers(files, found->guid);
  if (all.size() > 1)
    return fail(Code::conflict, "PARTUUID=" + found->guid + " matches " + join(all, " and ") +
                                    ": one disk is a copy of the other; remove one of them");
  return found->guid;
}

// The same text if it is already correct.
Result<std::string> right_fstab(const Files& files) {
  const std::string text = files.read(kFstab).value_or("");
  std::string out;
  bool any = false;
  for (const auto& line : split_lines(text)) {
    const auto words = fstab_words(line);
    const bool by_label = words.size() >= 2 && is_by_label(words[0]) && plain_path(words[1]) == kEspFolder;
    if (!by_label) {
      out += line + "\n";
      continue;
    }
    TRY(const std::string esp, own_esp(files));
    TRY(const std::string guid, guid_of(files, esp));
    out += fmt::format("PARTUUID={} {} vfat noauto,umask=0077 0 0\n", guid, kEspFolder);
    any = true;
  }
  return any ? out : text;
}

// With root= by PARTUUID; the same text if root= is not a label.
Result<std::string> right_entry(const Files& files, const std::string& entry) {
  std::string out;
  bool any = false;
  for (const auto& line : split_lines(entry)) {
    auto words = split(line, ' ');
    for (auto& word : words) {
      if (words.front() != "options" || !word.starts_with("root=") || !is_by_label(word.substr(5))) continue;
      TRY(const std::string root, own_root(files));
      TRY(const std::string guid, guid_of(files, root));
      word = "root=PARTUUID=" + guid;
      any = true;
    }
    out += (words.empty() || words.front() != "options" ? line : join(words, " ")) + "\n";
  }
  return any ? out : entry;
}

std::string slot_of(const Files& files) { return read_image_record(files).slot; }

// True if the system was booted by a label. Only then must the ESP be mounted.
bool boots_by_label(const Files& files) {
  for (const auto& line : devices_by_label(files))
    if (line.starts_with("root=")) return true;
  return false;
}

Result<CheckResult> check_own_devices(StepContext& context, const Json&) {
  const std::string slot = slot_of(context.files);
  if (slot.empty()) return CheckResult{Holds::not_applicable, "this system was not installed by muster"};
  Diff diff;
  TRY(const std::string right, right_fstab(context.files));
  if (right != context.files.read(kFstab).value_or(""))
    diff.add(std::string(kFstab) + ": " + kEspFolder +
             " is identified by a label, which a second disk may also have");
  if (!boots_by_label(context.files)) return diff.result();
  TRY(const OwnEsp esp, OwnEsp::open(context, "ro"));
  TRY(const std::string entry, context.files.read(boot_entry_path(slot)));
  TRY(const std::string booted, right_entry(context.files, entry));
  if (booted != entry)
    diff.add("boot entry: " + kernel_argument(context.files.read_line("/proc/cmdline"), "root") +
             " is a label, which a second disk may also have");
  return diff.result();
}

Status apply_own_devices(StepContext& context, const Json&) {
  const std::string slot = slot_of(context.files);
  if (slot.empty()) return Ok{};
  TRY(const std::string right, right_fstab(context.files));
  if (right != context.files.read(kFstab).value_or("")) TRY_(context.files.write(kFstab, right));
  if (!boots_by_label(context.files)) return Ok{};
  TRY(const OwnEsp esp, OwnEsp::open(context, "rw"));
  TRY(const std::string entry, context.files.read(boot_entry_path(slot)));
  TRY(const std::string booted, right_entry(context.files, entry));
  return booted == entry ? Status(Ok{}) : context.files.write(boot_entry_path(slot), booted);
}

}  // namespace

StepModule own_devices_module() {
  StepModule m;
  m.name = "own_devices";
  m.help =
      "Replaces labels with UUIDs where an earlier version of muster identified the system's own partitions "
      "by label: in /etc/fstab and in the boot entry of the running slot.";
  m.check = check_own_devices;
  m.apply = apply_own_devices;
  return m;
}

}  // namespace muster::steps
