// What counts as a blank disk. The layouts are those that were once judged blank: a table zapped, a beginning
// zeroed by mistake, members of stripes without metadata. Made with the real tools where they are here, by
// the magic bytes of the format where they are not.
#include <functional>
#include <set>

#include "agent/disk/look.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/unit/agent/plain_disk.h"

using namespace muster;
using namespace std::string_literals;
using testing::Disk;
using testing::kMiB;

namespace {

constexpr uint64_t kGiB = 1 << 30;

std::string noise(size_t size, unsigned seed = 7) {
  std::string out(size, '\0');
  for (auto& c : out) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return out;
}

void tool(const std::vector<std::string>& argv) {
  const auto out =
      run_ok(*make_process(), {.argv = argv, .env = {{"PATH", "/usr/sbin:/sbin:/usr/bin:/bin"}}});
  if (!out.ok()) FAIL(out.error().message);
}

void zero(const Disk& d, uint64_t from, uint64_t size) {
  REQUIRE(d.open(BlockDevice::Access::exclusive_write).zero(from, size).ok());
}

// As `sgdisk --zap-all` leaves a disk whose one partition begins at 1 MiB.
void zapped(const Disk& d) {
  tool({"sgdisk", "--new=1:2048:0", d.path});
  tool({"sgdisk", "--zap-all", d.path});
}
void ext4(const Disk& d, uint64_t offset, uint64_t size, const std::string& block = "4096") {
  tool({"mkfs.ext4", "-q", "-F", "-b", block, "-L", "results", "-E",
        "offset=" + std::to_string(offset) + ",nodiscard", d.path, std::to_string(size / 1024) + "k"});
}
void xfs(const Disk& d) { tool({"mkfs.xfs", "-q", "-f", "-L", "results", d.path}); }
void btrfs(const Disk& d, uint64_t at) {
  d.put(at + 0x20, "0123456789abcdef");
  d.put(at + 0x40, "_BHRfS_M");
  d.put(at + 0x12b, "results");
}
const std::string kMd = "\xfc\x4e\x2b\xa9"s, kUberblock = "\x0c\xb1\xba\x00\x00\x00\x00\x00"s;

// One of two members of a stripe over `volume`.
void stripe(const Disk& member, const Disk& volume, uint64_t chunk, uint64_t number) {
  const auto all = volume.open();
  for (uint64_t at = 0; at + chunk <= member.open().size(); at += chunk) {
    const std::string bytes = all.read_at((at / chunk * 2 + number) * chunk, chunk).value();
    if (bytes.find_first_not_of('\0') != std::string::npos) member.put(at, bytes);
  }
}

struct Layout {
  const char* name;
  std::function<void(const Disk&)> make;
  const char* shown;  // part of what the approver reads
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> table = {
      {"btrfs, table zapped", [](const Disk& d) { zapped(d), btrfs(d, kMiB + 65536); },
       "remains of btrfs at 1 MiB \"results\""},
      {"md 1.2, table zapped",
       [](const Disk& d) { zapped(d), d.put(kMiB + 4096, kMd), d.put(kMiB + 4096 + 32, "db:volume"); },
       "remains of linux_raid_member at 1 MiB \"db:volume\""},
      {"bcache, table zapped",
       [](const Disk& d) {
         zapped(d),
             d.put(kMiB + 4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"s);
       },
       "remains of bcache at 1 MiB"},
      {"ZFS in a partition, table zapped", [](const Disk& d) { zapped(d), d.put(kMiB + 131072, kUberblock); },
       "remains of zfs_member at 1 MiB"},
      {"ZFS that was given the whole disk, table zapped",
       [](const Disk& d) {
         zapped(d);
         for (const uint64_t at : {kMiB, kMiB + 262144, kGiB - 9 * kMiB}) d.put(at + 131072, kUberblock);
       },
       "remains of zfs_member at 1 MiB"},
      {"LVM, table zapped",
       [](const Disk& d) { zapped(d), d.put(kMiB + 512, "LABELONE" + std::string(16, '\0') + "LVM2 001"); },
       "remains of LVM2_member at 1 MiB"},
      {"XFS, table zapped", [](const Disk& d) { zapped(d), d.put(kMiB, "XFSB\0\0\x10\0"s); },
       "remains of xfs at 1 MiB"},
      {"Windows data disk (empty MSR before it), table zapped",
       [](const Disk& d) { zapped(d), d.put(17 * kMiB + 3, "NTFS    "); }, "unknown data"},
      {"ext4 behind a partition without anything, table zapped",
       [](const Disk& d) { zapped(d), ext4(d, 30 * kMiB, 200 * kMiB); }, "remains of ext4"},
      {"ext4, first MiB zeroed", [](const Disk& d) { ext4(d, 0, kGiB), zero(d, 0, kMiB); },
       "remains of ext4 at 128 MiB \"results\""},
      {"ext4, first 2 MiB zeroed", [](const Disk& d) { ext4(d, 0, kGiB), zero(d, 0, 2 * kMiB); },
       "remains of ext4 at 128 MiB \"results\""},
      {"ext4, first 10 MiB zeroed", [](const Disk& d) { ext4(d, 0, kGiB), zero(d, 0, 10 * kMiB); },
       "remains of ext4 at 128 MiB \"results\""},
      {"ext4, first 100 MiB and the last zeroed: a second superblock is all that is seen",
       [](const Disk& d) {
         ext4(d, 0, kGiB), zero(d, 0, 100 * kMiB), zero(d, kGiB - 100 * kMiB, 100 * kMiB);
       },
       "remains of ext4 at 128 MiB"},
      {"the same in a first partition",
       [](const Disk& d) {
         ext4(d, kMiB, kGiB - 2 * kMiB), zero(d, 0, 100 * kMiB), zero(d, kGiB - 100 * kMiB, 100 * kMiB);
       },
       "remains of ext4 at 129 MiB"},
      {"ext4 with blocks of 1 KiB, first MiB zeroed",
       [](const Disk& d) { ext4(d, 0, 512 * kMiB, "1024"), zero(d, 0, kMiB); },
       "remains of ext4 at 8193 KiB"},
      {"ext4 with blocks of 2 KiB, first 34 MiB zeroed",
       [](const Disk& d) { ext4(d, 0, 512 * kMiB, "2048"), zero(d, 0, 34 * kMiB); },
       "remains of ext4 at 96 MiB"},
      {"XFS, first MiB zeroed", [](const Disk& d) { xfs(d), zero(d, 0, kMiB); },
       "remains of xfs at 256 MiB \"results\""},
      {"XFS, first 10 MiB zeroed", [](const Disk& d) { xfs(d), zero(d, 0, 10 * kMiB); },
       "remains of xfs at 256 MiB \"results\""},
      {"XFS, first 200 MiB zeroed", [](const Disk& d) { xfs(d), zero(d, 0, 200 * kMiB); },
       "remains of xfs at 256 MiB \"results\""},
      {"XFS in a first partition of the whole disk, first 200 MiB zeroed",
       [](const Disk& d) {
         const Disk part(kGiB - 2 * kMiB);  // ends where sgdisk's alignment has it
         xfs(part);
         const auto all = part.open();
         for (const uint64_t at : {kGiB / 4 - kMiB, kGiB / 4})
           d.put(at + kMiB, all.read_at(at, kMiB).value());
       },
       "remains of xfs"},
      {"btrfs, first 64 MiB zeroed", [](const Disk& d) { btrfs(d, 64 * kMiB); },
       "remains of btrfs at 64 MiB \"results\""},
      {"btrfs in a first partition, first 64 MiB zeroed", [](const Disk& d) { btrfs(d, 65 * kMiB); },
       "remains of btrfs at 65 MiB \"results\""},
      {"stripe without metadata, chunk 512 KiB, second member, ext4",
       [](const Disk& d) {
         const Disk volume(2 * kGiB);
         ext4(volume, 0, 2 * kGiB);
         stripe(d, volume, 512 << 10, 1);
       },
       "unknown data"},
      {"stripe without metadata, chunk 1 MiB, second member, XFS",
       [](const Disk& d) {
         const Disk volume(2 * kGiB);
         xfs(volume);
         volume.put(41 * kMiB, noise(kMiB));  // a file
         stripe(d, volume, kMiB, 1);
       },
       "unknown data"},
      {"former md member, data from 8 MiB", [](const Disk& d) { d.put(8 * kMiB, noise(kMiB)); },
       "unknown data"},
      {"former md member, data from 128 MiB",
       [](const Disk& d) { ext4(d, 128 * kMiB, 500 * kMiB), zero(d, 256 * kMiB - 65536, 10 * kMiB); },
       "remains of ext4"},
      {"LUKS2 with its header elsewhere, data from 16 MiB",
       [](const Disk& d) { d.put(16 * kMiB, noise(kMiB)); }, "unknown data"},
      {"XFS realtime or dm-thin data device", [](const Disk& d) { d.put(3 * kMiB + 65536, noise(65536)); },
       "unknown data"},
      {"raw volume of a database", [](const Disk& d) { d.put(33 * kMiB, noise(8192)); }, "unknown data"},
      {"a controller's metadata 32 to 28 MiB before the end",
       [](const Disk& d) { d.put(kGiB - 32 * kMiB, noise(4 * kMiB)); }, "unknown data"},
      {"a controller's metadata 16 to 12 MiB before the end",
       [](const Disk& d) { d.put(kGiB - 16 * kMiB, noise(4 * kMiB)); }, "unknown data"},
      {"random data from 2 to 4 MiB", [](const Disk& d) { d.put(2 * kMiB, noise(2 * kMiB)); },
       "unknown data"},
      {"random data from 1 MiB + 4 KiB", [](const Disk& d) { d.put(kMiB + 4096, noise(kMiB)); },
       "unknown data"},
      {"4 KiB at 128 MiB", [](const Disk& d) { d.put(128 * kMiB, noise(4096)); }, "unknown data"},
      {"ones at the beginning, then zeros", [](const Disk& d) { d.put(0, std::string(2 * kMiB, '\xff')); },
       "unknown data"},
  };
  return table;
}

}  // namespace

TEST_CASE(
    "a disk whose data may be needed is not blank, is shown by name, is bound, and is blank once muster "
    "wiped it",
    "[disk]") {
  for (const auto& layout : layouts()) {
    INFO(layout.name);
    const Disk d(kGiB);
    const std::string blank = d.probe().hash;
    layout.make(d);
    const DiskContent c = d.probe();
    CHECK_FALSE(c.blank);
    INFO(c.summary);
    CHECK(c.summary.find(layout.shown) != std::string::npos);
    CHECK(c.hash != blank);
    CHECK(d.probe().hash == c.hash);
    REQUIRE(wipe_looked_at(d.open(BlockDevice::Access::exclusive_write), 0, kGiB).ok());
    CHECK(d.probe().blank);
    CHECK(d.probe().hash == blank);
  }
}

TEST_CASE("second superblocks of large disks are looked at", "[disk]") {
  const Disk far(300 * kGiB), farther(5120 * kGiB), partition(5120 * kGiB);
  btrfs(far, 256 * kGiB);
  CHECK(far.probe().summary.find("remains of btrfs at 262144 MiB") != std::string::npos);
  // A terabyte, less a block.
  farther.put(1024 * kGiB - 4096, "XFSB\0\0\x10\0"s);
  CHECK(farther.probe().summary.find("remains of xfs") != std::string::npos);
  partition.put(1024 * kGiB + kMiB - 4096, "XFSB\0\0\x10\0"s);
  CHECK(partition.probe().summary.find("remains of xfs") != std::string::npos);
}

TEST_CASE("what never held anything, or was erased to zeros or ones, is blank", "[disk]") {
  for (const uint64_t size : {kMiB, 3 * kMiB, 64 * kMiB, 100 * kMiB + 512, kGiB, 5120 * kGiB}) {
    INFO(size);
    const Disk d(size);
    CHECK(d.probe().blank);
    CHECK(d.probe().summary == "blank");
    d.put(size / 2, "x");
    CHECK(d.probe().blank == (size > 100 * kMiB));  // in the middle of nowhere: docs/spec.md says so
  }
  const Disk flash(0);
  flash.put(0, std::string(80 * kMiB, '\xff'));
  CHECK(flash.probe().blank);
}

TEST_CASE("every byte of the places looked at counts, and is in the hash", "[disk]") {
  for (const uint64_t size : {90 * kMiB + 512, 2 * kGiB, 600 * kGiB}) {
    const Disk d(size);
    std::set<std::string> hashes = {d.probe().hash};
    uint64_t after = 0;
    for (const Extent& e : looked_at(0, size)) {
      INFO(size << ": " << e.start << " + " << e.size);
      REQUIRE(e.start >= after);
      REQUIRE(e.start + e.size <= size);
      after = e.start + e.size;
      for (const uint64_t at : {e.start, e.start + e.size / 2, e.start + e.size - 1}) {
        d.put(at, "x");
        const DiskContent c = d.probe();
        CHECK_FALSE(c.blank);
        CHECK(hashes.insert(c.hash).second);
        d.put(at, std::string(1, '\0'));
      }
    }
    CHECK(d.probe().blank);
    CHECK(looked_at(0, size).front().start == 0);
    CHECK(looked_at(0, size).back().start + looked_at(0, size).back().size == size);
  }
}

TEST_CASE("what muster wiped is blank to it, and it wiped no more than that", "[disk]") {
  const uint64_t size = 2 * kGiB;
  const Disk d(size);
  std::vector<uint64_t> beside;
  for (const Extent& e : looked_at(0, size)) {
    d.put(e.start, "x");
    d.put(e.start + e.size - 1, "x");
    if (e.start > 0) beside.push_back(e.start - 1);
    if (e.start + e.size < size) beside.push_back(e.start + e.size);
  }
  for (const uint64_t at : beside) d.put(at, "x");
  REQUIRE(wipe_looked_at(d.open(BlockDevice::Access::exclusive_write), 0, size).ok());
  CHECK(d.probe().blank);
  for (const uint64_t at : beside) CHECK(d.open().read_at(at, 1).value() == "x");
}

TEST_CASE("a region is wiped within its bounds", "[disk]") {
  const Disk d(kGiB);
  d.put(100 * kMiB - 1, "x");
  d.put(100 * kMiB, noise(4 * kMiB));
  d.put(900 * kMiB - 8, "theregion");
  const auto device = d.open(BlockDevice::Access::exclusive_write);
  CHECK_FALSE(is_blank(device, 100 * kMiB, 800 * kMiB).value());
  REQUIRE(wipe_looked_at(device, 100 * kMiB, 800 * kMiB).ok());
  CHECK(is_blank(device, 100 * kMiB, 800 * kMiB).value());
  CHECK(device.read_at(100 * kMiB - 1, 2).value() == "x\0"s);
  CHECK(device.read_at(900 * kMiB - 1, 2).value() == "\0n"s);
}
