// How this node's own EFI system partition is opened: beside others who have it mounted.
#include "agent/image/own_slots.h"

#include <sys/mount.h>

#include "tests/fakes/own_mounts.h"
#include "tests/unit/agent/slot_bench.h"

using namespace muster;
using testing::SlotBench;
using testing::with_own_mounts;
using Way = Mounted::Way;

TEST_CASE("who reads the ESP takes no mount of it away, and who writes takes muster's own", "[in-place]") {
  SlotBench b;
  std::vector<std::string> gone, wanted;
  const auto unmount = [&gone](const std::string& place) { gone.push_back(place); };
  SECTION("none is left over") {}
  SECTION("an agent's") {
    b.run_from("a", "31 26 259:1 / /run/muster-esp rw - vfat /dev/nvme0n1p1 rw\n");
    wanted = {b.files.real(kEspPlace)};
  }
  SECTION("a writer's") {
    b.run_from("a",
               "31 26 259:1 / /run/muster-image/esp rw - vfat /dev/nvme0n1p1 rw\n"
               "32 26 259:3 / /run/muster-image/root rw - ext4 /dev/nvme0n1p3 rw\n"
               "33 26 259:4 / /run/muster-image/other rw - ext4 /dev/nvme0n1p4 rw\n");
    wanted = {b.files.real(kWriterEspPlace), b.files.real(kWriterSlotPlace)};
  }
  const OwnSlots own = own_slots(b.files).value();
  REQUIRE(open_own_esp(b.files, own, kEspPlace, Way::read, unmount).ok());
  CHECK(gone.empty());
  REQUIRE(open_own_esp(b.files, own, kEspPlace, Way::write, unmount).ok());
  CHECK(gone == wanted);
}

TEST_CASE("a mount of muster's own that was left over is taken away by the kernel", "[in-place]") {
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
  // Without a mount there, and without the right to unmount, the ESP is opened all the same.
  CHECK(open_own_esp(b.files, own, kEspPlace, Way::write).ok());
  if (ended == 77)
    WARN("no mount namespaces here: no mount was taken away by the kernel");
  else
    CHECK(ended == 0);
}

TEST_CASE("a partition that is mounted for writing already is read through a mount like that one",
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
