// Mode and owner of files; owners are named as in /etc/passwd and /etc/group (sys/account_files.h). Thread
// safety: stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sys/account_files.h"

namespace muster::steps {

// As in /etc/shadow; empty if it has no line for this user.
std::string password_field(const Files& files, const std::string& name);

// As Files::look(); a path on which a link is refused counts as one without a file: what is done to it then
// reports the link.
FileState look(const Files& files, const std::string& path);

// The mode and owner that a file must have. -1: any.
struct Access {
  unsigned mode = 0;
  int64_t uid = -1, gid = -1;
  std::string lacks = "";  // which user or group does not exist
};
// Reads "0644", a name or number of a user, and one of a group; the last two may be empty. invalid: the mode.
Result<Access> access_of(const Files& files, const std::string& mode, const std::string& owner,
                         const std::string& group);
// "0644" -> 0644; invalid for anything but three or four octal digits.
Result<unsigned> parse_mode(const std::string& text);
// Resolve a name or a number to a UID or GID; -1 for "".
Result<int64_t> uid_of(const Files& files, const std::string& owner);
Result<int64_t> gid_of(const Files& files, const std::string& group);
// Describes how mode, owner or group differ; "" if they do not. A `uid` or `gid` of -1 is not compared.
std::string permission_diff(const FileState& state, unsigned mode, int64_t uid, int64_t gid);

}  // namespace muster::steps
