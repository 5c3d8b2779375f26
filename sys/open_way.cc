#include "sys/open_way.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "sys/open_names.h"
#include "sys/private_folder.h"

namespace muster {
namespace {

constexpr int kMostFollowed = 40;  // as in the kernel
// O_DIRECTORY also starts what an automounter mounts; O_PATH alone does not.
constexpr int kOpenFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kListFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// Without O_NONBLOCK, a FIFO in the place of a file would hold the caller.
constexpr int kReadFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

bool only_ours(const struct stat& info) {
  return (info.st_uid == 0 || info.st_uid == ::geteuid()) && (info.st_mode & 022) == 0;
}

FileState state_of(const struct stat& s) {
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

bool is_given(FileOwner owner) { return owner.uid >= 0 || owner.gid >= 0; }
// -1 leaves it.
uid_t user_of(FileOwner owner) { return static_cast<uid_t>(owner.uid); }
gid_t group_of(FileOwner owner) { return static_cast<gid_t>(owner.gid); }

bool is_in_proc(int folder) {
  struct statfs system = {};
  return ::fstatfs(folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

std::string absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::array<char, PATH_MAX> folder;
  return ::getcwd(folder.data(), folder.size()) ? std::string(folder.data()) + "/" + path : "/" + path;
}

}  // namespace

// ---- the way

Result<OpenWay> OpenWay::start(const std::string& root, bool makes) {
  OpenWay way;
  TRY_(way.enter(OpenFd(::open("/", kOpenFolder)), ""));
  if (root.empty() || root == "/") return way;
  const Making plain{0755, {}};
  TRY_(way.walk(absolute_path(root), Last::entered, makes ? &plain : nullptr));
  way.base_ = way.folders_.size();
  way.others_ = way.is_foreign();  // what leads to the root is the caller's business
  return way;
}

Result<OpenWay> OpenWay::lead(const std::string& root, const std::string& path, Last last,
                              const Making* making) {
  TRY(OpenWay way, start(root, making != nullptr));
  // Below "/", a path may be relative to the current folder.
  const bool relative = way.base_ == 1 && !path.empty() && path[0] != '/';
  const std::string whole = relative ? absolute_path(path) : path;
  way.path_ = way.folders_.back().path + (whole.empty() || whole[0] != '/' ? "/" : "") + whole;
  TRY_(way.walk(whole, last, making));
  return way;
}

Result<OpenWay> OpenWay::to(const std::string& root, const std::string& path, Missing missing) {
  const Making plain{0755, {}};
  return lead(root, path, Last::named, missing == Missing::make ? &plain : nullptr);
}

Result<OpenWay> OpenWay::through(const std::string& root, const std::string& path) {
  return lead(root, path, Last::followed, nullptr);
}

Result<OpenWay> OpenWay::into(const std::string& root, const std::string& path, unsigned mode,
                              FileOwner owner) {
  const Making making{mode, owner};
  return lead(root, path, Last::entered, &making);
}

Status OpenWay::walk(const std::string& path, Last last, const Making* making) {
  std::vector<Part> rest;
  push_parts(rest, path, false);
  while (!rest.empty()) {
    const Part part = std::move(rest.back());
    const std::string& name = part.name;
    rest.pop_back();
    if (name == "..") {
      if (folders_.size() > base_) folders_.pop_back();
    } else if (!rest.empty() || last == Last::entered) {
      TRY_(step(part, rest, making));
    } else {
      bool followed = false;
      if (last == Last::followed) {
        TRY(followed, follow(part, rest));
      }
      by_link_ = by_link_ || followed;
      if (!followed) name_ = name;
    }
  }
  return Ok{};
}

// Puts the parts of `path` on top of `rest`, from which the last one is taken first.
void OpenWay::push_parts(std::vector<Part>& rest, std::string_view path, bool linked) {
  std::vector<Part> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (const auto part = path.substr(0, slash); !part.empty() && part != ".")
      parts.push_back({std::string(part), linked});
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  rest.insert(rest.end(), parts.rbegin(), parts.rend());
}

// What a link leads to is not made: a disk that is not mounted would be missing there.
Status OpenWay::step(const Part& part, std::vector<Part>& rest, const Making* making) {
  const std::string& name = part.name;
  OpenFd fd(::openat(folder(), name.c_str(), kOpenFolder));
  if (fd.open()) return enter(std::move(fd), part_path(name));
  if (errno == ENOENT && making && part.linked)
    return fail(Code::conflict,
                fmt::format("{}: {}, and {} does not exist: mount or make what the link leads "
                            "to, or remove the link",
                            path_, link_, part_path(name)));
  if (errno == ENOENT && making) return make_folder(name, rest.empty() ? *making : Making{0755, {}});
  // A mount whose server or program is gone cannot be opened, but the folder is there.
  if ((errno == ESTALE || errno == ENOTCONN) && making && rest.empty()) return Ok{};
  if (errno != ENOTDIR && errno != ELOOP) return file_error("opening", part_path(name), errno);
  TRY(const bool followed, follow(part, rest));
  if (followed) return Ok{};
  if (!making) return file_error("opening", part_path(name), ENOTDIR);
  return fail(Code::conflict,
              fmt::format("creating folder {}: a file with that name exists", part_path(name)));
}

Status OpenWay::enter(OpenFd fd, const std::string& path) {
  if (!fd.open()) return file_error("opening", path.empty() ? "/" : path, errno);
  const FolderTrust trust = trust_of(fd.get());
  folders_.push_back({std::move(fd), path, trust});
  others_ = others_ || is_foreign();
  return Ok{};
}

// Its mode and owner are set through the descriptor, and before that only this user can enter it. What others
// have put into its place is not given to anybody.
Status OpenWay::make_folder(const std::string& name, const Making& making) {
  const std::string path = part_path(name);
  const bool made = ::mkdirat(folder(), name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return file_error("creating folder", path, errno);
  OpenFd fd(::openat(folder(), name.c_str(), made ? kListFolder : kOpenFolder));
  if (!fd.open()) return file_error("opening", path, errno);
  if (made && is_foreign() && !is_new_folder(fd.get())) return swapped(path);
  if (made && is_given(making.owner) &&
      ::fchown(fd.get(), user_of(making.owner), group_of(making.owner)) != 0)
    return file_error("setting the owner of", path, errno);
  // Regardless of the umask.
  if (made && ::fchmod(fd.get(), making.mode) != 0) return file_error("setting the mode of", path, errno);
  return enter(std::move(fd), path);
}

// Where others may add entries, root's own are those that they cannot replace, except for a second name that
// they gave to one (fs.protected_hardlinks=0).
bool OpenWay::may_follow(const struct stat& link) const {
  if (::geteuid() != 0) return true;
  const Others others = folders_.back().trust.others;
  return link.st_uid == 0 && (others == Others::none || (others == Others::add && link.st_nlink == 1));
}

// False: it is not a link. Owner and target are read from one open link, so that both are of the same one.
Result<bool> OpenWay::follow(const Part& part, std::vector<Part>& rest) {
  const std::string& name = part.name;
  const OpenFd link(::openat(folder(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!link.open() && errno == ENOENT) return false;
  struct stat info = {};
  if (!link.open() || ::fstat(link.get(), &info) != 0) return file_error("opening", part_path(name), errno);
  if (!S_ISLNK(info.st_mode)) return false;
  if (!may_follow(info)) return refusal(part_path(name), info);
  if (++links_ > kMostFollowed) return file_error("opening", part_path(name), ELOOP);
  // The text of /proc/PID/fd/N is "/" for a file system that was unmounted: only the kernel knows the folder.
  if (base_ == 1 && is_in_proc(folder())) {
    OpenFd there(::openat(folder(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (there.open()) {
      TRY_(enter(std::move(there), part_path(name)));
      return true;
    }
  }
  std::array<char, 4096> target;
  const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
  if (size <= 0) return file_error("reading link", part_path(name), size < 0 ? errno : EINVAL);
  const std::string_view text(target.data(), static_cast<size_t>(size));
  // Of links that lead to others, the first: it is the one that the path has.
  if (!part.linked) link_ = fmt::format("{} is a symbolic link to {}", part_path(name), text);
  if (text[0] == '/') folders_.erase(folders_.begin() + static_cast<std::ptrdiff_t>(base_), folders_.end());
  push_parts(rest, text, true);
  return true;
}

Error OpenWay::refusal(const std::string& part, const struct stat& link) const {
  if (link.st_uid != 0)
    return fail(Code::denied,
                fmt::format("{}: {} is a symbolic link that belongs to {}: root does not follow "
                            "it. Replace the link by what it leads to",
                            path_, part, user_text(link.st_uid)));
  return fail(Code::denied,
              fmt::format("{}: {} is a symbolic link {}: root does not follow it. Give the path that "
                          "it leads to, or replace the link by a bind mount",
                          path_, part, trust_text(folders_.back().trust)));
}

bool OpenWay::is_foreign() const { return folders_.back().trust.others != Others::none; }

std::string OpenWay::part_path(const std::string& name) const { return folders_.back().path + "/" + name; }

// ---- the entry

Result<FileState> OpenWay::look() const {
  struct stat info = {};
  if (::fstatat(folder(), name_.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return state_of(info);
  if (errno == ENOENT || errno == ENOTDIR) return FileState();
  return file_error("looking at", path_, errno);
}

Result<OpenFd> OpenWay::open_file(Writers writers) const {
  OpenFd fd(::openat(folder(), name_.c_str(), kReadFile));
  struct stat info = {};
  if (!fd.open() || ::fstat(fd.get(), &info) != 0) {
    const int number = errno;
    if (number == ELOOP) return fail(Code::conflict, path_ + " is a symbolic link");
    return file_error("opening", path_, number);
  }
  if (!S_ISREG(info.st_mode)) return fail(Code::conflict, path_ + " is not a regular file");
  if (writers == Writers::any || only_ours(info)) return fd;
  return fail(
      Code::denied,
      fmt::format("{} can be changed by users other than root while it is read (UID {}, mode {:04o}): "
                  "give it to root, and take the right to write from all others",
                  path_, info.st_uid, info.st_mode & 07777));
}

Result<FileText> OpenWay::read() const {
  TRY(const OpenFd fd, open_file(Writers::any));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return file_error("opening", path_, errno);
  TRY(std::string text, read_bytes(fd.get(), path_));
  return FileText{state_of(info), std::move(text), by_link_};
}

Result<std::string> OpenWay::read_link() const {
  std::array<char, 4096> target;
  const ssize_t size = ::readlinkat(folder(), name_.c_str(), target.data(), target.size());
  if (size < 0) return file_error("reading link", path_, errno);
  return std::string(target.data(), static_cast<size_t>(size));
}

// A rename is durable only once its folder is synced.
Status OpenWay::sync_folder() const {
  const OpenFd fd(::openat(folder(), ".", kListFolder));
  if (!fd.open()) return file_error("opening the folder of", path_, errno);
  // Some file systems (FAT, overlay variants) cannot sync a folder and return EINVAL; nothing is lost.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return file_error("syncing the folder of", path_, errno);
  return Ok{};
}

Status OpenWay::write(const Fill& fill, unsigned mode, FileOwner owner, Existing existing) const {
  const std::string temporary = fmt::format("{}.{}", name_, random_digits());
  const OpenFd fd(
      ::openat(folder(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.open()) return file_error("creating", path_, errno);
  Status status = fill(fd.get());
  // The owner first: chown clears the set-user-ID bits.
  if (status.ok() && is_given(owner) && ::fchown(fd.get(), user_of(owner), group_of(owner)) != 0)
    status = file_error("setting the owner of", path_, errno);
  if (status.ok() && ::fchmod(fd.get(), mode) != 0) status = file_error("setting the mode of", path_, errno);
  if (status.ok() && ::fsync(fd.get()) != 0) status = file_error("syncing", path_, errno);
  if (status.ok() && existing == Existing::replaced &&
      ::renameat(folder(), temporary.c_str(), folder(), name_.c_str()) != 0)
    status = file_error("replacing", path_, errno);
  // linkat() fails if the name exists; renameat() would replace the file.
  if (status.ok() && existing == Existing::kept &&
      ::linkat(folder(), temporary.c_str(), folder(), name_.c_str(), 0) != 0)
    status = errno == EEXIST ? Status(fail(Code::conflict, path_ + ": already exists"))
                             : Status(file_error("creating", path_, errno));
  if (!status.ok() || existing == Existing::kept) ::unlinkat(folder(), temporary.c_str(), 0);
  TRY_(status);
  return sync_folder();
}

Status OpenWay::keep_shared(const struct stat& file) const {
  if (!is_foreign() || !S_ISREG(file.st_mode) || file.st_nlink < 2) return Ok{};
  return fail(Code::denied, fmt::format("{} has {} names (hard links) in a folder that users other than root "
                                        "can write to, so it may be another user's file: it is not changed. "
                                        "Remove it",
                                        path_, file.st_nlink));
}

Status OpenWay::append(std::string_view content) const {
  constexpr int kPlain = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  OpenFd fd(::openat(folder(), name_.c_str(), kPlain | O_APPEND | O_CREAT, 0644));
  // /proc and /sys reject O_CREAT where the attribute does not exist, and some attributes reject O_APPEND.
  if (!fd.open()) fd = OpenFd(::openat(folder(), name_.c_str(), kPlain));
  struct stat info = {};
  if (!fd.open() || ::fstat(fd.get(), &info) != 0) return file_error("opening", path_, errno);
  TRY_(keep_shared(info));
  return write_bytes(fd.get(), content, path_);
}

// Replaced by rename, so that readers never see it missing.
Status OpenWay::make_link(const std::string& target) const {
  const std::string temporary = fmt::format("{}.{}", name_, random_digits());
  if (::symlinkat(target.c_str(), folder(), temporary.c_str()) != 0)
    return file_error("linking", path_, errno);
  if (::renameat(folder(), temporary.c_str(), folder(), name_.c_str()) != 0) {
    const int number = errno;
    ::unlinkat(folder(), temporary.c_str(), 0);
    return file_error("linking", path_, number);
  }
  return sync_folder();
}

Status OpenWay::set_permissions(unsigned mode, FileOwner owner) const {
  const OpenFd fd(::openat(folder(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!fd.open() && errno == ENOENT) return fail(Code::not_found, path_ + " does not exist");
  if (!fd.open() || ::fstat(fd.get(), &info) != 0) return file_error("opening", path_, errno);
  const bool given =
      (owner.uid >= 0 && info.st_uid != owner.uid) || (owner.gid >= 0 && info.st_gid != owner.gid);
  // A symbolic link has no mode of its own.
  const bool moded = !S_ISLNK(info.st_mode) && ((info.st_mode & 07777) != mode || given);
  if (given || moded) TRY_(keep_shared(info));
  if (given && ::fchownat(fd.get(), "", user_of(owner), group_of(owner), AT_EMPTY_PATH) != 0)
    return fail(Code::denied, file_error("cannot change the owner of", path_, errno).message);
  // After the owner, because chown clears the set-user-ID bits. fchmod() does not take such a descriptor.
  const std::string opened = fmt::format("/proc/self/fd/{}", fd.get());
  if (moded && ::chmod(opened.c_str(), mode) != 0)
    return fail(Code::denied, file_error("cannot change the mode of", path_, errno).message);
  return Ok{};
}

Status OpenWay::date_now() const {
  timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_nsec = UTIME_NOW;
  if (::utimensat(folder(), name_.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) return Ok{};
  return fail(Code::denied, file_error("cannot set the mtime of", path_, errno).message);
}

Status OpenWay::move_to(const OpenWay& to) const {
  if (::renameat(folder(), name_.c_str(), to.folder(), to.name_.c_str()) == 0) return Ok{};
  return file_error("moving " + path_ + " to", to.path_, errno);
}

Status OpenWay::remove() const {
  if (::unlinkat(folder(), name_.c_str(), 0) == 0 || errno == ENOENT) return Ok{};
  const int number = errno;
  if (number != EISDIR && number != EPERM) return file_error("removing", path_, number);
  if (::unlinkat(folder(), name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Ok{};
  // EPERM is also that of a file that may not be removed.
  return file_error("removing", path_, errno == ENOTDIR ? number : errno);
}

Status OpenWay::remove_tree() const { return remove_entry(folder(), name_, path_); }

Status OpenWay::in_private_folder(const std::string& name,
                                  const std::function<Status(const OpenWay&)>& work) const {
  TRY(const PrivateFolder own, make_private_folder(folder(), folders_.back().path));
  OpenWay inside;
  TRY_(inside.enter(OpenFd(::fcntl(own.fd.get(), F_DUPFD_CLOEXEC, 3)), part_path(own.name)));
  inside.name_ = name;
  inside.path_ = part_path(own.name) + "/" + name;
  inside.others_ = inside.others_ || others_;
  const Status done = work(inside);
  const Status removed = remove_private_folder(folder(), own, part_path(own.name));
  TRY_(done);
  return removed;
}

// The folder is opened where only this user can put something into its place.
Result<OpenWay> OpenWay::make_open(unsigned mode) const {
  TRY(OpenWay made, sibling(name_));
  TRY_(made.make_folder(name_, {mode, {}}));
  made.name_ = ".";
  return made;
}

Result<OpenWay> OpenWay::sibling(const std::string& name) const {
  OpenWay out;
  TRY_(out.enter(OpenFd(::fcntl(folder(), F_DUPFD_CLOEXEC, 3)), folders_.back().path));
  out.name_ = name;
  out.path_ = part_path(name);
  out.others_ = out.others_ || others_;
  return out;
}

std::string OpenWay::own_path() const { return fmt::format("/proc/self/fd/{}/{}", folder(), name_); }

}  // namespace muster
