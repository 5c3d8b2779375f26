#include "agent/steps/system/own_esp.h"

#include <fmt/format.h>

#include <utility>

#include "agent/disk/bearers.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/disk/mounts.h"
#include "base/kernel_line.h"

namespace muster::steps {
namespace {

constexpr const char* kBlock = "/sys/class/block/";
constexpr const char* kName = "muster-esp";

// True if the partition has the name of an ESP, according to the kernel.
bool is_called_esp(const Files& files, const std::string& part) {
  const auto text = files.read(kBlock + part + "/uevent");
  for (const auto& line : split_lines(text.ok() ? *text : ""))
    if (line == std::string("PARTNAME=") + kName) return true;
  return false;
}

// Returns the partitions named muster-esp on this disk, or on all disks if `disk` is empty.
std::vector<std::string> esps(const Files& files, const std::string& disk) {
  std::vector<std::string> out;
  for (const auto& name : files.list(kBlock))
    if (is_called_esp(files, name) && (disk.empty() || disk_of_partition(files, name) == disk))
      out.push_back(name);
  return out;
}

// Lists these partitions for messages, because the operator must see which exist.
std::string list_of_esps(const Files& files) {
  std::vector<std::string> out;
  for (const auto& name : esps(files, "")) out.push_back(device_path(name));
  return out.empty() ? "no partition is named muster-esp"
                     : "partitions named muster-esp: " + join(out, ", ") + "; none of them was changed";
}

Error unknown(const Files& files, const std::string& why) {
  return fail(Code::conflict,
              "the disk that this system runs from is unknown: " + why + "; " + list_of_esps(files));
}

Status check_mounted(const Files& files, const MountEntry& entry, const std::string& esp) {
  if (is_on_device(files, entry, esp)) return Ok{};
  return fail(Code::conflict,
              fmt::format("{} is mounted from {}, but this system's ESP is {}: nothing was changed",
                          kEspFolder, entry.source, device_path(esp)));
}

}  // namespace

Result<std::string> own_root(const Files& files) {
  const auto entry = find_mount(files, "/");
  const std::string mounted = entry ? device_with_number(files, entry->device) : "";
  if (!disk_of_partition(files, mounted).empty()) return mounted;
  const std::string root = kernel_argument(files.read_line("/proc/cmdline"), "root");
  const std::string kind = "root=PARTUUID=";
  const std::string is = entry ? "/ is mounted from " + entry->source : "/ is not mounted";
  if (!root.starts_with(kind)) return unknown(files, is + (root.empty() ? "" : ", " + root));
  const auto all = partition_bearers(files, root.substr(kind.size()));
  if (all.empty()) return unknown(files, fmt::format("{}, and no partition matches {}", is, root));
  if (all.size() > 1) return unknown(files, root + " matches " + join(all, " and "));
  return all.front();
}

Result<std::string> own_esp(const Files& files) {
  TRY(const std::string root, own_root(files));
  const std::string disk = disk_of_partition(files, root);
  const auto found = esps(files, disk);
  if (found.size() == 1) return found.front();
  return fail(Code::conflict,
              fmt::format("disk {}, which this system runs from, has {} partitions named {}; {}", disk,
                          found.size(), kName, list_of_esps(files)));
}

std::string boot_entry_path(const std::string& slot) {
  return std::string(kEspFolder) + "/loader/entries/muster-" + slot + ".conf";
}

Result<OwnEsp> OwnEsp::open(StepContext& context, const std::string& access) {
  OwnEsp out(context);
  TRY(const std::string esp, own_esp(context.files));
  if (const auto entry = find_mount(context.files, kEspFolder)) {
    TRY_(check_mounted(context.files, *entry, esp));
    return Result<OwnEsp>(std::move(out));
  }
  TRY_(
      run_tool(context, {"mount", "-t", "vfat", "-o", access + ",umask=0077", device_path(esp), kEspFolder}));
  out.mounted_ = true;
  const auto entry = find_mount(context.files, kEspFolder);
  if (!entry) return fail(Code::failed, std::string(kEspFolder) + " is not mounted");
  TRY_(check_mounted(context.files, *entry, esp));
  return Result<OwnEsp>(std::move(out));
}

OwnEsp::OwnEsp(OwnEsp&& other) noexcept
    : context_(other.context_), mounted_(std::exchange(other.mounted_, false)) {}

OwnEsp::~OwnEsp() {
  if (mounted_) (void)run_tool(context_, {"umount", kEspFolder}).ok();
}

}  // namespace muster::steps
