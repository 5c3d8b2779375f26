// Disks by identity and content. The machines in tests/golden/sysfs are made by hand after real ones.
#include "agent/disk/disk.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "agent/disk/block_device.h"
#include "agent/disk/disk_probe.h"
#include "agent/disk/gpt.h"
#include "agent/disk/marker.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/source_dir.h"
#include "tests/unit/agent/plain_disk.h"

using namespace muster;
using testing::Disk;
using testing::kMiB;
namespace fs = std::filesystem;

namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/muster-disks-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
};

// "PATH = CONTENT" adds a line to a file, "PATH -> TARGET" a link, "PATH sparse SIZE" an empty disk.
void unpack(const std::string& golden, const std::string& root) {
  std::ifstream in(source_dir() + "/tests/golden/sysfs/" + golden);
  REQUIRE(in);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string path, kind;
    words >> path >> kind;
    const std::string rest = line.substr(std::min(line.size(), path.size() + kind.size() + 2));
    fs::create_directories(fs::path(root + path).parent_path());
    if (kind == "->")
      fs::create_symlink(rest, root + path);
    else if (kind == "sparse") {
      std::ofstream(root + path);
      fs::resize_file(root + path, std::stoull(rest));
    } else
      std::ofstream(root + path, std::ios::app) << rest << "\n";
  }
}

GptTable two_partitions() {
  GptTable t;
  t.disk_guid = "01234567-89ab-4def-8123-456789abcdef";
  t.partitions = {{1, kTypeEsp, random_guid(), "esp", kMiB, 8 * kMiB},
                  {2, kTypeLinux, random_guid(), "data", 9 * kMiB, 40 * kMiB}};
  return t;
}

const DiskFacts& by_name(const std::vector<DiskFacts>& disks, const std::string& name) {
  for (const auto& d : disks)
    if (d.name == name) return d;
  FAIL("no disk " + name);
  return disks.front();
}

}  // namespace

TEST_CASE("disks of a GPU server: identity, place, transport, use") {
  Folder root;
  unpack("server.txt", root.path);
  const auto disks = scan_disks(Files(root.path));
  REQUIRE(disks.size() == 4);  // the loop device and the md array are no disks
  const DiskFacts& os = by_name(disks, "nvme0n1");
  CHECK(os.serial == "OS0001");
  CHECK(os.model == "MUSTER LAB OS");
  CHECK(os.wwid == "nvme.1b36-4f5330303031-51454d55-00000001");
  CHECK(os.size_bytes == 16 * kMiB);
  CHECK(os.transport == "nvme");
  CHECK(os.pcie_address == "0000:41:00.0");
  CHECK(os.bus_speed == "16.0 GT/s x4");
  CHECK(os.logical_block == 512);
  CHECK(os.mounted);
  CHECK(os.is_os_ancestor);
  const DiskFacts& member = by_name(disks, "nvme1n1");  // under a RAID that is mounted at /scratch
  CHECK(member.mounted);
  CHECK_FALSE(member.is_os_ancestor);
  const DiskFacts& remote = by_name(disks, "nvme2n1");
  CHECK(remote.transport == "nvme-tcp");
  CHECK_FALSE(remote.mounted);
  CHECK(remote.blank);
  const DiskFacts& sata = by_name(disks, "sda");
  CHECK(sata.transport == "sata");
  CHECK(sata.serial == "S3Z2NB0K");
  CHECK(sata.wwid == "naa.5002538e40000001");
  CHECK(sata.content.starts_with("unreadable"));  // it has no device file here
  CHECK_FALSE(sata.blank);
  CHECK(sata.content_hash.empty());
}

TEST_CASE("a disk behind a network is distinguished from one in the machine, though it looks like SCSI") {
  Folder root;
  unpack("remote.txt", root.path);
  std::map<std::string, std::string> found;
  for (const auto& d : scan_identities(Files(root.path))) found[d.name] = d.transport;
  CHECK(found == std::map<std::string, std::string>{{"sda", "sas"},
                                                    {"sdb", "fc"},
                                                    {"sdc", "fc"},
                                                    {"sdd", "srp"},
                                                    {"sde", "iscsi"},
                                                    {"sdf", "sas"},
                                                    {"rbd0", "unknown"}});
  for (const char* local : {"sas", "sata", "nvme", "virtio"}) CHECK(is_local_transport(local));
  for (const char* other : {"fc", "srp", "iscsi", "unknown", "usb", "nvme-tcp", ""})
    CHECK_FALSE(is_local_transport(other));
}

TEST_CASE("an NVMe drive with native multipath is one disk, found by its serial, and its paths are none") {
  Folder root;
  unpack("multipath.txt", root.path);
  const auto disks = scan_disks(Files(root.path));
  REQUIRE(disks.size() == 1);
  CHECK(disks[0].name == "nvme0n1");
  CHECK(disks[0].transport == "nvme");
  CHECK(disks[0].pcie_address == "0000:41:00.0");
  CHECK(disks[0].bus_speed == "16.0 GT/s x4");
  CHECK(disks[0].blank);
  CHECK(find_disk(disks, {"S64HNE0R600149", "eui.36344830526001490025384500000001",
                          "SAMSUNG MZQL27T6HBLA-00A07", 16 * kMiB}));
}

TEST_CASE("a disk is found by serial, and only when all else fits") {
  DiskFacts a;
  a.serial = "S1";
  a.size_bytes = 100;
  a.wwid = "eui.1";
  a.model = "M";
  std::vector<DiskFacts> disks = {a};
  CHECK(find_disk(disks, {"S1", "eui.1", "M", 100}));
  CHECK(find_disk(disks, {"S1", "", "", 100}));
  CHECK(find_disk(disks, {"S2", "", "", 100}).error().code == Code::not_found);
  CHECK(find_disk(disks, {"", "", "", 100}).error().code == Code::invalid);
  CHECK(find_disk(disks, {"S1", "", "", 101}).error().code == Code::conflict);
  CHECK(find_disk(disks, {"S1", "eui.2", "", 100}).error().code == Code::conflict);
  CHECK(find_disk(disks, {"S1", "", "N", 100}).error().code == Code::conflict);
  disks.push_back(a);
  CHECK(find_disk(disks, {"S1", "", "", 100}).error().code == Code::conflict);
}

TEST_CASE("an empty disk is blank; anything at all on it is not") {
  Disk d;
  CHECK(d.probe().blank);
  CHECK(d.probe().summary == "blank");
  const std::string empty_hash = d.probe().hash;
  d.put(5000, "x");
  CHECK_FALSE(d.probe().blank);
  CHECK(d.probe().summary == "unknown data");
  CHECK(d.probe().hash != empty_hash);
}

TEST_CASE("signatures are recognised") {
  using namespace std::string_literals;
  const auto type_of = [](uint64_t at, const std::string& bytes) {
    Disk d;
    d.put(at, bytes);
    const auto c = d.probe();
    CHECK_FALSE(c.blank);
    return c.signatures.empty() ? "" : c.signatures[0].type;
  };
  CHECK(type_of(0x438, "\x53\xef"s) == "ext2");
  CHECK(type_of(0, "XFSB") == "xfs");
  CHECK(type_of(0x10040, "_BHRfS_M") == "btrfs");
  CHECK(type_of(4086, "SWAPSPACE2") == "swap");
  CHECK(type_of(4096, "\xfc\x4e\x2b\xa9"s) == "linux_raid_member");
  CHECK(type_of(64 * kMiB - 65536, "\xfc\x4e\x2b\xa9"s) == "linux_raid_member");  // 0.90, at the end
  CHECK(type_of(512, "LABELONE" + std::string(16, '\0') + "LVM2 001") == "LVM2_member");
  CHECK(type_of(0, "LUKS\xba\xbe"s) == "crypto_LUKS");
  CHECK(type_of(131072, "\x0c\xb1\xba\x00\x00\x00\x00\x00"s) == "zfs_member");
  CHECK(type_of(64 * kMiB - 262144 + 131072, "\x0c\xb1\xba\x00\x00\x00\x00\x00"s) == "zfs_member");
  CHECK(type_of(0, "bluestore block device\n") == "ceph_bluestore");
  CHECK(type_of(kMiB, "\x0d\xd0\x01\xc0"s) == "VMFS_volume_member");
}

TEST_CASE("real file systems are read as blkid reads them") {
  Disk d;
  auto process = make_process();
  REQUIRE(run_ok(*process, {.argv = {"mke2fs", "-q", "-F", "-t", "ext4", "-L", "data", "-U",
                                     "6d757374-6572-4f53-8000-000000000009", d.path},
                            .env = {{"PATH", "/usr/sbin:/sbin:/usr/bin:/bin"}}}));
  const auto c = d.probe();
  REQUIRE(c.signatures.size() == 1);
  CHECK(c.signatures[0].type == "ext4");
  CHECK(c.signatures[0].label == "data");
  CHECK(c.signatures[0].uuid == "6d757374-6572-4f53-8000-000000000009");
  CHECK(c.summary == "ext4 \"data\"");
  // Use changes the superblock (mount count, times), not the hash.
  d.put(0x42c, "\x12\x34\x56\x78");
  CHECK(d.probe().hash == c.hash);
}

TEST_CASE("partition tables survive the trip, from either copy") {
  Disk d;
  {
    auto w = d.open(BlockDevice::Access::exclusive_write);
    REQUIRE(write_gpt(w, two_partitions()));
  }
  auto t = read_gpt(d.open());
  REQUIRE(t);
  CHECK_FALSE(t->from_backup);
  CHECK(t->disk_guid == "01234567-89ab-4def-8123-456789abcdef");
  REQUIRE(t->named("data"));
  CHECK(t->named("data")->start == 9 * kMiB);
  CHECK(t->named("data")->size == 40 * kMiB);
  CHECK(t->named("data")->type == kTypeLinux);
  const std::string hash = d.probe().hash;
  d.put(9 * kMiB, "XFSB");
  const auto c = d.probe();
  CHECK(c.hash != hash);
  CHECK(c.summary == "GPT with 2 partitions, esp, data xfs");

  d.put(512, std::string(512, '\0'));  // the primary header is gone
  t = read_gpt(d.open());
  REQUIRE(t);
  CHECK(t->from_backup);
  CHECK(t->partitions.size() == 2);
  CHECK_FALSE(d.probe().blank);
  d.put(64 * kMiB - 512, std::string(512, '\0'));
  CHECK(read_gpt(d.open()).error().code == Code::not_found);
}

namespace {

// One entry of an MBR or of a link behind it, in blocks of 512 bytes.
std::string entry(int type, uint32_t first, uint32_t count) {
  std::string out(16, '\0');
  out[4] = static_cast<char>(type);
  for (size_t i = 0; i < 4; ++i)
    out[8 + i] = static_cast<char>(first >> 8 * i), out[12 + i] = static_cast<char>(count >> 8 * i);
  return out;
}
std::string sector(const std::string& entries) {
  return std::string(446, '\0') + entries + std::string(64 - entries.size(), '\0') + "\x55\xaa";
}
const std::string kExt4 = {'\x53', '\xef'};
constexpr uint32_t kBlocks = 2048;  // of a mebibyte

// sda1 of 8 MiB at 1 MiB; an extended partition from 16 MiB with sda5 of 4 MiB at 17 MiB and sda6 of 4 MiB at
// 25 MiB.
void put_mbr(const Disk& d) {
  d.put(0, sector(entry(0x83, kBlocks, 8 * kBlocks) + entry(0x0f, 16 * kBlocks, 40 * kBlocks)));
  d.put(16 * kMiB, sector(entry(0x83, kBlocks, 4 * kBlocks) + entry(0x05, 8 * kBlocks, 8 * kBlocks)));
  d.put(24 * kMiB, sector(entry(0x8e, kBlocks, 4 * kBlocks)));
}

}  // namespace

TEST_CASE("what lies in the partitions of an MBR is shown, and bound") {
  Disk d;
  put_mbr(d);
  DiskContent c = d.probe();
  CHECK_FALSE(c.blank);
  CHECK(c.summary == "MBR partition table with 3 partitions, #1, #5, #6");
  REQUIRE(c.mbr);
  REQUIRE(c.mbr->partitions.size() == 3);
  CHECK(c.mbr->partitions[2].number == 6);
  CHECK(c.mbr->partitions[2].start == 25 * kMiB);
  CHECK(c.mbr->partitions[2].size == 4 * kMiB);
  std::set<std::string> hashes = {c.hash};
  const auto changed = [&] {
    c = d.probe();
    return hashes.insert(c.hash).second;
  };
  d.put(kMiB + 0x438, kExt4);
  d.put(kMiB + 0x478, "home");
  CHECK(changed());
  CHECK(c.summary == "MBR partition table with 3 partitions, #1 ext2 \"home\", #5, #6");
  d.put(25 * kMiB + 512, "LABELONE" + std::string(16, '\0') + "LVM2 001");
  CHECK(changed());
  CHECK(c.summary == "MBR partition table with 3 partitions, #1 ext2 \"home\", #5, #6 LVM2_member");
  d.put(17 * kMiB + 5000, "a database on a bare partition");
  CHECK(changed());
  CHECK(c.summary.find("#5 unknown data") != std::string::npos);
  d.put(21 * kMiB - 100, "and its end");
  CHECK(changed());
  d.put(440, "ID");
  CHECK(changed());
  // Use of a file system that is there is none of these.
  d.put(kMiB + 0x42c, "\x12\x34");
  CHECK_FALSE(changed());
}

TEST_CASE("a chain of logical partitions that leads back, outside the disk, on for ever or to nothing ends") {
  const auto damaged = [](const Disk& d) {
    const DiskContent c = d.probe();
    CHECK_FALSE(c.blank);
    CHECK(c.summary.find("mbr (damaged)") != std::string::npos);
    d.put(5000, "x");
    CHECK(d.probe().hash != c.hash);
    return c.mbr->partitions.size();
  };
  Disk back, outside, nothing, endless;
  for (const Disk* d : {&back, &outside, &nothing}) put_mbr(*d);
  back.put(24 * kMiB, sector(entry(0x8e, kBlocks, 4 * kBlocks) + entry(0x05, 8 * kBlocks, 8 * kBlocks)));
  CHECK(damaged(back) == 3);
  outside.put(24 * kMiB, sector(entry(0x8e, kBlocks, 4 * kBlocks) + entry(0x05, 0x40000000, 8 * kBlocks)));
  CHECK(damaged(outside) == 3);
  nothing.put(24 * kMiB, std::string(512, '\0'));
  CHECK(damaged(nothing) == 2);
  endless.put(0, sector(entry(0x05, kBlocks, 60 * kBlocks)));
  for (uint32_t i = 0; i < 100; ++i)
    endless.put(kMiB + i * 8192, sector(entry(0x83, 8, 8) + entry(0x05, 16 * (i + 1), 16)));
  CHECK(damaged(endless) == 60);
}

TEST_CASE("an MBR entry that ends outside the disk is cut off, and one that begins there is none") {
  Disk d;
  d.put(0, sector(entry(0x83, 40 * kBlocks, 100 * kBlocks) + entry(0x83, 80 * kBlocks, kBlocks) +
                  entry(0x83, 0, 8 * kBlocks)));
  const DiskContent c = d.probe();
  REQUIRE(c.mbr->partitions.size() == 1);
  CHECK(c.mbr->partitions[0].size == 24 * kMiB);
  d.put(64 * kMiB - 3, "end");
  CHECK(d.probe().hash != c.hash);
}

TEST_CASE("the boot sector of a file system is no partition table, though it ends like one") {
  Disk d;
  d.put(0, sector(std::string(64, 'A')));
  const DiskContent c = d.probe();
  CHECK_FALSE(c.blank);
  REQUIRE(c.mbr);
  CHECK(c.mbr->partitions.empty());
}

TEST_CASE("an MBR beside a GPT is shown too, and what both name is shown once") {
  Disk d;
  {
    auto w = d.open(BlockDevice::Access::exclusive_write);
    REQUIRE(write_gpt(w, two_partitions()));
  }
  CHECK_FALSE(d.probe().mbr);  // it protects, no more
  d.put(0, sector(entry(0xee, 1, kBlocks - 1) + entry(0x83, 9 * kBlocks, 40 * kBlocks) +
                  entry(0x83, 50 * kBlocks, 4 * kBlocks)));
  d.put(9 * kMiB, "XFSB");
  d.put(50 * kMiB, "XFSB");
  const DiskContent c = d.probe();
  CHECK(c.summary ==
        "GPT with 2 partitions, esp, data xfs, MBR partition table with 2 partitions, #2 xfs, #3 xfs");
  CHECK(c.signatures.size() == 2);
}

TEST_CASE("bytes in a partition that nothing knows are bound, at both of its ends") {
  Disk d;
  {
    auto w = d.open(BlockDevice::Access::exclusive_write);
    REQUIRE(write_gpt(w, two_partitions()));
  }
  const std::string empty = d.probe().hash;
  d.put(9 * kMiB + 5000, "x");
  const DiskContent head = d.probe();
  CHECK(head.hash != empty);
  CHECK(head.summary == "GPT with 2 partitions, esp, data unknown data");
  d.put(49 * kMiB - 1, "x");
  CHECK(d.probe().hash != head.hash);
}

TEST_CASE("sgdisk agrees with the tables written here") {
  Disk d;
  {
    auto w = d.open(BlockDevice::Access::exclusive_write);
    REQUIRE(write_gpt(w, two_partitions()));
  }
  auto process = make_process();
  const auto out = run_ok(
      *process, {.argv = {"sgdisk", "--verify", d.path}, .env = {{"PATH", "/usr/sbin:/sbin:/usr/bin:/bin"}}});
  REQUIRE(out);
  CHECK(out->find("No problems found") != std::string::npos);
}

TEST_CASE("an MBR's partitions are among a disk's facts") {
  Folder root;
  unpack("server.txt", root.path);
  {
    std::fstream f(root.path + "/dev/nvme2n1", std::ios::in | std::ios::out | std::ios::binary);
    f << sector(entry(0x83, kBlocks, 8 * kBlocks));
    f.seekp(kMiB);
    f << "XFSB";
  }
  const auto disks = scan_disks(Files(root.path));
  const DiskFacts& disk = by_name(disks, "nvme2n1");
  REQUIRE(disk.partitions.size() == 1);
  CHECK(disk.partitions[0].start_bytes == kMiB);
  CHECK(disk.partitions[0].size_bytes == 8 * kMiB);
  CHECK(disk.partitions[0].fs_type == "xfs");
  CHECK(disk.content == "MBR partition table with 1 partitions, #1 xfs");
}

TEST_CASE("a damaged table is not blank and not trusted") {
  Disk d;
  {
    auto w = d.open(BlockDevice::Access::exclusive_write);
    REQUIRE(write_gpt(w, two_partitions()));
  }
  d.put(512 + 40, "\xff");
  d.put(64 * kMiB - 512 + 40, "\xff");
  CHECK(read_gpt(d.open()).error().code == Code::corrupt);
  const DiskContent c = d.probe();
  CHECK_FALSE(c.blank);
  d.put(5000, "x");  // its partitions are not known, so that what can be seen of the disk is bound as it is
  CHECK(d.probe().hash != c.hash);
}

TEST_CASE("the marker is read back, and counts as content") {
  Disk d;
  CHECK(read_marker(d.open()).error().code == Code::not_found);
  const std::string before = d.probe().hash;
  {
    auto w = d.open(BlockDevice::Access::exclusive_write);
    REQUIRE(write_marker(w, {"node01",
                             "writing",
                             "sha256:d",
                             "b",
                             "a",
                             "sha256:h",
                             true,
                             "gaggle",
                             "sha256:ca",
                             "7-18f/node01/image",
                             {}}));
  }
  const auto m = read_marker(d.open());
  REQUIRE(m);
  CHECK(m->node == "node01");
  CHECK(m->cluster == "gaggle");
  CHECK(m->authority == "sha256:ca");
  CHECK(m->order == "7-18f/node01/image");
  CHECK(m->slot == "b");
  CHECK(m->current == "a");
  CHECK(m->fresh);
  CHECK(d.probe().hash != before);
  for (const uint64_t copy : {kMarkerOffset, kSecondMarkerOffset}) d.put(copy + 100, "!");
  CHECK(read_marker(d.open()).error().code == Code::not_found);
}

TEST_CASE("reads and writes beyond the end of a disk are errors") {
  Disk d;
  auto w = d.open(BlockDevice::Access::exclusive_write);
  CHECK(w.read_at(64 * kMiB - 1, 2).error().code == Code::failed);
  CHECK(w.write_at(64 * kMiB, "x").error().code == Code::failed);
  CHECK(w.zero(64 * kMiB - 1, 2).error().code == Code::failed);
  CHECK(fs::file_size(d.path) == 64 * kMiB);
  CHECK(BlockDevice::open("/nonexistent", BlockDevice::Access::read).error().code == Code::not_found);
  CHECK(partition_path("/dev/nvme0n1", 2) == "/dev/nvme0n1p2");
  CHECK(partition_path("/dev/sda", 3) == "/dev/sda3");
}
