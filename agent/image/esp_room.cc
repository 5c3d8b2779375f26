#include "agent/image/esp_room.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "agent/disk/block_device.h"
#include "agent/image/esp_files.h"

namespace muster {
namespace {

// Differences up to this size are folders, or rounding.
constexpr uint64_t kSmall = 1 << 20;

uint64_t in_blocks(const Files& files, const std::string& path, uint64_t block) {
  struct stat st = {};
  if (::stat(files.real(path).c_str(), &st) != 0) return 0;
  return (static_cast<uint64_t>(st.st_size) + block - 1) / block * block;
}

uint64_t used_in(const Files& files, const std::string& folder, uint64_t block) {
  uint64_t sum = 0;
  for (const auto& name : files.list(folder)) {
    const std::string path = folder + "/" + name;
    sum += files.is_directory(path) ? block + used_in(files, path, block) : in_blocks(files, path, block);
  }
  return sum;
}

}  // namespace

Space space_of(const std::string& folder) {
  struct statvfs st = {};
  if (::statvfs(folder.c_str(), &st) != 0) return {};
  const uint64_t block = st.f_frsize;
  return {block * st.f_blocks, block * st.f_bavail, block};
}

uint64_t used_on(const Files& esp, uint64_t block) { return used_in(esp, "", block); }

EspRoom esp_room(const Files& esp, const std::string& slot, const Space& space) {
  EspRoom out;
  out.size = space.size;
  out.ready = space.free + used_in(esp, folder_of_slot(slot), space.block);
  const uint64_t known = space.free + used_on(esp, space.block);
  if (space.size > known + kSmall) out.lost = space.size - known;
  return out;
}

Status has_room(const EspRoom& room, uint64_t needed) {
  if (room.ready >= needed) return Ok{};
  return fail(
      Code::conflict,
      fmt::format("the EFI system partition has {} KiB for this slot's kernel and initrd, but {} KiB is "
                  "needed{}",
                  room.ready >> 10, needed >> 10,
                  room.lost == 0 ? ""
                                 : fmt::format("; {} KiB of it is lost: used, but in no file, as after a "
                                               "power cut (`fsck.vfat -a` frees it)",
                                               room.lost >> 10)));
}

Status repair_vfat(Process& process, const std::string& device) {
  // The kernel mounts nothing that is open exclusively, and opens nothing exclusively that is mounted.
  TRY(const BlockDevice held, BlockDevice::open(device, BlockDevice::Access::exclusive_write));
  constexpr int kRepaired = 1;
  Command command;
  command.argv = {"fsck.vfat", "-a", "-w", device};
  command.deadline = 5 * kMinute;
  TRY(const Output out, process.run(command));
  if (out.exit_code == 0 || out.exit_code == kRepaired) return Ok{};
  return fail(Code::failed, fmt::format("fsck.vfat exited with status {}: {}", out.exit_code, out.err));
}

Status remove_salvaged(const Files& esp) {
  for (const auto& name : esp.list("/"))
    if (name.starts_with("FSCK") && name.ends_with(".REC")) TRY_(esp.remove("/" + name));
  return Ok{};
}

}  // namespace muster
