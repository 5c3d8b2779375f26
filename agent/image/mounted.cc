#include "agent/image/mounted.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace muster {

Result<Mounted> Mounted::mount(const std::string& device, const char* type, const std::string& at,
                               const char* options, Way way) {
  TRY_(Files("/").make_directories(at, 0700));
  unsigned long flags = MS_NOATIME | MS_NODEV;
  if (way == Way::read) flags |= MS_RDONLY;
  if (::mount(device.c_str(), at.c_str(), type, flags, options) != 0)
    return fail(errno == EBUSY ? Code::conflict : Code::failed,
                fmt::format("mounting {} ({}): {}", device, type, strerror(errno)));
  return Mounted(at);
}

Mounted::Mounted(Mounted&& other) noexcept : at_(std::exchange(other.at_, "")) {}

Status Mounted::close() {
  if (at_.empty()) return Ok{};
  const Status synced = sync_file_system(at_);
  const bool gone = ::umount(at_.c_str()) == 0;
  const int error = errno;
  const std::string at = std::exchange(at_, "");
  TRY_(synced);
  return gone ? Status(Ok{}) : fail(Code::failed, "unmounting " + at + ": " + strerror(error));
}

Status sync_file_system(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::syncfs(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return synced ? Status(Ok{}) : fail(Code::failed, "syncing " + folder + ": " + strerror(error));
}

Status grow_ext4(const std::string& at, uint64_t size) {
  const int fd = ::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail(Code::failed, at + ": " + strerror(errno));
  uint64_t blocks = size / 4096;
  const int rc = ::ioctl(fd, _IOW('f', 16, uint64_t), &blocks);  // EXT4_IOC_RESIZE_FS
  const int error = errno;
  ::close(fd);
  return rc == 0 ? Status(Ok{})
                 : fail(Code::failed, fmt::format("growing the root file system: {}", strerror(error)));
}

}  // namespace muster
