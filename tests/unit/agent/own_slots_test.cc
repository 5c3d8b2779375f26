// How this node's own EFI system partition is opened: beside others who have it mounted.
#include "agent/image/own_slots.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/unit/agent/slot_bench.h"

using namespace muster;
using testing::SlotBench;

namespace {

using Way = Mounted::Way;

// What `work` returns in a process with mounts of its own; 77: this machine does not let us have one.
int with_own_mounts(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

TEST_CASE("who reads the ESP takes no mount of it away, and who writes does", "[in-place]") {
  SlotBench b;
  b.run_from("a", "31 26 259:1 / /run/muster-esp rw - vfat /dev/nvme0n1p1 rw\n");
  REQUIRE(b.files.make_directories("/elsewhere/loader"));
  REQUIRE(b.files.make_directories(kEspPlace));
  const OwnSlots own = own_slots(b.files).value();
  const std::string mark = std::string(kEspPlace) + "/loader";
  const int ended = with_own_mounts([&] {
    if (::mount(b.files.real("/elsewhere").c_str(), b.files.real(kEspPlace).c_str(), nullptr, MS_BIND,
                nullptr) != 0)
      return 77;
    if (!open_own_esp(b.files, own, kEspPlace, Way::read).ok()) return 2;
    if (!b.files.exists(mark)) return 3;
    if (!open_own_esp(b.files, own, kEspPlace, Way::write).ok()) return 4;
    return b.files.exists(mark) ? 5 : 0;
  });
  if (ended == 77) return;
  CHECK(ended == 0);
}

TEST_CASE("a partition that somebody else has mounted for writing is read through a mount like theirs",
          "[in-place]") {
  std::vector<Way> ways;
  Code first = Code::conflict;
  const auto mount = [&](Way way) -> Result<Mounted> {
    ways.push_back(way);
    return fail(ways.size() == 1 ? first : Code::failed, "mounting");
  };
  SECTION("to read, and it is in use") {
    CHECK(mount_beside(mount, Way::read).error().code == Code::failed);
    CHECK(ways == std::vector<Way>{Way::read, Way::write});
  }
  SECTION("to read, and something else is wrong") {
    first = Code::failed;
    CHECK_FALSE(mount_beside(mount, Way::read).ok());
    CHECK(ways == std::vector<Way>{Way::read});
  }
  SECTION("to write") {
    CHECK(mount_beside(mount, Way::write).error().code == Code::conflict);
    CHECK(ways == std::vector<Way>{Way::write});
  }
}
