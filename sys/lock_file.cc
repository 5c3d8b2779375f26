#include "sys/lock_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace muster {
namespace {

Result<int> opened(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  return fail(errno == EACCES ? Code::denied : Code::failed,
              fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

Result<LockFile> LockFile::take(const std::string& path, const std::string& held) {
  TRY(const int fd, opened(path));
  LockFile lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const ssize_t n = ::pread(fd, pid, sizeof pid - 1, 0);
    std::string who(pid, n > 0 ? static_cast<size_t>(n) : 0);
    who.erase(who.find_last_not_of('\n') + 1);
    return fail(Code::conflict, fmt::format("{} (pid {})", held, who.empty() ? "unknown" : who));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0)
    return fail(Code::failed, fmt::format("{}: {}", path, std::strerror(errno)));
  return lock;
}

Result<LockFile> LockFile::wait(const std::string& path) {
  TRY(const int fd, opened(path));
  LockFile lock(fd);
  while (::flock(fd, LOCK_EX) != 0)
    if (errno != EINTR) return fail(Code::failed, fmt::format("{}: {}", path, std::strerror(errno)));
  return lock;
}

LockFile::LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace muster
