#include "agent/disk/block_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster {

Result<BlockDevice> BlockDevice::open(const std::string& path, Access access) {
  const int flags = access == Access::read           ? O_RDONLY
                    : access == Access::shared_write ? O_RDWR
                                                     : O_RDWR | O_EXCL;
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    const Code code = error == ENOENT ? Code::not_found : error == EBUSY ? Code::conflict : Code::failed;
    return fail(code, fmt::format("opening {}: {}", path,
                                  error == EBUSY ? "it is in use (mounted, part of an array, or used as swap)"
                                                 : strerror(error)));
  }
  struct stat st = {};
  ::fstat(fd, &st);
  BlockDevice device(path, fd, S_ISBLK(st.st_mode));
  if (!device.block_) {
    device.size_ = static_cast<uint64_t>(st.st_size);
    return device;
  }
  int logical = 512;
  if (::ioctl(fd, BLKGETSIZE64, &device.size_) != 0)
    return fail(Code::failed, path + ": its size cannot be read");
  int read_only = 0;
  if (access != Access::read && ::ioctl(fd, BLKROGET, &read_only) == 0 && read_only != 0)
    return fail(Code::denied, path + " is read-only: nothing can be written to it");
  if (::ioctl(fd, BLKSSZGET, &logical) == 0) device.logical_block_ = static_cast<uint32_t>(logical);
  return device;
}

BlockDevice::BlockDevice(BlockDevice&& other) noexcept { *this = std::move(other); }
BlockDevice& BlockDevice::operator=(BlockDevice&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(block_, other.block_);
  std::swap(size_, other.size_);
  std::swap(logical_block_, other.logical_block_);
  return *this;
}
BlockDevice::~BlockDevice() {
  if (fd_ >= 0) ::close(fd_);
}

std::string BlockDevice::number() const {
  struct stat st = {};
  if (!block_ || ::fstat(fd_, &st) != 0) return "";
  return fmt::format("{}:{}", major(st.st_rdev), minor(st.st_rdev));
}

Result<std::string> BlockDevice::read_at(uint64_t offset, size_t size) const {
  if (offset > size_ || size > size_ - offset)
    return fail(Code::failed, path_ + ": read beyond the end of the device");
  std::string out(size, '\0');
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::pread(fd_, out.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(Code::failed, fmt::format("{}: reading at {}: {}", path_, offset + done,
                                            n < 0 ? strerror(errno) : "end"));
    done += static_cast<size_t>(n);
  }
  return out;
}

Status BlockDevice::write_at(uint64_t offset, std::string_view bytes) const {
  if (offset > size_ || bytes.size() > size_ - offset)
    return fail(Code::failed, path_ + ": write beyond the end of the device");
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(Code::failed, fmt::format("{}: writing at {}: {}", path_, offset + done, strerror(errno)));
    done += static_cast<size_t>(n);
  }
  return Ok{};
}

Status BlockDevice::zero(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset)
    return fail(Code::failed, path_ + ": write beyond the end of the device");
  if (size == 0) return Ok{};
  if (block_) {
    uint64_t range[2] = {offset, size};
    if (::ioctl(fd_, BLKZEROOUT, range) == 0) return Ok{};
  } else if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                         static_cast<off_t>(size)) == 0) {
    return Ok{};
  }
  const std::string zeros(std::min<uint64_t>(size, 1 << 20), '\0');
  for (uint64_t done = 0; done < size; done += zeros.size())
    TRY_(write_at(offset + done,
                  std::string_view(zeros).substr(0, std::min<uint64_t>(zeros.size(), size - done))));
  return Ok{};
}

Status BlockDevice::sync() const {
  if (::fsync(fd_) == 0) return Ok{};
  return fail(Code::failed, fmt::format("{}: fsync: {}", path_, strerror(errno)));
}

void BlockDevice::begin_sync(uint64_t offset, uint64_t size) const {
  (void)::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
}

Status BlockDevice::reread_partitions() const {
  if (!block_ || ::ioctl(fd_, BLKRRPART) == 0) return Ok{};
  return fail(Code::failed, fmt::format("{}: the kernel did not accept the new partition table: {}", path_,
                                        strerror(errno)));
}

std::string partition_path(const std::string& disk, int number) {
  const bool digit = !disk.empty() && std::isdigit(static_cast<unsigned char>(disk.back()));
  return fmt::format("{}{}{}", disk, digit ? "p" : "", number);
}

}  // namespace muster
