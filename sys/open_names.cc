#include "sys/open_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <vector>

#include <fmt/format.h>

#include "sys/open_fd.h"

namespace muster {

void each_name(int folder, const std::function<void(std::string_view)>& use) {
  OpenFd fd(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* names = fd.open() ? ::fdopendir(fd.get()) : nullptr;
  if (!names) return;
  (void)fd.release();
  while (const dirent* entry = ::readdir(names))
    if (const std::string_view name = entry->d_name; name != "." && name != "..") use(name);
  ::closedir(names);
}

bool has_names(int folder) {
  bool any = false;
  each_name(folder, [&](std::string_view) { any = true; });
  return any;
}

// Not from base/digest.h: each program that writes a file would carry OpenSSL. Early at boot there may be no
// random bytes yet.
std::string random_digits() {
  uint32_t bits = 0;
  timespec now = {};
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits &&
      ::clock_gettime(CLOCK_MONOTONIC, &now) == 0)
    bits = static_cast<uint32_t>(now.tv_nsec);
  return fmt::format("{:08x}", bits);
}

Status remove_entry(int folder, const std::string& name, const std::string& path) {
  if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return Ok{};
  const int number = errno;
  if (number != EISDIR && number != EPERM) return file_error("removing", path, number);
  const OpenFd inside(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // EPERM is also that of a file that may not be removed.
  if (!inside.open()) return file_error("removing", path, errno == ENOTDIR ? number : errno);
  TRY_(remove_all_in(inside.get(), path));
  if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Ok{};
  return file_error("removing", path, errno);
}

Status remove_all_in(int folder, const std::string& path, std::string_view kept) {
  std::vector<std::string> names;
  each_name(folder, [&](std::string_view name) {
    if (name != kept) names.emplace_back(name);
  });
  for (const std::string& name : names) TRY_(remove_entry(folder, name, path + "/" + name));
  return Ok{};
}

}  // namespace muster
