#include "agent/steps/disk/mounts.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/disk/bearers.h"
#include "agent/steps/step_modules.h"
#include "base/split.h"

namespace muster::steps {

std::string lacking_flags(const Files& files, const std::string& target, const std::string& options) {
  const auto entry = find_mount(files, target);
  if (!entry) return target + " is not mounted";
  const auto have = split(entry->options, ',');
  std::string lacking;
  for (const auto& option : split(options, ','))
    if ((option == "nosuid" || option == "nodev" || option == "noexec") &&
        std::find(have.begin(), have.end(), option) == have.end())
      lacking += (lacking.empty() ? "" : ",") + option;
  return lacking.empty() ? "" : target + " is mounted without " + lacking;
}

Status set_flags(StepContext& context, const std::string& target, const std::string& options) {
  if (lacking_flags(context.files, target, options).empty()) return Ok{};
  std::string flags = "remount,bind";  // sets flags of this mount, not of its file system: works for any type
  for (const auto& option : split(options, ','))
    if (option == "nosuid" || option == "nodev" || option == "noexec") flags += "," + option;
  TRY(auto out, run_tool(context, {"mount", "-o", flags, target}, kMinute));
  (void)out;
  const std::string still = lacking_flags(context.files, target, options);
  return still.empty() ? Status(Ok{}) : Status(fail(Code::failed, still));
}

Result<std::string> find_partition(const Files& files, const std::string& name, const DiskFacts& disk) {
  TRY(const auto whole, BlockDevice::open(files.real(device_path(disk.name)), BlockDevice::Access::read));
  TRY(const auto content, probe_disk(whole));
  const GptPartition* found = nullptr;
  for (const auto& p : content.gpt.partitions) {
    if (p.name != name) continue;
    if (found) return fail(Code::conflict, "disk " + disk.serial + " has two partitions named " + name);
    found = &p;
  }
  if (!found) return fail(Code::not_found, "disk " + disk.serial + " has no partition " + name);
  const std::string folder = "/sys/block/" + disk.name + "/" + partition_path(disk.name, found->number);
  if (files.read_line(folder + "/start") != std::to_string(found->start / 512) ||
      files.read_line(folder + "/size") != std::to_string(found->size / 512))
    return fail(Code::conflict, "disk " + disk.serial + ": the kernel's view of partition " + name +
                                    " differs from the partition table");
  return device_path(partition_path(disk.name, found->number));
}

Result<std::string> selected_device(const Files& files, const std::vector<WantedDisk>& wanted,
                                    const std::string& partition) {
  TRY(const auto disks, resolve_disks(files, wanted));
  TRY(const std::string md, array_over(files, disks));
  if (!md.empty() && !partition.empty())
    return fail(Code::conflict, "disk " + title_of(wanted[0]) + " is a member of array " + md);
  if (!md.empty()) return md;
  if (disks.size() != 1) return fail(Code::not_found, "there is no array on the disks");
  if (partition.empty()) return disks[0].name;
  TRY(const std::string device, find_partition(files, partition, disks[0]));
  return last_component(device);
}

Result<FileSystemOn> file_system_on(const Files& files, const std::string& device) {
  TRY(const auto open, BlockDevice::open(files.real(device_path(device)), BlockDevice::Access::read));
  TRY(const auto found, probe_region(open, 0, open.size()));
  if (found.empty() || (found.size() == 1 && found[0].type == kUnknownData))
    return fail(Code::not_found, "there is no file system on " + device_path(device));
  if (found.size() > 1)
    return fail(Code::conflict, fmt::format("{} contains more than one signature: {} and {}",
                                            device_path(device), found[0].type, found[1].type));
  FileSystemOn out{device, found[0].type, found[0].label, file_system_uuid(found[0])};
  if (out.uuid.empty())
    return fail(Code::conflict,
                fmt::format("{} contains {}, whose UUID muster cannot read", device_path(device), out.type));
  return out;
}

Status only_bearer(const Files& files, const FileSystemOn& fs) {
  std::vector<std::string> others;
  for (const auto& name : file_system_bearers(files, fs.uuid))
    if (name != fs.device) others.push_back(device_path(name));
  const auto link = files.read_link("/dev/disk/by-uuid/" + fs.uuid);
  if (others.empty() && link.ok() &&
      last_component(*link) != last_component(files.read_link(device_path(fs.device)).value_or(fs.device)))
    others.push_back(device_path(last_component(*link)) + " (according to udev)");
  if (others.empty()) return Ok{};
  return fail(Code::conflict,
              fmt::format("the file system on {} has the UUID {}, and so has the one on {}: one may be a "
                          "copy, and it is unclear which one the next boot would mount. Remove one, or give "
                          "it a new UUID (`tune2fs -U random`, `xfs_admin -U generate`)",
                          device_path(fs.device), fs.uuid, join(others, ", ")));
}

}  // namespace muster::steps
