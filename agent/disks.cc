#include "agent/disks.h"

#include <algorithm>

namespace muster {

// Identity only, until agent/disk can probe content: everything that would be written to is refused meanwhile.
Result<std::vector<DiskFacts>> list_disks(const Files& files) {
  std::vector<DiskFacts> out;
  for (const auto& name : files.list("/sys/block")) {
    const std::string folder = "/sys/block/" + name;
    if (!files.exists(folder + "/device")) continue;
    DiskFacts disk;
    disk.name = name;
    disk.serial = files.read_line(folder + "/device/serial");
    disk.wwid = files.read_line(folder + "/wwid");
    disk.model = files.read_line(folder + "/device/model");
    disk.size_bytes = std::stoull("0" + files.read_line(folder + "/size")) * 512;
    disk.content = "not probed";
    out.push_back(std::move(disk));
  }
  std::sort(out.begin(), out.end(), [](const DiskFacts& a, const DiskFacts& b) { return std::tie(a.serial, a.name) < std::tie(b.serial, b.name); });
  return out;
}

}  // namespace muster
