// Finds the drives under a file system: from its block device down through arrays, volumes and partitions to
// whole disks, as sysfs shows them.
//
// Reference:   /sys/class/block/NAME/slaves names what a composed device consists of; a partition's folder
//              lies in that of its disk.
#include <filesystem>
#include <set>

#include "host/disks_under.h"
#include "kernels/common/kernels.h"
#include "kernels/drives/drives.h"

namespace muster::kernels {

BackingDrives drives_under(const Files& files, const std::string& device) {
  std::error_code error;
  const auto real = std::filesystem::canonical(files.real(device), error);
  if (error) return {};
  const std::string name = real.filename().string();
  std::set<std::string> drives;
  for (const auto& disk : disks_under(files, name)) {
    const std::string folder = "/sys/class/block/" + disk;
    std::string serial = files.read_line(folder + "/device/serial");
    if (serial.empty()) serial = files.read_line(folder + "/serial");
    drives.insert(serial.empty() ? disk : serial);
  }
  return {{drives.begin(), drives.end()}, files.read_line("/sys/class/block/" + name + "/md/level")};
}

}  // namespace muster::kernels
