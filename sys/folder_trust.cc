#include "sys/folder_trust.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sys/account_files.h"

namespace muster {
namespace {

// Those that a node's own paths lie on. Not ocfs2 and gfs2, whose disk other machines write to, not eCryptfs,
// which may lie on any other, and not 9p: there it is the host's root.
constexpr std::array<uint64_t, 27> kLocal = {
    EXT4_SUPER_MAGIC,  // ext2 and ext3, too
    XFS_SUPER_MAGIC,     BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, NILFS_SUPER_MAGIC,
    0x2fc12fc1,  // ZFS
    0xca451a4e,  // bcachefs
    0x3153464a,  // JFS
    MSDOS_SUPER_MAGIC,
    0x2011bab0,  // exFAT
    ISOFS_SUPER_MAGIC,   SQUASHFS_MAGIC,
    0xe0f5e1e2,   // EROFS
    0x794c7630,   // overlay: a system that boots with one is its lower layers'
    TMPFS_MAGIC,  // devtmpfs, too
    RAMFS_MAGIC,  // an initramfs
    HUGETLBFS_MAGIC,
    AUTOFS_SUPER_MAGIC,  // what it mounts has a type of its own
    DEVPTS_SUPER_MAGIC,  PROC_SUPER_MAGIC,  SYSFS_MAGIC,      CGROUP_SUPER_MAGIC,
    CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,     TRACEFS_MAGIC,    SECURITYFS_MAGIC,
    0x62656570,  // configfs
};

// The group's bits of the mode are then the most that any user of the list has.
bool has_acl(int folder) {
  const std::string opened = fmt::format("/proc/self/fd/{}", folder);
  return ::getxattr(opened.c_str(), "system.posix_acl_access", nullptr, 0) >= 0 ||
         (errno != ENODATA && errno != EOPNOTSUPP);
}

std::string group_text(uint64_t gid) {
  for (const auto& group : groups_of(Files("/")))
    if (group.gid == static_cast<int64_t>(gid)) return fmt::format("{} (GID {})", group.name, gid);
  return fmt::format("GID {}", gid);
}

}  // namespace

bool is_local_file_system(uint64_t type) {
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

std::string user_text(uint64_t uid) {
  const std::string name = user_of_id(Files("/"), static_cast<uint32_t>(uid));
  return name.empty() ? fmt::format("UID {}", uid) : fmt::format("{} (UID {})", name, uid);
}

FolderTrust trust_of(int folder) {
  using Because = FolderTrust::Because;
  struct stat info = {};
  struct statfs system = {};
  // Both fail on the root of a mount whose program is gone.
  if (::fstat(folder, &info) != 0 || ::fstatfs(folder, &system) != 0) return {};
  // Its type is negative where a `long` has 32 bits.
  const uint64_t type = static_cast<uint32_t>(system.f_type);
  if (!is_local_file_system(type)) return {Others::replace, Because::file_system, type};
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) return {Others::replace, Because::owner, info.st_uid};
  const bool all = (info.st_mode & S_IWOTH) != 0;
  const bool group = (info.st_mode & S_IWGRP) != 0 && (info.st_gid != 0 || has_acl(folder));
  if (!all && !group) return {Others::none, Because::nothing, 0};
  return {(info.st_mode & S_ISVTX) != 0 ? Others::add : Others::replace, all ? Because::all : Because::group,
          all ? 0 : info.st_gid};
}

std::string trust_text(const FolderTrust& trust) {
  using Because = FolderTrust::Because;
  switch (trust.because) {
    case Because::file_system:
      return fmt::format("on a file system (type {:#x}) that is not known to be this machine's alone",
                         trust.id);
    case Because::owner:
      return "in a folder of " + user_text(trust.id);
    case Because::group:
      return fmt::format("in a folder that group {}{} can write to", group_text(trust.id),
                         trust.id == 0 ? " or users of its ACL" : "");
    case Because::all:
      return "in a folder that all users can write to";
    case Because::gone:
      return "in a folder that cannot be read";
    case Because::nothing:
      break;
  }
  return "in a folder of root";
}

}  // namespace muster
