// Owners of files and the account files, read without NSS: the agent is static, so getpwnam() is not
// available. Thread: plain functions over Files; the numbers of users and groups come from /etc/passwd and
// /etc/group below its root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/os.h"

namespace muster::steps {

struct PasswdEntry {
  std::string name;
  int64_t uid = -1, gid = -1;
  std::string home, shell;
};
struct GroupEntry {
  std::string name;
  int64_t gid = -1;
  std::vector<std::string> members;
};
std::optional<PasswdEntry> find_user(const Files& files, const std::string& name);
std::optional<GroupEntry> find_group(const Files& files, const std::string& name);
// Second field of /etc/shadow; empty when there is no such line.
std::string password_field(const Files& files, const std::string& name);

// Result of lstat.
struct FileState {
  bool exists = false, directory = false, regular = false, link = false;
  unsigned mode = 0;
  int64_t uid = -1, gid = -1;
  int64_t modified_us = 0;  // wall clock
};
FileState look(const Files& files, const std::string& path);
// Sets its modification time to now.
Status date_now(const Files& files, const std::string& path);

// "0644" -> 0644; invalid for anything but three or four octal digits.
Result<unsigned> parse_mode(const std::string& text);
// A name or a number; -1 for "".
Result<int64_t> uid_of(const Files& files, const std::string& owner);
Result<int64_t> gid_of(const Files& files, const std::string& group);
// Differences of mode and owner, "" when there are none. -1 leaves the owner alone.
std::string permission_diff(const FileState& state, unsigned mode, int64_t uid, int64_t gid);
// chmod and lchown where they differ.
Status set_permissions(const Files& files, const std::string& path, unsigned mode, int64_t uid, int64_t gid);

}  // namespace muster::steps
