// A plain file, almost all of it a hole, as a disk.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/disk/block_device.h"
#include "agent/disk/disk_probe.h"
#include "tests/catch.h"

namespace muster::testing {

constexpr uint64_t kMiB = 1 << 20;

// In memory where there is room: what makes file systems waits for the disk below it.
inline std::string folder_of_disks() {
  std::error_code error;
  const auto space = std::filesystem::space("/dev/shm", error);
  return !error && space.available > (uint64_t{1} << 30) ? "/dev/shm" : "/tmp";
}

struct Disk {
  std::string path = folder_of_disks() + "/muster-disk-XXXXXX";
  explicit Disk(uint64_t size = 64 * kMiB) {
    ::close(::mkstemp(path.data()));
    std::filesystem::resize_file(path, size);
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  ~Disk() { std::filesystem::remove(path); }
  void put(uint64_t at, const std::string& bytes) const {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(at));
    f << bytes;
  }
  BlockDevice open(BlockDevice::Access access = BlockDevice::Access::read) const {
    return BlockDevice::open(path, access).value();
  }
  DiskContent probe() const { return probe_disk(open()).value(); }
};

}  // namespace muster::testing
