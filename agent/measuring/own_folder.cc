#include "agent/measuring/own_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "base/digest.h"

namespace muster {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// Takes the descriptor.
std::vector<std::string> names_in(int fd) {
  std::vector<std::string> out;
  DIR* folder = ::fdopendir(fd);
  if (!folder) {
    ::close(fd);
    return out;
  }
  while (const dirent* entry = ::readdir(folder))
    if (const std::string_view name = entry->d_name; name != "." && name != "..") out.emplace_back(name);
  ::closedir(folder);
  return out;
}

}  // namespace

OwnFolder::OwnFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  const std::string above = path.substr(0, slash) + "/";
  name_ = ".muster." + random_hex(8);
  path_ = above + name_;
  above_ = ::open(above.c_str(), kFolder);
}

OwnFolder::~OwnFolder() {
  if (above_ >= 0) ::close(above_);
}

Status OwnFolder::make() const {
  static const std::string what = "cannot create a folder for the data that steps share";
  if (above_ < 0) return fail(Code::failed, what);
  if (::mkdirat(above_, name_.c_str(), 0700) != 0)
    return fail(Code::failed, what + ": " + path_ + ": " + strerror(errno));
  return Ok{};
}

void OwnFolder::remove() const {
  if (above_ < 0) return;
  const int fd = ::openat(above_, name_.c_str(), kFolder | O_NOFOLLOW);
  if (fd < 0) return;
  struct stat status = {};
  if (::fstat(fd, &status) == 0 && status.st_uid == ::geteuid()) {
    for (const std::string& name : names_in(::dup(fd)))
      if (::unlinkat(fd, name.c_str(), 0) != 0) ::unlinkat(fd, name.c_str(), AT_REMOVEDIR);
    ::unlinkat(above_, name_.c_str(), AT_REMOVEDIR);
  }
  ::close(fd);
}

}  // namespace muster
