// BlockDevice: one open disk, or a plain file in its place in tests.
//
// Owned by the code that opened it; the only access of agent code to raw disk bytes. Opening for writing is
// exclusive (O_EXCL): the kernel rejects it while anything on the disk is mounted, assembled or used as swap,
// and afterwards rejects other users. Thread safety: read_at() and write_at() may run on several threads at
// once (pread, pwrite).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

class BlockDevice {
 public:
  // `shared_write`: to write outside of the file systems of a disk that is in use (marker.h).
  enum class Access { read, exclusive_write, shared_write };

  // Errors: not_found; conflict: in use by a file system, RAID, or swap; denied: to be written, but read-only
  // (the kernel would report that only at the first write); failed.
  static Result<BlockDevice> open(const std::string& path, Access access);
  BlockDevice(BlockDevice&& other) noexcept;
  BlockDevice& operator=(BlockDevice&& other) noexcept;
  ~BlockDevice();

  uint64_t size() const { return size_; }
  uint32_t logical_block() const { return logical_block_; }
  const std::string& path() const { return path_; }
  // "259:3", the kernel's number of the open device; "" for a plain file.
  std::string number() const;

  // Reads exactly `size` bytes. Code::failed on an I/O error or beyond the end.
  Result<std::string> read_at(uint64_t offset, size_t size) const;
  Status write_at(uint64_t offset, std::string_view bytes) const;
  // Makes the range read as zeros, without transferring them if the disk supports that.
  Status zero(uint64_t offset, uint64_t size) const;
  Status sync() const;
  // Starts writing this range to the disk and does not wait: a hint, which limits what a power cut can lose
  // and how long sync() takes.
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
