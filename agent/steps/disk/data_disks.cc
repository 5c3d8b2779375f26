#include "agent/steps/disk/data_disks.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "agent/disk/disk.h"
#include "agent/disk/look.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

// Returns the kernel names of the devices that use a disk or its partitions (holders below /sys/block).
std::set<std::string> holders_of(const Files& files, const std::string& disk) {
  std::set<std::string> out;
  for (const auto& name : files.list("/sys/block/" + disk + "/holders")) out.insert(name);
  for (const auto& part : files.list("/sys/block/" + disk))
    if (part.starts_with(disk))
      for (const auto& name : files.list("/sys/block/" + disk + "/" + part + "/holders")) out.insert(name);
  return out;
}

}  // namespace

Result<std::vector<WantedDisk>> wanted_disks(const Json& params, const char* key) {
  const auto it = params.find(key);
  if (it == params.end() || !it->is_array() || it->empty()) return fail(Code::invalid, "no disks are listed");
  std::vector<WantedDisk> out;
  std::set<std::string> keys;
  for (const auto& element : *it) {
    WantedDisk disk;
    JsonReader r(element, "disk");
    r.get_or("serial", disk.serial, {});
    r.get_or("wwid", disk.wwid, {});
    r.get_or("model", disk.model, {});
    r.get("size_bytes", disk.size_bytes);
    r.get_or("content_hash", disk.content_hash, {});
    r.get_or("policy", disk.policy, std::string("keep"));
    r.allow_unknown();
    TRY_(r.finish());
    if ((disk.serial.empty() && disk.wwid.empty()) || disk.size_bytes == 0)
      return fail(Code::invalid, "each disk needs a size and either a WWID or a serial");
    if (disk.policy != "keep" && disk.policy != "format-if-blank" && disk.policy != "format")
      return fail(Code::invalid, "disk " + title_of(disk) + ": policy '" + disk.policy + "' is unknown");
    if (!keys.insert(key_of(disk)).second)
      return fail(Code::invalid, "disk " + title_of(disk) + " is listed twice");
    out.push_back(std::move(disk));
  }
  return out;
}

Status read_own(const Json& list, std::vector<WantedDisk>& disks) {
  TRY(disks, wanted_disks({{"disks", list}}));
  return Ok{};
}

Result<std::vector<DiskFacts>> resolve_disks(const Files& files, const std::vector<WantedDisk>& wanted) {
  const auto present = scan_identities(files);  // content is probed where it matters: just before writing
  std::vector<DiskFacts> out;
  std::set<std::string> names;
  for (const auto& want : wanted) {
    TRY(auto disk, find_disk(present, want));
    if (disk.name.empty()) return fail(Code::not_found, "disk " + title_of(want) + " has no block device");
    if (disk.is_os_ancestor)
      return fail(Code::denied,
                  "disk " + title_of(want) + " (" + disk.name + ") contains the running system");
    if (!is_local_transport(disk.transport))
      return fail(Code::denied, fmt::format("disk {} ({}) is not local: its transport is '{}'",
                                            title_of(want), disk.name, disk.transport));
    if (const std::string why = why_not_past_map(disk); !why.empty())
      return fail(Code::denied, fmt::format("disk {} ({}) is {}", title_of(want), disk.name, why));
    if (!names.insert(disk.name).second)
      return fail(Code::conflict, "two of the listed disks are the same device " + disk.name);
    out.push_back(std::move(disk));
  }
  return out;
}

std::string device_path(const std::string& kernel_name) { return "/dev/" + kernel_name; }

std::string key_of(const WantedDisk& disk) { return disk_key(disk); }

std::string title_of(const WantedDisk& disk) { return disk.serial.empty() ? disk.wwid : disk.serial; }

Result<std::string> array_over(const Files& files, const std::vector<DiskFacts>& disks) {
  std::set<std::string> members, holders;
  size_t held = 0;
  for (const auto& disk : disks) {
    members.insert(disk.name);
    const auto mine = holders_of(files, disk.name);
    held += mine.empty() ? 0 : 1;
    holders.insert(mine.begin(), mine.end());
  }
  if (held == 0) return std::string();
  if (held != disks.size() || holders.size() != 1)
    return fail(Code::conflict, fmt::format("{} of the {} disks are in use by {}", held, disks.size(),
                                            join({holders.begin(), holders.end()}, ", ")));
  const std::string holder = *holders.begin();
  if (!files.exists("/sys/block/" + holder + "/md"))
    return fail(Code::conflict, "the disks are used by " + holder + ", which is not an md array");
  std::set<std::string> slaves;
  for (const auto& name : files.list("/sys/block/" + holder + "/slaves")) slaves.insert(name);
  if (slaves != members)
    return fail(Code::conflict,
                fmt::format("array {} is on {}, not on {}", holder, join({slaves.begin(), slaves.end()}, " "),
                            join({members.begin(), members.end()}, " ")));
  return holder;
}

Result<BlockDevice> open_for_format(const Files& files, const WantedDisk& wanted, const DiskFacts& disk) {
  const std::string who = fmt::format("disk {} ({}, {})", title_of(wanted), disk.name, disk.model);
  if (wanted.policy == "keep") return fail(Code::denied, who + ": its policy is `keep`");
  if (disk.is_os_ancestor) return fail(Code::denied, who + " contains the running system");
  if (const std::string why = why_not_past_map(disk); !why.empty())
    return fail(Code::denied, who + " is " + why);
  if (disk.mounted) return fail(Code::denied, who + " is in use");
  if (disk.read_only) return fail(Code::denied, who + " is read-only: nothing can be written to it");
  // An approval that records no content hash approves nothing.
  if (wanted.content_hash.empty())
    return fail(Code::denied,
                who +
                    ": the plan does not record what was on the disk, so writing to it was not approved; to "
                    "free the disk, wipe it completely (`blkdiscard -z`) and plan again");
  auto device = BlockDevice::open(files.real(device_path(disk.name)), BlockDevice::Access::exclusive_write);
  if (!device.ok()) return std::move(device).error().with(who);
  // The name may belong to a different device since the lookup; a different size shows that.
  if (device->size() != wanted.size_bytes)
    return fail(Code::denied,
                fmt::format("{}: the device has {} bytes, not {}", who, device->size(), wanted.size_bytes));
  TRY(const DiskContent content, probe_disk(*device));
  if (content.hash != wanted.content_hash)
    return fail(Code::denied, who + ": its content changed since the plan was approved; current content: " +
                                  content.summary);
  if (wanted.policy == "format-if-blank" && !content.blank)
    return fail(Code::denied, who + " is not blank: " + content.summary);
  return device;
}

Result<BlockDevice> open_after_interruption(const Files& files, const WantedDisk& wanted,
                                            const DiskFacts& disk,
                                            const std::function<bool(const DiskContent&)>& ours) {
  WantedDisk now = wanted;
  {
    TRY(const auto device, BlockDevice::open(files.real(device_path(disk.name)), BlockDevice::Access::read));
    TRY(const auto content, probe_disk(device));
    // The approval was checked when the intent was recorded; what the interrupted run wrote after that does
    // not count as new content. A later plan without an approval still does not allow writing.
    const bool left_by_us = ours(content);
    if ((left_by_us || content.blank) && !wanted.content_hash.empty()) now.content_hash = content.hash;
    if (left_by_us && wanted.policy == "format-if-blank") now.policy = "format";
  }
  return open_for_format(files, now, disk);
}

Status wipe(const BlockDevice& device) { return wipe_looked_at(device, 0, device.size()); }

std::string intent_path(const Files& files, const std::string& name) {
  return std::string(files.is_directory("/state/muster") ? "/state/muster" : "/var/lib/muster") + "/intent-" +
         name + ".json";
}

}  // namespace muster::steps
