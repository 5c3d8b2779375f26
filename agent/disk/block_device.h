// BlockDevice: one open disk, or a plain file in its place in tests.
//
// Owned by the code that opened it; the only access of agent code to raw disk bytes. Opened for writing it
// holds the disk exclusively (O_EXCL): the kernel refuses while anything on the disk is mounted, assembled or
// used as swap, and keeps others out afterwards. Thread: read_at() and write_at() may run in several threads
// at once (pread, pwrite).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

class BlockDevice {
 public:
  // `shared_write`: a disk whose file systems are in use, to write outside of them (marker.h).
  enum class Access { read, exclusive_write, shared_write };

  // not_found; conflict: in use by a file system, RAID, or swap; denied: opened for writing, but read-only,
  // which the kernel would report only at the first write; failed.
  static Result<BlockDevice> open(const std::string& path, Access access);
  BlockDevice(BlockDevice&& other) noexcept;
  BlockDevice& operator=(BlockDevice&& other) noexcept;
  ~BlockDevice();

  uint64_t size() const { return size_; }
  uint32_t logical_block() const { return logical_block_; }
  const std::string& path() const { return path_; }
  // "259:3", the kernel's number of the open device; "" for a plain file.
  std::string number() const;

  // Exactly `size` bytes. Code::failed on an I/O error or beyond the end.
  Result<std::string> read_at(uint64_t offset, size_t size) const;
  Status write_at(uint64_t offset, std::string_view bytes) const;
  // Reads as zeros afterwards, without transferring them if the disk can do that.
  Status zero(uint64_t offset, uint64_t size) const;
  Status sync() const;
  // Starts writing this range out and does not wait: a hint, which limits the loss in a power cut and the
  // work of sync().
  void begin_sync(uint64_t offset, uint64_t size) const;
  // Makes the kernel read the partition table again. No-op for a plain file.
  Status reread_partitions() const;

 private:
  BlockDevice(std::string path, int fd, bool block) : path_(std::move(path)), fd_(fd), block_(block) {}
  std::string path_;
  int fd_ = -1;
  bool block_ = false;
  uint64_t size_ = 0;
  uint32_t logical_block_ = 512;
};

// "/dev/nvme0n1", 2 -> "/dev/nvme0n1p2"; "/dev/sda", 2 -> "/dev/sda2".
std::string partition_path(const std::string& disk, int number);

}  // namespace muster
