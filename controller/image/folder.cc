#include "controller/image/folder.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/json_at.h"
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

bool is_build_name(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Json build_record(const std::string& build) {
  const auto text = Files("/").read(build + "/build.json");
  const auto record = text.ok() ? parse_json(*text) : Result<Json>(text.error());
  return record.ok() && record->is_object() ? *record : Json::object();
}

TimeMs built_at(const std::string& build) {
  if (const TimeMs noted = integer_at(build_record(build), kBuiltAt); noted > 0) return noted;
  struct stat status = {};
  if (::stat((build + "/manifest.json").c_str(), &status) != 0) return 0;
  return static_cast<TimeMs>(status.st_mtim.tv_sec) * kSecond;
}

}  // namespace muster
