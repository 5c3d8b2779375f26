#include "sys/own_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {
namespace {

Status must_be_ours(const std::string& path, bool folder) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0)
    return fail(Code::invalid, fmt::format("{} does not exist on the controller host", path));
  if (folder ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode))
    return fail(Code::invalid, fmt::format("{} is not a {}", path, folder ? "folder" : "regular file"));
  if ((info.st_uid != 0 && info.st_uid != ::geteuid()) || (info.st_mode & (S_IWGRP | S_IWOTH)))
    return fail(
        Code::denied,
        fmt::format("{} is writable by users other than root: run `chown root` and `chmod go-w` on it",
                    path));
  if (!(info.st_mode & S_IXUSR)) return fail(Code::invalid, path + " is not executable");
  return Ok{};
}

}  // namespace

Status must_be_own_program(const std::string& folder, const std::string& name) {
  TRY_(must_be_ours(folder, true));
  return must_be_ours(folder + "/" + name, false);
}

}  // namespace muster
