// Users and groups of /etc/passwd and /etc/group below the root of Files, read without NSS: programs that are
// linked statically cannot use getpwnam(), and a folder may be the root of another system. Users of a
// directory service are not in them. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

// A number that is none, or does not fit into 32 bits, is -1.
struct PasswdEntry {
  std::string name;
  int64_t uid = -1, gid = -1;
  std::string home, shell;  // "" where the line ends before them
};
struct GroupEntry {
  std::string name;
  int64_t gid = -1;
  std::vector<std::string> members;
};

// In the order of the file; lines without a name, and without a place for the ids, are left out. Empty if the
// file cannot be read.
std::vector<PasswdEntry> users_of(const Files& files);
std::vector<GroupEntry> groups_of(const Files& files);

std::optional<PasswdEntry> find_user(const Files& files, const std::string& name);
// "": no line has this id.
std::string user_of_id(const Files& files, uint32_t uid);
std::optional<GroupEntry> find_group(const Files& files, const std::string& name);

// A decimal id of at most 32 bits, else -1.
int64_t account_id(const std::string& text);

// The fields of a line of these files, and of /etc/shadow; empty ones stay.
std::vector<std::string> account_fields(const std::string& line);

}  // namespace muster
