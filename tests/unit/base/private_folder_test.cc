// Folders that only root can enter, made where another user swaps what is made, and what is left of them; and
// whose folders are trusted.
#include "sys/private_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "sys/folder_trust.h"
#include "sys/open_way.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

namespace muster {
namespace {

constexpr uint32_t kOtherUser = 65534;

OpenFd opened(const std::string& path) {
  return OpenFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

struct stat state_of_fd(int fd) {
  struct stat info = {};
  REQUIRE(::fstat(fd, &info) == 0);
  return info;
}

bool swap_names(const std::string& one, const std::string& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

TEST_CASE("what a killed process left of its private folders is removed, and nothing else", "[base][links]") {
  const TempDir dir;
  const Files files(dir.path(""));
  const OpenFd folder = opened(dir.path(""));
  // Killed: its lock is gone, its folder is not.
  std::string killed;
  {
    const auto made = make_private_folder(folder.get(), "/");
    REQUIRE(made.ok());
    killed = "/" + made->name;
    REQUIRE(files.write(killed + "/new/bin/tool", "half"));
  }
  const auto alive = make_private_folder(folder.get(), "/");  // also removes the first
  REQUIRE(alive.ok());
  CHECK_FALSE(files.exists(killed));
  REQUIRE(files.make_directories("/.muster.00000000", 0700));
  REQUIRE(files.make_directories("/.muster.00000001", 0755));
  REQUIRE(files.make_directories("/.muster.00000002", 0700));
  REQUIRE(files.write("/.muster.00000002/data", "another's, who gave it this name"));
  REQUIRE(files.make_directories("/.muster.backup", 0700));
  REQUIRE(files.write("/.muster.00000003", "a file"));
  const auto made = make_private_folder(folder.get(), "/");
  REQUIRE(made.ok());
  REQUIRE(remove_private_folder(folder.get(), *made, "/" + made->name));
  std::vector<std::string> left = {".muster.00000001", ".muster.00000002", ".muster.00000003",
                                   ".muster.backup", alive->name};
  std::sort(left.begin(), left.end());
  CHECK(files.list("/") == left);
  CHECK(files.exists("/.muster.00000002/data"));
}

TEST_CASE("work in a private folder is in one of root's, while a user swaps its name", "[base][links]") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  const TempDir dir;
  const Files files(dir.path(""));
  REQUIRE(files.make_directories("/u", 0755, {kOtherUser, kOtherUser}));
  REQUIRE(files.make_directories("/u/evil", 0777, {kOtherUser, kOtherUser}));
  std::atomic<bool> done = false;
  std::thread attacker([&] {
    while (!done)
      for (const auto& name : files.list("/u")) {
        if (!name.starts_with(".muster.")) continue;
        (void)files.remove("/u/evil").ok();
        (void)files.make_directories("/u/evil", 0777, {kOtherUser, kOtherUser}).ok();
        (void)swap_names(dir.path("u/" + name), dir.path("u/evil"));
      }
  });
  const auto way = OpenWay::to(dir.path(""), "/u/x");
  bool is_others = false;
  for (int i = 0; i < 2000; ++i) {
    const auto work = [&](const OpenWay& inside) -> Status {
      const struct stat info = state_of_fd(inside.folder());
      is_others = is_others || info.st_uid != 0 || (info.st_mode & 0777) != 0700;
      return Ok{};
    };
    (void)way->in_private_folder("y", work).ok();
  }
  done = true;
  attacker.join();
  CHECK_FALSE(is_others);
}

TEST_CASE("a folder of root's is not given away when a user puts it in place of the one made",
          "[base][links]") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  const TempDir dir;
  const Files files(dir.path(""));
  REQUIRE(files.make_directories("/u", 0755, {kOtherUser, kOtherUser}));
  REQUIRE(files.make_directories("/u/vault", 0700));
  REQUIRE(files.write("/u/vault/key", "root's", 0600));
  const OpenFd vault = opened(dir.path("u/vault"));
  std::atomic<bool> done = false;
  std::thread attacker([&] {
    while (!done) (void)swap_names(dir.path("u/new"), dir.path("u/vault"));
  });
  for (int i = 0; i < 20000; ++i) {
    (void)files.make_directories("/u/new", 0755, {kOtherUser, kOtherUser}).ok();
    (void)files.remove("/u/new").ok();    // only an empty one
    (void)files.remove("/u/vault").ok();  // the same, where they are swapped
    (void)::renameat2(AT_FDCWD, dir.path("u/new").c_str(), AT_FDCWD, dir.path("u/vault").c_str(),
                      RENAME_NOREPLACE);
  }
  done = true;
  attacker.join();
  const struct stat info = state_of_fd(vault.get());
  CHECK(info.st_uid == 0);
  CHECK((info.st_mode & 07777) == 0700);
}

TEST_CASE("only file systems that this machine alone writes to are trusted", "[base][links]") {
  for (const uint64_t type : {0x6969u,                   // NFS
                              0x00c36400u,               // CephFS
                              0x65735546u,               // FUSE: MooseFS, sshfs, virtiofs
                              0xff534d42u, 0xfe534d42u,  // SMB
                              0x0bd00bd0u,               // Lustre
                              0x19830326u,               // BeeGFS
                              0x01021997u,               // 9p
                              0x7461636fu, 0x01161970u,  // OCFS2, GFS2
                              0x12345678u}) {
    INFO(type);
    CHECK_FALSE(is_local_file_system(type));
  }
  for (const uint64_t type : {0xef53u, 0x58465342u, 0x9123683eu, 0x01021994u, 0x794c7630u, 0x2fc12fc1u})
    CHECK(is_local_file_system(type));
  const OpenFd proc = opened("/proc");
  CHECK(trust_of(proc.get()).others == Others::none);
  // Of a type that is not in the list, though its owner is this user.
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const OpenFd reader(ends[0]), writer(ends[1]);
  const FolderTrust pipe = trust_of(reader.get());
  CHECK(pipe.others == Others::replace);
  CHECK(pipe.because == FolderTrust::Because::file_system);
}

}  // namespace muster
