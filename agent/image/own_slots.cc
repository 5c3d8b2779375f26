#include "agent/image/own_slots.h"

#include <fmt/format.h>
#include <sys/mount.h>

#include <cstdlib>

#include "agent/core/identity.h"
#include "agent/disk/bearers.h"
#include "agent/disk/block_device.h"
#include "agent/disk/mount_table.h"
#include "agent/image/layout.h"
#include "base/kernel_line.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr uint64_t kSector = 512;  // the unit of sysfs, regardless of the disk's block size
const std::string kBlock = "/sys/class/block/";

uint64_t number_in(const Files& files, const std::string& path) {
  return std::strtoull(files.read_line(path, "0").c_str(), nullptr, 10);
}

bool is_at(const Files& files, const std::string& kernel_name, const GptPartition& p) {
  const std::string folder = kBlock + kernel_name;
  return number_in(files, folder + "/partition") == static_cast<uint64_t>(p.number) &&
         number_in(files, folder + "/start") * kSector == p.start &&
         number_in(files, folder + "/size") * kSector == p.size;
}

// A file system that was already mounted, and stays mounted after close().
class MountedBefore : public OpenFolder {
 public:
  explicit MountedBefore(std::string folder) : folder_(std::move(folder)) {}
  Files files() const override { return Files(folder_); }
  Status close() override { return sync_file_system(folder_); }

 private:
  std::string folder_;
};

}  // namespace

std::string trial_seconds(const Files& files) {
  const std::string key = "muster.trial";
  const std::string argument = kernel_argument(files.read_line("/proc/cmdline"), key);
  return argument.size() > key.size() + 1 ? argument.substr(key.size() + 1) : "";
}

bool on_trial(const Files& files) { return !trial_seconds(files).empty() && !files.exists(kTrialEnded); }

bool goes_back_by_itself(const Files& files) {
  return files.exists("/usr/lib/systemd/system-generators/muster-trial");
}

const GptPartition& OwnSlots::slot(const std::string& name) const { return *slot_partition(layout, name); }
const GptPartition& OwnSlots::esp() const { return *layout.named("muster-esp"); }
const SlotNote* OwnSlots::note(const std::string& name) const {
  const auto it = marker.slots.find(name);
  return it == marker.slots.end() ? nullptr : &it->second;
}

Result<OwnSlots> own_slots(const Files& files) {
  const auto root = find_mount(files, "/");
  const std::string partition = root ? device_with_number(files, root->device) : "";
  OwnSlots own;
  own.disk = disk_of_partition(files, partition);
  if (own.disk.empty()) return fail(Code::not_found, "/ is not on a partition of a disk");
  own.device = files.real("/dev/" + own.disk);
  TRY(const BlockDevice disk, BlockDevice::open(own.device, BlockDevice::Access::read));
  const auto table = read_gpt(disk);
  if (!table.ok() || !is_layout(*table))
    return fail(Code::not_found, "the disk does not have muster's layout");
  own.layout = *table;
  TRY(own.marker, read_marker(disk));
  const uint64_t number = number_in(files, kBlock + partition + "/partition");
  for (const char* name : {"a", "b"})
    if (number == static_cast<uint64_t>(own.slot(name).number)) own.running = name;
  if (own.running.empty()) return fail(Code::not_found, "/ is not on one of muster's root slots");
  if (!is_at(files, partition, own.slot(own.running)))
    return fail(
        Code::conflict,
        fmt::format("the kernel's view of /dev/{} differs from the partition table of its disk", partition));
  return own;
}

SlotNote running_note(const Files& files, const OwnSlots& own) {
  const SlotNote* noted = own.note(own.running);
  SlotNote out = noted ? *noted : SlotNote{};
  const ImageRecord record = read_image_record(files);
  if (record.slot == own.running && !record.digest.empty() &&
      (out.digest.empty() || out.digest == record.digest)) {
    out.digest = record.digest;
    if (out.image.empty()) out.image = record.name;
    if (out.stage.empty()) out.stage = kSlotWritten;
  }
  out.trial = out.trial || goes_back_by_itself(files);
  const std::string key = "Address=";
  for (const auto& line : split(files.read("/etc/systemd/network/10-muster.network").value_or(""), '\n'))
    if (out.address.empty() && line.starts_with(key)) out.address = line.substr(key.size());
  return out;
}

Result<std::string> partition_of(const Files& files, const OwnSlots& own, const GptPartition& partition) {
  const std::string name = partition_path(own.disk, partition.number);
  if (disk_of_partition(files, name) == own.disk && is_at(files, name, partition)) return name;
  return fail(Code::conflict,
              fmt::format("the kernel's view of partition {} of {} differs from the disk's partition table",
                          partition.number, own.disk));
}

std::string use_of_partition(const Files& files, const std::string& kernel_name) {
  if (is_mounted(files, kernel_name)) return "mounted";
  if (!files.list(kBlock + kernel_name + "/holders").empty()) return "part of another device";
  return "";
}

Result<std::unique_ptr<OpenFolder>> open_own_esp(const Files& files, const OwnSlots& own,
                                                 const std::string& at, Mounted::Way way,
                                                 const Unmount& unmount) {
  TRY(const std::string esp, partition_of(files, own, own.esp()));
  if (way == Mounted::Way::write) unmount_left_over(files, unmount);
  for (const auto& [target, entry] : all_mounts(files)) {
    if (entry.device != files.read_line(kBlock + esp + "/dev", "-") || !files.exists(target + "/loader"))
      continue;
    if (way == Mounted::Way::write && is_read_only(files, target))
      return fail(Code::conflict, fmt::format("the EFI system partition is mounted read-only at {}", target));
    return std::unique_ptr<OpenFolder>(std::make_unique<MountedBefore>(files.real(target)));
  }
  if (files.root() != "/" && !files.root().empty())
    return fail(Code::failed, "the EFI system partition is not mounted");
  const auto mount = [&](Mounted::Way how) {
    return Mounted::mount(files.real("/dev/" + esp), "vfat", files.real(at), "umask=0077", how);
  };
  TRY(Mounted mounted, mount_beside(mount, way));
  return std::unique_ptr<OpenFolder>(std::make_unique<Mounted>(std::move(mounted)));
}

Result<Mounted> mount_beside(const std::function<Result<Mounted>(Mounted::Way)>& mount, Mounted::Way way) {
  auto mounted = mount(way);
  if (way == Mounted::Way::write || mounted.ok() || mounted.error().code != Code::conflict) return mounted;
  return mount(Mounted::Way::write);
}

void detach(const std::string& place) { (void)::umount2(place.c_str(), MNT_DETACH); }

void unmount_left_over(const Files& files, const Unmount& unmount) {
  for (const char* place : {kEspPlace, kWriterEspPlace, kWriterSlotPlace})
    if (find_mount(files, place)) unmount(files.real(place));
}

Status state_is_writable(const Files& files) {
  if (!find_mount(files, "/state")) return fail(Code::conflict, "/state is not mounted");
  if (is_read_only(files, "/state")) return fail(Code::conflict, "/state is mounted read-only");
  return Ok{};
}

Status is_committed(const OwnSlots& own, const std::string& standing) {
  if (own.running == standing && standing == own.marker.current) return Ok{};
  const auto or_none = [](const std::string& slot) { return slot.empty() ? std::string("none") : slot; };
  return fail(Code::conflict,
              fmt::format("this system is not committed: slot {} is running, but the default "
                          "slot is {} in the loader's configuration and {} in the disk's marker",
                          own.running, or_none(standing), or_none(own.marker.current)));
}

}  // namespace muster
