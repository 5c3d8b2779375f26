#include "sys/foreign_entries.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <vector>

#include "sys/open_names.h"
#include "sys/open_way.h"

namespace muster {
namespace {

constexpr int kDeepest = 100;  // each level is an open folder, and an account makes as many as it likes

struct Count {
  int64_t uid;
  dev_t device;
  ForeignEntries found;
};

// The names of a folder are read before those below it: one open descriptor for each level.
void count_below(int folder, const std::string& path, int level, Count& count) {
  std::vector<std::string> folders;
  each_name(folder, [&](std::string_view found) {
    const std::string name(found);
    struct stat info = {};
    if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return;
    if (S_ISDIR(info.st_mode) && info.st_dev == count.device) folders.push_back(name);
    if (info.st_uid == 0 || info.st_uid == static_cast<uid_t>(count.uid)) return;
    if (count.found.count++ != 0) return;
    count.found.first = path + "/" + name;
    count.found.uid = info.st_uid;
  });
  for (const std::string& name : folders) {
    if (level == kDeepest) return;
    const OpenFd below(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (below.open()) count_below(below.get(), path + "/" + name, level + 1, count);
  }
}

}  // namespace

ForeignEntries foreign_entries(const Files& files, const std::string& path, int64_t uid) {
  Count count{uid, 0, {}};
  const auto way = OpenWay::to(files.root(), path + "/any");
  struct stat info = {};
  if (!way.ok() || ::fstat(way->folder(), &info) != 0) return {};
  count.device = info.st_dev;
  count_below(way->folder(), path, 1, count);
  return count.found;
}

}  // namespace muster
