// Which drives a file system stands on: from its block device down through arrays, volumes and partitions to
// whole disks, as sysfs shows them.
//
// Reference:   /sys/class/block/NAME/slaves names what a made-up device consists of; a partition's folder
//              lies in that of its disk.
#include <filesystem>
#include <set>

#include "kernels/kernels.h"

namespace muster::kernels {
namespace {

constexpr int kMostLevels = 8;  // a tree that is deeper is not one

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void add_drives(const Files& files, const std::string& name, int levels, std::set<std::string>& out) {
  if (levels == 0) return;
  const std::string folder = "/sys/class/block/" + name;
  const auto parts = files.list(folder + "/slaves");
  for (const auto& part : parts) add_drives(files, part, levels - 1, out);
  if (!parts.empty()) return;
  if (files.exists(folder + "/partition")) {
    const std::string target = files.read_link(folder).value_or("");
    const std::string disk = name_of(target.substr(0, target.rfind('/')));
    if (!disk.empty()) add_drives(files, disk, levels - 1, out);
    return;
  }
  if (!files.exists(folder + "/device")) return;  // a loop, or memory
  std::string serial = files.read_line(folder + "/device/serial");
  if (serial.empty()) serial = files.read_line(folder + "/serial");
  out.insert(serial.empty() ? name : serial);
}

}  // namespace

Under drives_under(const Files& files, const std::string& device) {
  std::error_code error;
  const auto real = std::filesystem::canonical(files.real(device), error);
  if (error) return {};
  const std::string name = real.filename().string();
  std::set<std::string> drives;
  add_drives(files, name, kMostLevels, drives);
  return {{drives.begin(), drives.end()}, files.read_line("/sys/class/block/" + name + "/md/level")};
}

}  // namespace muster::kernels
