#include "sys/path_kind.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace muster {
namespace {

PathKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return PathKind::file;
  if (S_ISDIR(mode)) return PathKind::folder;
  if (S_ISSOCK(mode)) return PathKind::socket;
  return S_ISLNK(mode) ? PathKind::link : PathKind::other;
}

const char* kind_word(PathKind kind) {
  switch (kind) {
    case PathKind::nothing:
      return "nothing";
    case PathKind::file:
      return "a file";
    case PathKind::folder:
      return "a folder";
    case PathKind::socket:
      return "a socket";
    case PathKind::link:
      return "a symbolic link";
    case PathKind::other:
      break;
  }
  return "a device or a pipe";
}

std::string kind_words(const std::vector<PathKind>& kinds) {
  std::string out;
  for (const PathKind kind : kinds) out += (out.empty() ? "" : " or ") + std::string(kind_word(kind));
  return out;
}

Result<PathKind> kind_at(const std::string& path, bool follow) {
  struct stat info = {};
  if ((follow ? ::stat(path.c_str(), &info) : ::lstat(path.c_str(), &info)) == 0)
    return kind_of(info.st_mode);
  if (errno == ENOENT) return PathKind::nothing;
  return fail(errno == EACCES ? Code::denied : Code::failed,
              fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

Status expect_at(const std::string& path, const std::vector<PathKind>& wanted) {
  const auto wants = [&](PathKind kind) {
    return std::find(wanted.begin(), wanted.end(), kind) != wanted.end();
  };
  TRY(const PathKind found, kind_at(path, wants(PathKind::file) || wants(PathKind::folder)));
  if (wants(found)) return Ok{};
  if (wanted == std::vector<PathKind>{PathKind::nothing})
    return fail(Code::conflict, fmt::format("{}: already exists ({}): give a name that is not there yet",
                                            path, kind_word(found)));
  return fail(found == PathKind::nothing ? Code::not_found : Code::invalid,
              fmt::format("{}: expected {}, found {}", path, kind_words(wanted), kind_word(found)));
}

std::string wrong_path(const std::string& given, const std::vector<PathKind>& wanted) {
  const Status fine = given.empty() ? Status(Ok{}) : expect_at(given, wanted);
  return fine.ok() ? "" : fine.error().message;
}

}  // namespace muster
