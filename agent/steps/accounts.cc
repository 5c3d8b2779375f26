#include "agent/steps/accounts.h"

#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include <fmt/format.h>

#include "agent/steps/step_modules.h"

namespace muster::steps {
std::string password_field(const Files& files, const std::string& name) {
  for (const std::string& line : split_lines(files.read("/etc/shadow").value_or("")))
    if (const auto fields = account_fields(line); fields.size() > 1 && fields[0] == name) return fields[1];
  return "";
}

FileState look(const Files& files, const std::string& path) {
  struct stat s = {};
  if (lstat(files.real(path).c_str(), &s) != 0) return {};
  FileState out;
  out.exists = true;
  out.directory = S_ISDIR(s.st_mode);
  out.regular = S_ISREG(s.st_mode);
  out.link = S_ISLNK(s.st_mode);
  out.mode = s.st_mode & 07777;
  out.uid = s.st_uid;
  out.gid = s.st_gid;
  out.modified_us = static_cast<int64_t>(s.st_mtim.tv_sec) * 1000000 + s.st_mtim.tv_nsec / 1000;
  return out;
}

Status date_now(const Files& files, const std::string& path) {
  timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_nsec = UTIME_NOW;
  if (utimensat(AT_FDCWD, files.real(path).c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) return Ok{};
  return fail(Code::denied, "cannot set the mtime of " + path + ": " + strerror(errno));
}

Result<unsigned> parse_mode(const std::string& text) {
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || text.size() < 3 || text.size() > 4 ||
      mode > 07777)
    return fail(Code::invalid, "mode '" + text + "' must be three or four octal digits");
  return mode;
}

Result<int64_t> uid_of(const Files& files, const std::string& owner) {
  if (owner.empty()) return int64_t{-1};
  if (const int64_t id = account_id(owner); id >= 0) return id;
  if (const auto user = find_user(files, owner); user && user->uid >= 0) return user->uid;
  return fail(Code::not_found, "user '" + owner + "' does not exist");
}

Result<int64_t> gid_of(const Files& files, const std::string& group) {
  if (group.empty()) return int64_t{-1};
  if (const int64_t id = account_id(group); id >= 0) return id;
  if (const auto entry = find_group(files, group); entry && entry->gid >= 0) return entry->gid;
  return fail(Code::not_found, "group '" + group + "' does not exist");
}

Result<Access> access_of(const Files& files, const std::string& mode, const std::string& owner,
                         const std::string& group) {
  Access out;
  TRY(out.mode, parse_mode(mode));
  const auto uid = uid_of(files, owner), gid = gid_of(files, group);
  if (!uid.ok() || !gid.ok()) out.lacks = (uid.ok() ? gid : uid).error().message;
  out.uid = uid.value_or(-1);
  out.gid = gid.value_or(-1);
  return out;
}

std::string permission_diff(const FileState& state, unsigned mode, int64_t uid, int64_t gid) {
  std::vector<std::string> out;
  if (state.mode != mode) out.push_back(fmt::format("mode {:04o} -> {:04o}", state.mode, mode));
  if (uid >= 0 && state.uid != uid) out.push_back(fmt::format("owner {} -> {}", state.uid, uid));
  if (gid >= 0 && state.gid != gid) out.push_back(fmt::format("group {} -> {}", state.gid, gid));
  return join(out, ", ");
}

Status set_permissions(const Files& files, const std::string& path, unsigned mode, int64_t uid, int64_t gid) {
  const FileState now = look(files, path);
  if (!now.exists) return fail(Code::not_found, path + " does not exist");
  const std::string real = files.real(path);
  const bool owner = (uid >= 0 && now.uid != uid) || (gid >= 0 && now.gid != gid);
  if (owner && lchown(real.c_str(), uid >= 0 ? static_cast<uid_t>(uid) : static_cast<uid_t>(-1),
                      gid >= 0 ? static_cast<gid_t>(gid) : static_cast<gid_t>(-1)) != 0)
    return fail(Code::denied, "cannot change the owner of " + path + ": " + strerror(errno));
  // After the owner, because chown clears the set-user-ID bits. A symbolic link has no mode of its own.
  if (!now.link && (now.mode != mode || owner) && chmod(real.c_str(), mode) != 0)
    return fail(Code::denied, "cannot change the mode of " + path + ": " + strerror(errno));
  return Ok{};
}

}  // namespace muster::steps
