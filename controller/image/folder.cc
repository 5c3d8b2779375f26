#include "controller/image/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "base/os.h"

namespace muster {

bool valid_image_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name[0] != '-' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string::npos;
}

Result<ImageLock> ImageLock::take(const std::string& folder) {
  TRY_(Files("/").make_directories(folder));
  ImageLock lock(::open((folder + "/.lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (lock.fd_ < 0 || ::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0)
    return fail(Code::conflict, folder + ": this image is being built or imported already");
  return lock;
}

ImageLock::~ImageLock() {
  if (fd_ >= 0) ::close(fd_);
}

Status make_current(const std::string& folder, const std::string& version) {
  const Files files("/");
  TRY_(files.remove(folder + "/.current"));
  TRY_(files.symlink(version, folder + "/.current"));
  std::error_code ec;
  std::filesystem::rename(folder + "/.current", folder + "/current", ec);
  if (ec) return fail(Code::failed, folder + "/current: " + ec.message());
  return Ok{};
}

}  // namespace muster
