// FolderTrust: what other users can do to the entries of an open folder.
//
// That an entry belongs to root shows that this machine's root made it only where no other machine writes and
// no program invents owners: on CephFS, MooseFS and NFS the root of another machine may have made it, and
// FUSE shows what its program says. So a folder counts as one of others unless its file system is known as
// local. Write permission of a group is that of others, too: it has accounts of a directory service, and
// programs that run with a group of their own, which are in no file of members. Only group 0 is root's own,
// and only without an ACL, whose users the mode does not show. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// Of users other than root and this process' own. `add`: they may add entries, but neither remove nor replace
// those of root (the sticky bit, as of /tmp).
enum class Others { none, add, replace };

struct FolderTrust {
  enum class Because { nothing, gone, file_system, owner, group, all };
  Others others = Others::replace;
  Because because = Because::gone;
  uint64_t id = 0;  // type of the file system, UID or GID
};

FolderTrust trust_of(int folder);
// "in a folder that all users can write to"
std::string trust_text(const FolderTrust& trust);
// "mpi (UID 920)"
std::string user_text(uint64_t uid);
// True if this kernel alone writes to file systems of this type (statfs(2)).
bool is_local_file_system(uint64_t type);

}  // namespace muster
