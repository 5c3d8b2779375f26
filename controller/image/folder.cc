#include "controller/image/folder.h"

#include <filesystem>

#include "sys/os.h"

namespace muster {

bool valid_image_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name[0] != '-' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string::npos;
}

Result<LockFile> lock_image(const std::string& folder) {
  TRY_(Files("/").make_directories(folder));
  return LockFile::take(folder + "/.lock", folder + ": this image is already being built or imported");
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
