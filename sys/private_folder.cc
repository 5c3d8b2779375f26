#include "sys/private_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "sys/folder_trust.h"
#include "sys/open_names.h"

namespace muster {
namespace {

constexpr std::string_view kOwnName = ".muster.";
constexpr const char* kMark = ".in-use";
constexpr int kTries = 8;
constexpr int kOwnFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool is_own_name(std::string_view name) {
  return name.starts_with(kOwnName) && name.size() == kOwnName.size() + 8 &&
         name.find_first_not_of("0123456789abcdef", kOwnName.size()) == std::string_view::npos;
}

// A folder in one with the set-group-ID bit has that bit.
bool is_private(int folder) {
  struct stat info = {};
  return ::fstat(folder, &info) == 0 && info.st_uid == ::geteuid() && (info.st_mode & 0777) == 0700;
}

// Where nothing can be locked, nothing that was left is removed, so another process cannot be in it.
bool holds(int mark) {
  struct stat info = {};
  if (::flock(mark, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return ::fstat(mark, &info) == 0 && info.st_nlink != 0;
}

void remove_left(int folder) {
  each_name(folder, [&](std::string_view found) {
    if (!is_own_name(found)) return;
    const std::string name(found);
    const OpenFd left(::openat(folder, name.c_str(), kOwnFolder));
    if (!left.open() || !is_private(left.get())) return;
    const OpenFd mark(::openat(left.get(), kMark, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (mark.open()) {
      if (::flock(mark.get(), LOCK_EX | LOCK_NB) != 0) return;
      if (!remove_all_in(left.get(), name, kMark)) return;
      ::unlinkat(left.get(), kMark, 0);
    }
    ::unlinkat(folder, name.c_str(), AT_REMOVEDIR);  // empty, or it stays
  });
}

}  // namespace

bool is_new_folder(int folder) { return is_private(folder) && !has_names(folder); }

Error swapped(const std::string& path) {
  return fail(Code::denied, path +
                                ": another user swaps what is made there for something else, or the file "
                                "system gives what root makes to another user");
}

Result<PrivateFolder> make_private_folder(int folder, const std::string& path) {
  remove_left(folder);
  // In a folder that others cannot write to, FAT gives it another mode, and it is the one that was made.
  const bool foreign = trust_of(folder).others != Others::none;
  for (int i = 0; i < kTries; ++i) {
    PrivateFolder made;
    made.name = std::string(kOwnName) + random_digits();
    if (::mkdirat(folder, made.name.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return file_error("creating a folder in", path, errno);
    }
    made.fd = OpenFd(::openat(folder, made.name.c_str(), kOwnFolder));
    if (!made.fd.open() || (foreign && !is_new_folder(made.fd.get()))) continue;
    made.mark =
        OpenFd(::openat(made.fd.get(), kMark, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const int number = errno;
    if (made.mark.open() && holds(made.mark.get()) && (!foreign || is_private(made.fd.get()))) return made;
    // ENOENT: removed as an empty one that was left, by another process.
    if (made.mark.open() || number == ENOENT || number == EEXIST) continue;
    ::unlinkat(folder, made.name.c_str(), AT_REMOVEDIR);
    return file_error("creating a file in", path + "/" + made.name, number);
  }
  return swapped(path);
}

Status remove_private_folder(int folder, const PrivateFolder& own, const std::string& path) {
  TRY_(remove_all_in(own.fd.get(), path, kMark));
  ::unlinkat(own.fd.get(), kMark, 0);
  if (::unlinkat(folder, own.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Ok{};
  return file_error("removing", path, errno);
}

}  // namespace muster
