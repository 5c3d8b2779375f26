// Which disks are in use, where the kernel does not say it by device number: btrfs and ZFS.
#include "agent/disk/disk.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using tests::FakeMachine;

namespace {

const std::string kUberblock("\x0c\xb1\xba\0\0\0\0\0", 8);

struct Machine : FakeMachine {
  Machine() {
    for (const char* disk : {"nvme0n1", "nvme1n1", "nvme2n1"}) add_disk(disk, disk, 64 << 20);
  }
  // "free", "used" or "system" of each disk, by both ways of looking.
  std::string use() const {
    std::string out, again;
    for (const auto& d : scan_disks(files()))
      out += d.name.substr(4, 1) + (d.is_os_ancestor ? "system " : d.mounted ? "used " : "free ");
    for (const auto& d : scan_identities(files()))
      again += d.name.substr(4, 1) + (d.is_os_ancestor ? "system " : d.mounted ? "used " : "free ");
    CHECK(again == out);
    return out;
  }
  void mounts(const std::string& lines) const { put("/proc/self/mountinfo", lines); }
};

}  // namespace

TEST_CASE("all devices of a btrfs are in use, though mountinfo has no number of theirs and names one",
          "[disk]") {
  Machine m;
  CHECK(m.use() == "0free 1free 2free ");
  for (const char* member : {"nvme0n1", "nvme1n1"})
    m.put(std::string("/sys/fs/btrfs/6d757374/devices/") + member + "/size", "1\n");
  m.put("/sys/fs/btrfs/features/raid1c34", "0\n");
  CHECK(m.use() == "0used 1used 2free ");  // mounted where this process does not see it
  m.mounts("22 1 0:30 /@ / rw,relatime shared:1 - btrfs /dev/nvme1n1 rw,subvol=/@\n");
  CHECK(m.use() == "0system 1system 2free ");
  m.mounts("22 1 0:30 /@data /data rw,relatime - btrfs /dev/nvme1n1 rw,subvol=/@data\n");
  CHECK(m.use() == "0used 1used 2free ");
}

TEST_CASE("the source of a mount counts, also through a link, from a partition and on an encrypted one",
          "[disk]") {
  Machine m;
  m.put("/sys/block/nvme1n1/nvme1n1p2/partition", "2\n");
  m.mounts("22 1 0:30 /@ / rw - btrfs /dev/nvme1n1p2 rw\n");
  CHECK(m.use() == "0free 1system 2free ");
  REQUIRE(m.files().symlink("../dm-0", "/dev/mapper/root").ok());
  m.put("/sys/block/nvme2n1/holders/dm-0/dev", "253:0\n");
  m.mounts("22 1 0:30 /@ / rw - btrfs /dev/mapper/root rw\n");
  CHECK(m.use() == "0free 1free 2system ");
  m.mounts(
      "22 1 0:30 / /data rw - bcachefs /dev/nvme0n1:/dev/nvme1n1 rw\n23 1 0:5 / /proc rw - proc proc rw\n");
  CHECK(m.use() == "0used 1used 2used ");
}

TEST_CASE(
    "members of ZFS pools are in use while ZFS is there, and the system's disks where it runs from a pool",
    "[disk]") {
  Machine m;
  m.write_disk("nvme1n1", 131072, kUberblock);
  CHECK(m.use() == "0free 1free 2free ");  // a pool of a former life
  m.put("/proc/spl/kmem/slab", "\n");
  CHECK(m.use() == "0free 1used 2free ");
  m.mounts("22 1 0:31 / /tank rw - zfs tank rw,xattr\n");
  CHECK(m.use() == "0free 1used 2free ");
  m.mounts("22 1 0:31 / / rw,relatime shared:1 - zfs rpool/ROOT/debian rw,xattr\n");
  CHECK(m.use() == "0free 1system 2free ");
}
