// A plain file, almost all of it a hole, as a disk.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/disk/block.h"
#include "agent/disk/probe.h"
#include "tests/catch.h"

namespace muster::testing {

constexpr uint64_t kMiB = 1 << 20;

struct Disk {
  std::string path;
  explicit Disk(uint64_t size = 64 * kMiB) {
    char name[] = "/tmp/muster-disk-XXXXXX";
    ::close(::mkstemp(name));
    path = name;
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
  BlockDevice open(BlockDevice::Access access = BlockDevice::Access::read) const { return BlockDevice::open(path, access).value(); }
  DiskContent probe() const { return probe_disk(open()).value(); }
};

}  // namespace muster::testing
