// Below a folder of another user, root changes nothing that a link of that user leads to, also while the user
// swaps parts of the path.
#include "sys/open_way.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "sys/os.h"
#include "sys/os_release.h"
#include "tests/catch.h"
#include "tests/fakes/own_mounts.h"
#include "tests/fakes/temp_dir.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kUser = 65534;  // without a file anywhere else
constexpr const char* kJob = "/etc/cron.d/job";

// Only root gives a file away.
bool is_root() {
  if (::geteuid() == 0) return true;
  WARN("skipped: needs root");
  return false;
}

// A system with a file that is root's alone, and the home of a user.
struct System {
  TempDir dir;
  Files files{dir.path("")};

  System() {
    REQUIRE(files.write(kJob, "root's", 0600));
    REQUIRE(files.make_directories("/etc/empty", 0700));
    REQUIRE(files.make_directories("/home/u/.ssh", 0700, {kUser, kUser}));
    own("/home/u");
  }
  void own(const std::string& path) const { REQUIRE(::lchown(files.real(path).c_str(), kUser, kUser) == 0); }
  void link(const std::string& target, const std::string& path) const {
    fs::create_symlink(target, files.real(path));
    own(path);
  }
  void hard_link(const std::string& of, const std::string& path) const {
    fs::create_hard_link(files.real(of), files.real(path));
  }
  FileState state(const std::string& path) const { return *files.look(path); }
  // Whether nothing below /etc is another than at the start.
  bool is_intact() const {
    const FileState job = state(kJob), folder = state("/etc/cron.d"), empty = state("/etc/empty");
    return files.read(kJob).value_or("") == "root's" && job.mode == 0600 && job.uid == 0 &&
           folder.mode == 0755 && folder.uid == 0 && empty.mode == 0700 && empty.uid == 0 &&
           files.list("/etc/cron.d") == std::vector<std::string>{"job"} && files.list("/etc/empty").empty();
  }
};

template <typename T>
bool is_refused(const Result<T>& done) {
  return !done.ok() && done.error().code == Code::denied;
}

// Lets kUser write to a folder of root's, which its mode then shows as a right of the group. False: not here.
bool give_acl(const std::string& path) {
  struct Entry {
    uint16_t tag, rights;
    uint32_t id;
  };
  constexpr uint32_t kNone = 0xffffffff;
  constexpr uint16_t kOwnUser = 1, kNamedUser = 2, kOwnGroup = 4, kMask = 0x10, kOther = 0x20;
  struct {
    uint32_t version = 2;
    Entry entries[5] = {{kOwnUser, 7, kNone},
                        {kNamedUser, 7, kUser},
                        {kOwnGroup, 5, kNone},
                        {kMask, 7, kNone},
                        {kOther, 5, kNone}};
  } acl;
  if (::setxattr(path.c_str(), "system.posix_acl_access", &acl, sizeof acl, 0) == 0) return true;
  WARN("skipped: the file system has no ACLs");
  return false;
}

bool exchange(const std::string& one, const std::string& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

TEST_CASE("a user's link on the way is refused by all that changes something", "[base][links]") {
  if (!is_root()) return;
  const System s;
  std::string at = "/home/u/.ssh";
  fs::remove(s.files.real(at));
  SECTION("the folder") { s.link("../../etc/cron.d", "/home/u/.ssh"); }
  SECTION("a folder above") {
    s.link("../../etc", "/home/u/.ssh");
    at += "/cron.d";
  }
  SECTION("through a link of root") {
    s.link("../../etc/cron.d", "/home/u/.ssh");
    REQUIRE(s.files.symlink("home", "/people"));
    at = "/people/u/.ssh";
  }
  const Files& files = s.files;
  CHECK(is_refused(files.write(at + "/new", "x")));
  CHECK(is_refused(files.write(at + "/job", "x", 0644, {kUser, kUser})));
  CHECK(is_refused(files.write_raw(at + "/job", "x")));
  CHECK(is_refused(files.make_directories(at + "/new")));
  CHECK(is_refused(files.set_permissions(at + "/job", 0644, {kUser, kUser})));
  CHECK(is_refused(files.date_now(at + "/job")));
  CHECK(is_refused(files.symlink("x", at + "/new")));
  CHECK(is_refused(files.move(at + "/job", "/home/u/job")));
  CHECK(is_refused(files.move("/home/u", at + "/u")));
  CHECK(is_refused(files.remove(at + "/job")));
  CHECK(is_refused(files.remove_tree(at + "/job")));
  CHECK(is_refused(files.look(at + "/job")));
  CHECK(is_refused(files.open_text(at + "/job")));
  CHECK(s.is_intact());
}

TEST_CASE("the refusal names the link and whose it is", "[base][links]") {
  if (!is_root()) return;
  const System s;
  s.link("../../etc", "/home/u/x");
  const Status refused = s.files.write("/home/u/x/cron.d/new", "");
  REQUIRE(is_refused(refused));
  CHECK(refused.error().message.find(s.files.real("/home/u/x") + " ") != std::string::npos);
  CHECK(refused.error().message.find(std::to_string(kUser)) != std::string::npos);
}

TEST_CASE("the last part is not followed", "[base][links]") {
  if (!is_root()) return;
  const System s;
  const std::string at = "/home/u/key";
  SECTION("a link to a file") { s.link("../../etc/cron.d/job", at); }
  SECTION("a link to nothing") { s.link("../../etc/cron.d/new", at); }
  CHECK(is_refused(s.files.write_raw(at, "x")));
  CHECK(is_refused(s.files.open_text(at)));
  CHECK(s.files.look(at)->link);
  REQUIRE(s.files.set_permissions(at, 0644, {kUser, kUser}));
  REQUIRE(s.files.write(at, "new", 0600, {kUser, kUser}));  // in place of the link
  CHECK(s.state(at).regular);
  CHECK(s.state(at).uid == kUser);
  CHECK(s.files.read(at).value_or("") == "new");
  CHECK(s.is_intact());
}

TEST_CASE("a link to a folder is not taken for the folder", "[base][links]") {
  if (!is_root()) return;
  const System s;
  s.link("../../etc/empty", "/home/u/data");
  CHECK(is_refused(s.files.make_directories("/home/u/data", 0755, {kUser, kUser})));
  REQUIRE(s.files.set_permissions("/home/u/data", 0755, {kUser, kUser}));  // of the link itself
  REQUIRE(s.files.remove_tree("/home/u/data"));
  CHECK_FALSE(s.files.exists("/home/u/data"));
  CHECK(s.is_intact());
}

TEST_CASE("links of the system are followed, and do not leave the root", "[base][links]") {
  const TempDir dir;
  const Files files(dir.path("tree"));
  REQUIRE(files.make_directories("/usr/bin"));
  REQUIRE(files.make_directories("/run"));
  REQUIRE(files.symlink("usr/bin", "/bin"));
  REQUIRE(files.symlink("/run", "/var/run"));
  REQUIRE(files.symlink("../../../../../..", "/var/up"));
  REQUIRE(files.write("/bin/tool", "1"));
  REQUIRE(files.write("/var/run/x/state", "2"));
  REQUIRE(files.write("/var/up/top", "3"));
  REQUIRE(files.write("/../../above", "4"));
  CHECK(files.read("/usr/bin/tool").value_or("") == "1");
  CHECK(files.read("/run/x/state").value_or("") == "2");
  CHECK(files.read("/top").value_or("") == "3");
  CHECK(files.read("/above").value_or("") == "4");
  CHECK(Files(dir.path("")).list("/") == std::vector<std::string>{"tree"});

  REQUIRE(files.symlink("/endless", "/endless"));
  CHECK_FALSE(files.write("/endless/x", "").ok());
  CHECK_FALSE(files.open_text("/endless").ok());
}

TEST_CASE("a link of root where others can write is refused", "[base][links]") {
  if (!is_root()) return;
  const System s;
  REQUIRE(s.files.make_directories("/shared"));
  REQUIRE(s.files.symlink("../etc", "/shared/x"));
  REQUIRE(s.files.write("/shared/x/fine", ""));
  REQUIRE(s.files.remove("/etc/fine"));
  SECTION("all") { REQUIRE(s.files.set_permissions("/shared", 0777)); }
  SECTION("a group") { REQUIRE(s.files.set_permissions("/shared", 0775, {0, kUser})); }
  SECTION("a user of its ACL") {
    REQUIRE(s.files.set_permissions("/shared", 0775));
    if (!give_acl(s.files.real("/shared"))) return;
  }
  SECTION("all may add entries, and one gave the link a second name") {
    REQUIRE(s.files.set_permissions("/shared", 01777));
    REQUIRE(s.files.make_directories("/other"));
    const std::string from = s.files.real("/shared/x"), to = s.files.real("/other/x");
    REQUIRE(::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) == 0);
  }
  SECTION("its owner") { s.own("/shared"); }
  CHECK(is_refused(s.files.write("/shared/x/cron.d/new", "")));
  CHECK(s.is_intact());
}

TEST_CASE("a link of root is followed where other users cannot replace it", "[base][links]") {
  if (!is_root()) return;
  const System s;
  REQUIRE(s.files.make_directories("/shared"));
  REQUIRE(s.files.symlink("../etc", "/shared/x"));
  SECTION("all may add entries, but not replace root's") {
    REQUIRE(s.files.set_permissions("/shared", 01777));
  }
  SECTION("so may a group") { REQUIRE(s.files.set_permissions("/shared", 01775, {0, kUser})); }
  SECTION("root's group") { REQUIRE(s.files.set_permissions("/shared", 0775)); }
  SECTION("root's group, in all folders above") {
    REQUIRE(s.files.set_permissions("/", 0775));
    REQUIRE(s.files.set_permissions("/shared", 02775));
  }
  REQUIRE(s.files.write("/shared/x/fine", ""));
  CHECK(s.files.exists("/etc/fine"));
  // A user's own link there is still a user's.
  s.link("../etc/cron.d", "/shared/y");
  CHECK(is_refused(s.files.write("/shared/y/new", "")));
  CHECK(s.is_intact());
}

TEST_CASE("an open folder is found by its descriptor, whatever its name was", "[base][links]") {
  const TempDir dir;
  const Files files("/");
  const auto by_descriptor = [](const OpenFd& folder) {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(folder.get());
  };
  const std::string name = dir.path("removed");
  REQUIRE(files.make_directories(name));
  const OpenFd removed(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(files.write(by_descriptor(removed) + "/a", "x"));
  CHECK(files.read(name + "/a").value_or("") == "x");
  REQUIRE(files.remove(by_descriptor(removed) + "/a"));
  REQUIRE(files.remove(name));
  CHECK_FALSE(files.write(by_descriptor(removed) + "/a", "x").ok());
  CHECK(files.list(dir.path("")).empty());  // "removed (deleted)" is the link's text

  // As `muster accept --hosts` leaves no file on a host; the link's text is "/".
  REQUIRE(files.make_directories(name));
  const int ended = testing::with_own_mounts([&] {
    if (::mount("none", name.c_str(), "tmpfs", 0, nullptr) != 0) return 77;
    const OpenFd unmounted(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (::umount2(name.c_str(), MNT_DETACH) != 0) return 2;
    const std::string file = "/muster-test-" + std::to_string(::getpid());
    if (!files.write(by_descriptor(unmounted) + file, "x").ok()) return 3;
    const bool elsewhere = files.exists(file);
    (void)files.remove(file);
    if (elsewhere) return 4;
    if (files.read(by_descriptor(unmounted) + file).value_or("") != "x") return 5;
    return ::faccessat(unmounted.get(), file.c_str() + 1, F_OK, 0) == 0 ? 0 : 6;
  });
  if (ended == 77)
    WARN("no mount namespaces here");
  else
    CHECK(ended == 0);
}

TEST_CASE("what a link leads to is not made", "[base][links]") {
  const TempDir dir;
  const Files files(dir.path(""));
  REQUIRE(files.make_directories("/mnt"));
  REQUIRE(files.symlink("/mnt/nvme/scratch", "/big"));
  REQUIRE(files.symlink("big", "/scratch"));
  const auto is_reported = [](const Status& done) {
    return !done.ok() && done.error().code == Code::conflict &&
           done.error().message.find("/scratch is a symbolic link to big") != std::string::npos &&
           done.error().message.find("/mnt/nvme does not exist") != std::string::npos;
  };
  CHECK(is_reported(files.write("/scratch/a/b", "x")));
  CHECK(is_reported(files.make_directories("/scratch")));
  CHECK(is_reported(files.make_directories("/scratch/a")));
  CHECK(is_reported(files.symlink("x", "/scratch/a/link")));
  CHECK(files.list("/mnt").empty());
  CHECK_FALSE(files.look("/scratch/a")->exists);
  REQUIRE(files.make_directories("/mnt/nvme/scratch"));  // the disk is mounted
  REQUIRE(files.write("/scratch/a/b", "x"));
  CHECK(files.read("/mnt/nvme/scratch/a/b").value_or("") == "x");
}

TEST_CASE("a file that may not be removed is named as that, and not as no folder", "[base][links]") {
  const TempDir dir;
  const Files files(dir.path(""));
  REQUIRE(files.write("/x/file", ""));
  const int fd = ::open(dir.path("x/file").c_str(), O_RDONLY | O_CLOEXEC);
  int flags = FS_IMMUTABLE_FL, none = 0;
  if (::ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0) {
    const Status file = files.remove("/x/file"), tree = files.remove_tree("/x");
    CHECK(is_refused(file));
    CHECK(is_refused(tree));
    REQUIRE(::ioctl(fd, FS_IOC_SETFLAGS, &none) == 0);
  } else {
    WARN("skipped: the file system or the user has no immutable files");
  }
  ::close(fd);
  REQUIRE(files.remove_tree("/x"));
}

TEST_CASE("a file with a second name in a user's folder is not changed in place", "[base][links]") {
  if (!is_root()) return;
  const System s;
  s.hard_link(kJob, "/home/u/log");
  CHECK(is_refused(s.files.set_permissions("/home/u/log", 0644)));
  CHECK(is_refused(s.files.set_permissions("/home/u/log", 0600, {kUser, kUser})));
  CHECK(is_refused(s.files.write_raw("/home/u/log", "x")));
  CHECK(s.is_intact());
  REQUIRE(s.files.set_permissions("/home/u/log", 0600));  // nothing to change
  REQUIRE(s.files.write("/home/u/log", "new", 0644, {kUser, kUser}));
  CHECK(s.state("/home/u/log").uid == kUser);
  CHECK(s.is_intact());
  // In root's own folder it is root who gave it the name.
  s.hard_link(kJob, "/etc/job");
  REQUIRE(s.files.set_permissions("/etc/job", 0640));
  CHECK(s.state(kJob).mode == 0640);
}

TEST_CASE("a pipe in the place of a file holds nothing up", "[base][links]") {
  const TempDir dir;
  const Files files(dir.path(""));
  REQUIRE(::mkfifo(dir.path("pipe").c_str(), 0600) == 0);
  CHECK(files.open_text("/pipe").error().code == Code::conflict);
  CHECK_FALSE(files.write_raw("/pipe", "x").ok());
  CHECK(files.open_text("/").error().code == Code::conflict);
}

TEST_CASE("a file is read as one that stays as it is only if no other user can write to it",
          "[base][links]") {
  using Writers = OpenWay::Writers;
  const TempDir dir;
  REQUIRE(Files(dir.path("")).write("/x", "text", 0644));
  const auto way = OpenWay::to(dir.path(""), "/x");
  REQUIRE(way.ok());
  CHECK(way->open_file(Writers::ours).ok());
  for (const ::mode_t mode : {0664, 0646}) {
    REQUIRE(::chmod(dir.path("x").c_str(), mode) == 0);
    CHECK(way->open_file(Writers::ours).error().code == Code::denied);
    CHECK(way->open_file(Writers::any).ok());
  }
  if (!is_root()) return;
  REQUIRE(::chmod(dir.path("x").c_str(), 0600) == 0);
  REQUIRE(::chown(dir.path("x").c_str(), kUser, kUser) == 0);
  CHECK(way->open_file(Writers::ours).error().code == Code::denied);
}

TEST_CASE("a new file or folder is open to its own user only, until it is complete", "[base][links]") {
  const TempDir dir;
  const ::mode_t before = ::umask(0);
  const auto way = OpenWay::to(dir.path(""), "/x");
  REQUIRE(way.ok());
  unsigned mode = 0;
  const auto filled = [&](int fd) {
    struct stat info = {};
    mode = ::fstat(fd, &info) == 0 ? info.st_mode & 0777 : 0;
    return write_bytes(fd, "text", "x");
  };
  REQUIRE(way->write(filled, 0644));
  CHECK(mode == 0600);
  const auto moved = [&](const OpenWay& inside) -> Status {
    struct stat info = {};
    mode = ::fstat(inside.folder(), &info) == 0 ? info.st_mode & 0777 : 0;
    TRY_(inside.write([](int) { return Ok{}; }, 0644));
    return inside.move_to(*way);
  };
  REQUIRE(way->in_private_folder("y", moved));
  CHECK(mode == 0700);
  ::umask(077);
  REQUIRE(Files(dir.path("")).make_directories("/a/b", 0751));
  ::umask(before);
  CHECK(Files(dir.path("")).look("/a")->mode == 0755);
  CHECK(Files(dir.path("")).look("/a/b")->mode == 0751);
  CHECK(Files(dir.path("")).list("/") == std::vector<std::string>{"a", "x"});
  CHECK(dir.read("x").empty());
}

TEST_CASE("a write that fails leaves neither a file nor what it had written", "[base][links]") {
  const TempDir dir;
  const auto way = OpenWay::to(dir.path(""), "/x");
  REQUIRE(way.ok());
  const auto stopped = [](int fd) -> Status {
    TRY_(write_bytes(fd, "half", "x"));
    return fail(Code::failed, "no more");
  };
  CHECK_FALSE(way->write(stopped, 0600).ok());
  CHECK_FALSE(
      way->in_private_folder("y", [](const OpenWay&) -> Status { return fail(Code::failed, ""); }).ok());
  dir.write("x", "kept");
  const auto other = way->write([](int) { return Ok{}; }, 0600, {}, OpenWay::Existing::kept);
  CHECK(other.error().code == Code::conflict);
  CHECK(Files(dir.path("")).list("/") == std::vector<std::string>{"x"});
  CHECK(dir.read("x") == "kept");
}

TEST_CASE("what was opened stays what is changed when its folder is swapped for a link", "[base][links]") {
  if (!is_root()) return;
  const System s;
  s.link("../../etc/cron.d", "/home/u/other");
  const auto swap = [&] { return exchange(s.files.real("/home/u/.ssh"), s.files.real("/home/u/other")); };
  const auto way = OpenWay::to(s.files.root(), "/home/u/.ssh/job");
  REQUIRE(way.ok());
  const auto swapped = [&](int fd) {
    REQUIRE(swap());
    return write_bytes(fd, "key", "job");
  };
  REQUIRE(way->write(swapped, 0600, {kUser, kUser}));
  REQUIRE(way->set_permissions(0644, {kUser, kUser}));
  CHECK(s.files.read("/home/u/other/job").value_or("") == "key");
  REQUIRE(way->remove());
  REQUIRE(way->make_link("anywhere"));
  REQUIRE(way->remove_tree());
  CHECK(s.files.list("/home/u/other").empty());
  CHECK(s.is_intact());
}

TEST_CASE("an attacker who swaps parts of a path all the time gets nothing outside", "[base][links]") {
  if (!is_root()) return;
  constexpr int kSwaps = 20000;
  const System s;
  const std::string at = "/home/u/.ssh/job";
  const bool folder = GENERATE(true, false);
  const std::string part = s.files.real(folder ? "/home/u/.ssh" : at), other = s.files.real("/home/u/evil"),
                    target = folder ? "../../etc/cron.d" : "../../../etc/cron.d/job";
  std::atomic<bool> done = false;
  int swaps = 0;
  std::thread attacker([&] {
    for (int i = 0; i < kSwaps; ++i) {
      // Where a file is written over the link, there is no link any more.
      if (!folder || i == 0) {
        ::unlink(other.c_str());
        (void)(::symlink(target.c_str(), other.c_str()) == 0 && ::lchown(other.c_str(), kUser, kUser) == 0);
      }
      swaps += exchange(part, other) ? 1 : 0;
    }
    done = true;
  });
  for (int i = 0; !done; ++i) {
    (void)s.files.make_directories("/home/u/.ssh", 0700, {kUser, kUser}).ok();
    (void)s.files.write(at, std::to_string(i), 0644, {kUser, kUser}).ok();
    (void)s.files.set_permissions(at, i % 2 ? 0600 : 0644, {kUser, kUser}).ok();
    (void)s.files.set_permissions("/home/u/.ssh", 0700, {kUser, kUser}).ok();
    (void)s.files.write_raw(at, "more").ok();
    (void)s.files.make_directories("/home/u/.ssh/new/below", 0755, {kUser, kUser}).ok();
    (void)s.files.symlink("x", "/home/u/.ssh/link").ok();
    (void)s.files.remove_tree("/home/u/.ssh/new").ok();
    (void)s.files.remove("/home/u/.ssh/link").ok();
  }
  attacker.join();
  CHECK(swaps > 0);
  CHECK(s.is_intact());
}

TEST_CASE("the name of a tree is not read outside of it", "[base][links]") {
  const TempDir dir;
  dir.write("outside", "PRETTY_NAME=\"outside\"\n");
  dir.write("tree/usr/lib/os-release", "PRETTY_NAME=\"inside\"\n");
  fs::create_directory(dir.path("tree/etc"));
  const Files tree(dir.path("tree"));
  SECTION("absolute") { fs::create_symlink(dir.path("outside"), dir.path("tree/etc/os-release")); }
  SECTION("upwards") { fs::create_symlink("../../outside", dir.path("tree/etc/os-release")); }
  SECTION("as systems have it") {
    fs::create_symlink("../usr/lib/os-release", dir.path("tree/etc/os-release"));
  }
  CHECK(os_release(tree).pretty_name == "inside");
}

}  // namespace muster
