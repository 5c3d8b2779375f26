#include "sys/open_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <array>

#include <fmt/format.h>

namespace muster {

Error file_error(std::string_view what, const std::string& path, int number) {
  Code code = Code::failed;
  if (number == ENOENT || number == ENOTDIR) code = Code::not_found;
  if (number == EACCES || number == EPERM || number == EROFS) code = Code::denied;
  return fail(code, fmt::format("{} {}: {}", what, path, strerror(number)));
}

Status write_bytes(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error("writing", path, errno);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return Ok{};
}

Result<std::string> read_bytes(int fd, const std::string& path) {
  std::string content;
  struct stat info;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
    content.reserve(static_cast<size_t>(info.st_size));
  std::array<char, 16384> buffer;
  for (;;) {
    ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error("reading", path, errno);
    if (n == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace muster
