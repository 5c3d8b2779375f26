// The rules that keep disks from being written by mistake. In every case the bytes on the disk are what is
// looked at.
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/step.h"
#include "agent/disk/gpt.h"
#include "agent/facts/collect_facts.h"
#include "agent/steps/accounts.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/step_modules.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

const std::string kPrecious = "precious data of a user";

// Two disks A and B; on B lies something at 100 MiB that must survive every refusal.
struct Two {
  FakeMachine machine;
  Two() { machine.add_disk("nvme1n1", "A"), machine.add_disk("nvme2n1", "B"); }
  Json both(const std::string& policy = "format-if-blank") {
    return {{"name", "scratch"}, {"disks", {machine.approved("A", policy), machine.approved("B", policy)}}};
  }
  Status raid(const Json& params) {
    StepContext context = machine.context();
    return find_step_module("raid")->apply(context, params);
  }
  Status mkfs(const Json& disk) {
    StepContext context = machine.context();
    return find_step_module("filesystem")
        ->apply(context, {{"label", "data"}, {"disks", Json::array({disk})}});
  }
  bool untouched() const { return !machine.called("mdadm --create") && !machine.called("mkfs"); }
};

void put_xfs(FakeMachine& m, const std::string& name, const std::string& label) {
  REQUIRE(m.run({.argv = {"mkfs.xfs", "-L", label, "/dev/" + name}}).ok());
  m.calls.clear();
}

TEST_CASE("disks: a serial that is not there, or is there twice") {
  Two two;
  Json params = two.both();
  params["disks"][1]["serial"] = "X";
  CHECK(two.raid(params).error().code == Code::conflict);  // its WWID says another one
  params["disks"][1]["wwid"] = "eui.X";
  CHECK(two.raid(params).error().code == Code::not_found);
  two.machine.add_disk("nvme3n1", "B");
  CHECK(two.raid(two.both()).error().code == Code::conflict);
  CHECK(two.untouched());
}

TEST_CASE("disks: identity is serial, size, WWID and model together") {
  Two two;
  for (const auto& [key, value] :
       std::map<std::string, Json>{{"size_bytes", 1u << 20}, {"wwid", "eui.other"}, {"model", "OTHER"}}) {
    Json params = two.both();
    params["disks"][0][key] = value;
    INFO(key);
    CHECK(two.raid(params).error().code == Code::conflict);
  }
  CHECK(two.untouched());
}

TEST_CASE("disks: the same disk named twice, no disks, an unknown policy") {
  Two two;
  const Json a = two.machine.approved("A");
  CHECK(two.raid({{"name", "scratch"}, {"disks", {a, a}}}).error().code == Code::invalid);
  CHECK(two.raid({{"name", "scratch"}, {"disks", Json::array()}}).error().code == Code::invalid);
  CHECK(two.raid(two.both("wipe")).error().code == Code::invalid);
  CHECK(two.untouched());
}

TEST_CASE("disks: content that changed after the approval is refused whatever the policy") {
  for (const char* policy : {"format-if-blank", "format"}) {
    Two two;
    const Json params = two.both(policy);
    put_xfs(two.machine, "nvme2n1", "theirs");
    const auto before = two.machine.snapshot();
    CHECK(two.raid(params).error().code == Code::denied);
    CHECK(two.mkfs(params["disks"][1]).error().code == Code::denied);
    CHECK(two.untouched());
    CHECK(two.machine.snapshot() == before);
  }
}

TEST_CASE("disks: format-if-blank refuses a foreign file system, also when the plan saw it") {
  Two two;
  put_xfs(two.machine, "nvme2n1", "theirs");
  const auto before = two.machine.snapshot();
  CHECK(two.raid(two.both()).error().code == Code::denied);
  CHECK(two.mkfs(two.machine.approved("B")).error().code == Code::denied);
  CHECK(two.untouched());
  CHECK(two.machine.snapshot() == before);
}

TEST_CASE("disks: bytes that nothing knows are not blank") {
  Two two;
  two.machine.write_disk("nvme2n1", 0, kPrecious);
  CHECK(two.raid(two.both()).error().code == Code::denied);
  CHECK(two.machine.disk_bytes("nvme2n1", 0, kPrecious.size()) == kPrecious);
}

TEST_CASE(
    "disks: what lies behind a quiet beginning is not blank to the writer either, and what came there after "
    "the approval is seen") {
  for (const uint64_t at : {uint64_t{30} << 20, uint64_t{128} << 20, (uint64_t{512} << 20) - (30 << 20)}) {
    INFO(at);
    Two two;
    const Json before = two.both("format");
    two.machine.write_disk("nvme2n1", at, kPrecious);
    CHECK(two.raid(before).error().code == Code::denied);
    CHECK(two.mkfs(before["disks"][1]).error().code == Code::denied);
    CHECK(two.raid(two.both()).error().code == Code::denied);
    CHECK(two.mkfs(two.machine.approved("B")).error().code == Code::denied);
    CHECK(two.untouched());
    CHECK(two.machine.disk_bytes("nvme2n1", at, kPrecious.size()) == kPrecious);
    CHECK(two.raid(two.both("format")).ok());
  }
}

TEST_CASE("disks: a btrfs or a pool in use is refused whatever the policy") {
  for (const char* kind : {"btrfs", "zfs"}) {
    INFO(kind);
    Two two;
    if (kind == std::string("btrfs")) {
      two.machine.write_disk("nvme2n1", 65536 + 64, "_BHRfS_M");
      two.machine.put("/sys/fs/btrfs/0b6e/devices/nvme2n1/size", "1\n");
    } else {
      two.machine.write_disk("nvme2n1", 131072, std::string("\x0c\xb1\xba\0\0\0\0\0", 8));
      two.machine.put("/proc/spl/kmem/slab", "\n");
    }
    CHECK(two.raid(two.both("format")).error().code == Code::denied);
    CHECK(two.mkfs(two.machine.approved("B", "format")).error().code == Code::denied);
    CHECK(two.untouched());
  }
}

TEST_CASE("filesystem: none is made on an empty array of disks to be kept") {
  Two two;
  const Json params = two.both();
  REQUIRE(two.raid(params).ok());
  StepContext context = two.machine.context();
  const auto mkfs = [&](const Json& disks) {
    return find_step_module("filesystem")
        ->apply(context, {{"label", "scratch"}, {"array", true}, {"disks", disks}});
  };
  CHECK(mkfs(two.both("keep")["disks"]).error().code == Code::denied);
  CHECK_FALSE(two.machine.called("mkfs"));
  CHECK(mkfs(params["disks"]).ok());
  CHECK(mkfs(two.both("keep")["disks"]).ok());  // it is there and kept
}

TEST_CASE("disks: format replaces what the plan saw, and only that") {
  Two two;
  put_xfs(two.machine, "nvme2n1", "theirs");
  const Status done = two.raid(two.both("format"));
  INFO((done.ok() ? "" : done.error().message));
  CHECK(done.ok());
  CHECK(two.machine.disk_bytes("nvme2n1", 0, 4) == std::string(4, '\0'));
}

TEST_CASE("disks: keep is never written, and an approval without a hash approves nothing") {
  Two two;
  CHECK(two.raid(two.both("keep")).error().code == Code::denied);
  Json params = two.both();
  params["disks"][0]["content_hash"] = "";
  CHECK(two.raid(params).error().code == Code::denied);
  CHECK(two.untouched());
}

TEST_CASE("disks: a path of a multipath map is not opened for writing, even where nothing else holds it") {
  Two two;
  const Json approved = two.machine.approved("A", "format");
  const auto wanted = steps::wanted_disks({{"disks", Json::array({approved})}});
  REQUIRE(wanted.ok());
  auto found = steps::resolve_disks(two.machine.files(), *wanted);
  REQUIRE(found.ok());
  CHECK(steps::open_for_format(two.machine.files(), wanted->front(), found->front()).ok());
  found->front().multipath = "mpatha";
  const auto opened = steps::open_for_format(two.machine.files(), wanted->front(), found->front());
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().code == Code::denied);
}

TEST_CASE("disks: a mounted disk and one that carries the system are refused") {
  for (const char* target : {"/data", "/", "/boot/efi"}) {
    Two two;
    const Json params = two.both();
    two.machine.mount_entry("nvme2n1", target, "xfs");
    INFO(target);
    CHECK(two.raid(params).error().code == Code::denied);
    CHECK(two.mkfs(params["disks"][1]).error().code == Code::denied);
    CHECK(two.untouched());
  }
}

TEST_CASE("disks: the parent of a mounted partition is refused") {
  Two two;
  const Json params = two.both();
  two.machine.put("/sys/block/nvme2n1/nvme2n1p1/partition", "1\n");
  two.machine.put("/sys/block/nvme2n1/nvme2n1p1/dev", "259:99\n");
  std::error_code ignored;
  REQUIRE(two.machine.files().symlink("../../block/nvme2n1/nvme2n1p1", "/sys/class/block/nvme2n1p1").ok());
  two.machine.put("/proc/self/mountinfo", "30 1 259:99 / / rw - ext4 /dev/nvme2n1p1 rw\n");
  CHECK(two.raid(params).error().code == Code::denied);
  CHECK(two.untouched());
}

TEST_CASE("disks: a disk over the network is refused") {
  Two two;
  const Json params = two.both();
  two.machine.put("/sys/block/nvme2n1/device/transport", "tcp\n");
  CHECK(two.raid(params).error().code == Code::denied);
  CHECK(two.untouched());
}

TEST_CASE("disks: one disk that may not be written keeps all others from being written") {
  Two two;
  Json params = two.both();
  params["disks"][1]["policy"] = "keep";
  const auto before = two.machine.snapshot();
  CHECK(!two.raid(params).ok());
  CHECK(two.machine.snapshot() == before);
}

TEST_CASE("raid: an array of that name is assembled and kept, also when the plan saw it") {
  Two two;
  REQUIRE(two.raid(two.both()).ok());
  const Json params = two.both("format");
  REQUIRE(two.machine.run({.argv = {"mdadm", "--stop", "/dev/md127"}}).ok());
  two.machine.calls.clear();
  CHECK(two.raid(params).ok());
  CHECK(two.machine.called("mdadm --assemble"));
  CHECK(two.untouched());
}

TEST_CASE("raid: half an array, or another's, is refused") {
  Two two;
  REQUIRE(two.raid(two.both()).ok());
  REQUIRE(two.machine.run({.argv = {"mdadm", "--stop", "/dev/md127"}}).ok());
  Json other = two.both();
  other["name"] = "other";
  two.machine.calls.clear();
  CHECK(two.raid(other).error().code == Code::denied);
  two.machine.add_disk("nvme3n1", "C");
  CHECK(two.raid({{"name", "scratch"}, {"disks", {two.machine.approved("A"), two.machine.approved("C")}}})
            .error()
            .code == Code::denied);
  CHECK(two.untouched());
}

TEST_CASE("raid: disks in an array with other members are refused") {
  Two two;
  REQUIRE(two.raid(two.both()).ok());
  two.machine.add_disk("nvme3n1", "C");
  two.machine.calls.clear();
  CHECK(two.raid({{"name", "scratch"}, {"disks", {two.machine.approved("A"), two.machine.approved("C")}}})
            .error()
            .code == Code::conflict);
  CHECK(two.untouched());
}

// The array is made, and the step learns nothing of it.
void lose_reply(Two& two, const Json& params) {
  two.machine.loses_reply_at = static_cast<int>(two.machine.calls.size());
  CHECK(two.raid(params).error().code == Code::timeout);
  two.machine.loses_reply_at = -1;
  REQUIRE(two.machine.called("mdadm --create"));
  two.machine.calls.clear();
}

TEST_CASE("raid: the ghost of a former file system is gone from a new array") {
  for (const bool interrupted : {false, true}) {
    Two two;
    two.machine.write_disk("nvme1n1", FakeMachine::kArrayData, "XFSB" + std::string(508, '\1'));
    const Json params = two.both();
    if (interrupted) {
      // It cannot be distinguished from data that was put there meanwhile: refused, and nothing is written.
      lose_reply(two, params);
      CHECK(two.raid(params).error().code == Code::denied);
      CHECK(two.machine.disk_bytes("md127", 0, 4) == "XFSB");
      continue;
    }
    REQUIRE(two.raid(params).ok());
    CHECK(two.machine.disk_bytes("md127", 0, 4) == std::string(4, '\0'));
  }
}

TEST_CASE(
    "raid: an array whose creation was interrupted at its end is used as it is, whatever the next plan "
    "approves") {
  for (const bool stopped : {false, true}) {
    Two two;
    Json params = two.both();
    lose_reply(two, params);
    if (stopped) REQUIRE(two.machine.run({.argv = {"mdadm", "--stop", "/dev/md127"}}).ok());
    two.machine.calls.clear();
    for (auto& disk : params["disks"]) disk["content_hash"] = "";  // "ours, nothing is destroyed"
    CHECK(two.raid(params).ok());
    CHECK(two.untouched());
    CHECK_FALSE(two.machine.called("mdadm --stop"));
    CHECK(two.machine.called("mdadm --assemble") == stopped);
    StepContext context = two.machine.context();
    CHECK(find_step_module("raid")->check(context, params)->holds == Holds::yes);
  }
}

TEST_CASE("raid: what was put on an array whose creation was interrupted is not changed") {
  for (const bool stopped : {false, true})
    for (const char* policy : {"format-if-blank", "format"}) {
      Two two;
      const Json params = two.both(policy);
      lose_reply(two, params);
      put_xfs(two.machine, "md127", "theirs");
      if (stopped) REQUIRE(two.machine.run({.argv = {"mdadm", "--stop", "/dev/md127"}}).ok());
      two.machine.calls.clear();
      const std::string a = two.machine.disk_bytes("nvme1n1", 4096, 256),
                        b = two.machine.disk_bytes("nvme2n1", 4096, 256);
      const Status refused = two.raid(params);
      CHECK(refused.error().code == Code::denied);
      CHECK(refused.error().message.find("xfs \"theirs\"") != std::string::npos);
      CHECK(refused.error().message.find("remove /var/lib/muster/intent-raid-scratch.json") !=
            std::string::npos);
      CHECK(two.untouched());
      CHECK_FALSE(two.machine.called("mdadm --stop"));
      CHECK(two.machine.disk_bytes("nvme1n1", 4096, 256) == a);
      CHECK(two.machine.disk_bytes("nvme2n1", 4096, 256) == b);
      CHECK(two.machine.disk_bytes("md127", 0, 4) == "XFSB");
    }
}

TEST_CASE("raid: another array over the disks of an interrupted creation is left alone") {
  Two two;
  const Json params = two.both();
  two.machine.broken = {"mdadm --create"};
  CHECK(!two.raid(params).ok());
  two.machine.broken.clear();
  REQUIRE(two.machine
              .run({.argv = {"mdadm", "--create", "/dev/md/own", "--level=raid0", "--name=own",
                             "/dev/nvme1n1", "/dev/nvme2n1"}})
              .ok());
  two.machine.calls.clear();
  CHECK(two.raid(params).error().code == Code::denied);
  CHECK(two.untouched());
  CHECK_FALSE(two.machine.called("mdadm --stop"));
}

TEST_CASE(
    "raid: of an array whose creation was interrupted half the members are left, empty or not, approved or "
    "not") {
  const auto half = [](Two& two, const Json& params) {
    lose_reply(two, params);
    REQUIRE(two.machine.run({.argv = {"mdadm", "--stop", "/dev/md127"}}).ok());
    two.machine.write_disk("nvme2n1", 4096, std::string(256, '\0'));
    two.machine.calls.clear();
  };
  {
    Two two;
    const Json params = two.both();
    half(two, params);
    CHECK(two.raid(params).ok());  // as it was approved, and nothing came since
    CHECK(two.machine.called("mdadm --create"));
  }
  {
    Two two;
    Json params = two.both();
    half(two, params);
    params["disks"][0]["content_hash"] = "";
    CHECK(two.raid(params).error().code == Code::denied);  // an approval without a hash approves nothing
    CHECK(two.untouched());
  }
  Two two;
  const Json params = two.both();
  half(two, params);
  two.machine.write_disk("nvme1n1", FakeMachine::kArrayData, kPrecious);
  CHECK(two.raid(params).error().code == Code::denied);
  CHECK(two.untouched());
  CHECK(two.machine.disk_bytes("nvme1n1", FakeMachine::kArrayData, kPrecious.size()) == kPrecious);
}

TEST_CASE("raid: an interrupted creation is taken up again for the same disks only") {
  Two two;
  const Json params = two.both();
  two.machine.broken = {"mdadm --create"};
  CHECK(!two.raid(params).ok());
  two.machine.broken.clear();
  two.machine.add_disk("nvme3n1", "C");
  CHECK(two.raid({{"name", "scratch"}, {"disks", {two.machine.approved("A"), two.machine.approved("C")}}})
            .error()
            .code == Code::conflict);
  CHECK(two.raid(params).ok());
  StepContext context = two.machine.context();
  CHECK(find_step_module("raid")->check(context, params)->holds == Holds::yes);
}

TEST_CASE("raid: what appeared on a disk after an interruption is not overwritten") {
  Two two;
  const Json params = two.both();
  two.machine.broken = {"mdadm --create"};
  CHECK(!two.raid(params).ok());
  two.machine.broken.clear();
  put_xfs(two.machine, "nvme2n1", "theirs");
  CHECK(two.raid(params).error().code == Code::denied);
  CHECK(two.machine.disk_bytes("nvme2n1", 0, 4) == "XFSB");
}

TEST_CASE("filesystem: one with our label is kept with its data") {
  Two two;
  put_xfs(two.machine, "nvme1n1", "data");
  two.machine.write_disk("nvme1n1", 100 << 20, kPrecious);
  CHECK(two.mkfs(two.machine.approved("A", "format")).ok());
  CHECK(two.untouched());
  CHECK(two.machine.disk_bytes("nvme1n1", 100 << 20, kPrecious.size()) == kPrecious);
}

// ---- partition: sfdisk is the real one, on the file that stands for the disk

Json cut(const Json& disks) {
  return {{"partitions", {{{"name", "cache"}, {"size_mib", 16}}, {{"name", "data"}}}}, {"disks", disks}};
}

struct Cut {
  FakeMachine machine;
  StepContext context = machine.context();
  Cut() { machine.add_disk("nvme1n1", "A", 64 << 20), machine.add_disk("nvme2n1", "B", 64 << 20); }
  Json both(const std::string& policy = "format-if-blank") const {
    return cut({machine.approved("A", policy), machine.approved("B", policy)});
  }
  Json one(const std::string& policy = "format-if-blank") const {
    return cut(Json::array({machine.approved("A", policy)}));
  }
  Status apply(const Json& params) { return find_step_module("partition")->apply(context, params); }
  Result<CheckResult> check(const Json& params) {
    return find_step_module("partition")->check(context, params);
  }
  void with_foreign_table(const char* disk) {
    REQUIRE(machine
                .run({.argv = {"sfdisk", "--quiet", std::string("/dev/") + disk},
                      .input = "label: gpt\nsize=10MiB, name=theirs\nname=more\n"})
                .value()
                .ok());
    machine.calls.clear();
  }
  bool ran() const { return machine.called("sfdisk"); }
};

TEST_CASE(
    "partition: where each lies follows from the parameters and the disk; sfdisk is not asked to force "
    "anything") {
  Cut c;
  const Json params = c.both();
  const auto before = c.check(params);
  REQUIRE(before.ok());
  CHECK(before->diff.find("disk A (nvme1n1) needs a new GPT with partitions cache (16 MiB), data (46 MiB), "
                          "but currently contains: blank") != std::string::npos);
  REQUIRE(c.apply(params).ok());
  CHECK(!c.machine.called("--force"));
  for (const char* disk : {"nvme1n1", "nvme2n1"}) {
    const auto device =
        BlockDevice::open(c.machine.files().real(std::string("/dev/") + disk), BlockDevice::Access::read);
    const auto table = read_gpt(*device);
    REQUIRE(table.ok());
    REQUIRE(table->partitions.size() == 2);
    CHECK(table->partitions[0].name == "cache");
    CHECK(table->partitions[0].start == 1 << 20);
    CHECK(table->partitions[1].start == 17 << 20);
    CHECK(table->partitions[1].size == 46 << 20);
    CHECK(!table->from_backup);
  }
}

TEST_CASE(
    "partition: a foreign table, a file system and unknown bytes are refused, and not a byte changes on any "
    "disk") {
  for (const int what : {0, 1, 2}) {
    Cut c;
    if (what == 0) c.with_foreign_table("nvme2n1");
    if (what == 1) put_xfs(c.machine, "nvme2n1", "theirs");
    if (what == 2) c.machine.write_disk("nvme2n1", 0, kPrecious);
    INFO(what);
    const auto before = c.machine.snapshot();
    const auto seen = c.check(c.both());
    REQUIRE(seen.ok());
    CHECK(seen->holds == Holds::no);
    CHECK(c.apply(c.both()).error().code == Code::denied);
    CHECK(!c.ran());
    CHECK(c.machine.snapshot() == before);
  }
}

TEST_CASE(
    "partition: a table with other sizes or names, or more of them, is foreign too; policy format replaces "
    "what the plan saw") {
  Cut c;
  REQUIRE(c.apply(c.one()).ok());
  Json other = c.one();
  other["partitions"][0]["size_mib"] = 17;
  CHECK(c.apply(other).error().code == Code::denied);
  other = c.one();
  other["partitions"].erase(1);
  CHECK(c.apply(other).error().code == Code::denied);
  other["disks"][0] = c.machine.approved("A", "format");
  const Status replaced = c.apply(other);
  INFO((replaced.ok() ? "" : replaced.error().message));
  CHECK(replaced.ok());
  CHECK(c.check(other)->holds == Holds::yes);
}

TEST_CASE("partition: content that changed after the approval is refused whatever the policy") {
  for (const char* policy : {"format-if-blank", "format"}) {
    Cut c;
    const Json params = c.both(policy);
    c.with_foreign_table("nvme2n1");
    const auto before = c.machine.snapshot();
    CHECK(c.apply(params).error().code == Code::denied);
    CHECK(c.machine.snapshot() == before);
    CHECK(!c.ran());
  }
}

TEST_CASE(
    "partition: a mounted disk, a mounted partition, the system's disk, and a member of an array are "
    "refused") {
  for (const char* target : {"/data", "/", "/boot/efi"}) {
    Cut c;
    c.with_foreign_table("nvme2n1");
    const Json params = c.both("format");
    c.machine.mount_entry("nvme2n1/nvme2n1p1", target, "xfs");
    INFO(target);
    const auto before = c.machine.snapshot();
    CHECK(c.apply(params).error().code == Code::denied);
    CHECK(c.machine.snapshot() == before);
  }
  Cut whole;
  const Json params = whole.both("format");
  whole.machine.mount_entry("nvme2n1", "/data", "xfs");
  CHECK(whole.apply(params).error().code == Code::denied);
  Cut array;
  REQUIRE(array.machine
              .run({.argv = {"mdadm", "--create", "/dev/md/x", "--name=x", "--level=raid0", "/dev/nvme1n1",
                             "/dev/nvme2n1"}})
              .ok());
  CHECK(array.apply(array.both("format")).error().code == Code::denied);
  CHECK(!whole.ran());
  CHECK(!array.ran());
}

TEST_CASE(
    "partition: another disk of that name, a disk to be kept, one without an approved hash, one over the "
    "network") {
  Cut c;
  for (const auto& [key, value] : std::map<std::string, Json>{{"serial", "X"},
                                                              {"size_bytes", 1u << 20},
                                                              {"wwid", "eui.other"},
                                                              {"model", "OTHER"},
                                                              {"content_hash", ""},
                                                              {"policy", "keep"}}) {
    Json params = c.both();
    params["disks"][1][key] = value;
    INFO(key);
    CHECK(!c.apply(params).ok());
  }
  c.machine.put("/sys/block/nvme2n1/device/transport", "tcp\n");
  CHECK(c.apply(c.both()).error().code == Code::denied);
  CHECK(!c.ran());
}

TEST_CASE(
    "partition: one that is there is kept with its data, also while it is mounted and whatever the policy") {
  Cut c;
  REQUIRE(c.apply(c.one()).ok());
  c.machine.write_disk("nvme1n1", 40 << 20, kPrecious);
  put_xfs(c.machine, "nvme1n1p1", "cache");
  c.machine.mount_entry("nvme1n1/nvme1n1p1", "/cache", "xfs");
  const auto before = c.machine.snapshot();
  for (const char* policy : {"keep", "format-if-blank", "format"}) {
    CHECK(c.check(c.one(policy))->holds == Holds::yes);
    CHECK(c.apply(c.one(policy)).ok());
  }
  CHECK(c.machine.snapshot() == before);
  CHECK(!c.ran());
}

TEST_CASE("partition: nothing of the disk's former life shows up in a new partition") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.add_disk("nvme1n1", "A", 256 << 20);
  const Json params = {{"partitions", {{{"name", "cache"}, {"size_mib", 49}}, {{"name", "data"}}}},
                       {"disks", Json::array({machine.approved("A")})}};
  machine.write_disk("nvme1n1", 50 << 20,
                     "XFSB");  // far from all that is looked at: the disk still counts as blank
  REQUIRE(find_step_module("partition")->apply(context, params).ok());
  CHECK(machine.disk_bytes("nvme1n1", 50 << 20, 4) == std::string(4, '\0'));
}

TEST_CASE("partition: interrupted, it goes on, and refuses what came to the disk in between") {
  Cut c;
  c.with_foreign_table("nvme1n1");
  const Json params = c.one("format");
  c.machine.broken = {"sfdisk"};
  CHECK(!c.apply(params).ok());  // wiped, no new table
  CHECK(c.check(params)->diff.find("interrupted") != std::string::npos);
  c.machine.broken.clear();
  put_xfs(c.machine, "nvme1n1", "theirs");
  CHECK(c.apply(params).error().code == Code::denied);
  CHECK(c.machine.disk_bytes("nvme1n1", 0, 4) == "XFSB");
  c.machine.write_disk("nvme1n1", 0, std::string(512, '\0'));
  Json keep = params;
  keep["disks"][0]["policy"] = "keep";
  CHECK(c.apply(keep).error().code == Code::denied);
  CHECK(c.apply(params).ok());
  CHECK(c.check(params)->holds == Holds::yes);
}

TEST_CASE("partition: only the second copy of the table was written, or only that is left of a good one") {
  Cut c;
  const Json params = c.one();
  REQUIRE(c.apply(params).ok());
  c.machine.write_disk("nvme1n1", 0, std::string(34 * 512, '\0'));
  // Without a note of an interruption this is a foreign disk with a damaged table: not ours to replace.
  CHECK(c.check(params)->holds == Holds::no);
  CHECK(c.apply(params).error().code == Code::denied);
  c.machine.put("/var/lib/muster/intent-partition-" + sha256("A\neui.A").substr(7, 16) + ".json", "{}");
  CHECK(c.apply(params).ok());
  CHECK(c.check(params)->holds == Holds::yes);
}

TEST_CASE("partition: parameters that make no table") {
  Cut c;
  const auto code_of = [&](const Json& partitions) {
    return c.apply({{"partitions", partitions}, {"disks", c.one()["disks"]}}).error().code;
  };
  CHECK(code_of(Json::array()) == Code::invalid);
  CHECK(code_of({{{"name", "a"}}, {{"name", "b"}}}) == Code::invalid);                   // two rests
  CHECK(code_of({{{"name", "a"}, {"size_mib", 1}}, {{"name", "a"}}}) == Code::invalid);  // twice
  CHECK(code_of({{{"name", "a\", type=U"}}}) == Code::invalid);  // would leave the quotes
  CHECK(code_of({{{"name", ""}}}) == Code::invalid);
  CHECK(code_of({{{"name", "a"}, {"size_mib", 63}}}) == Code::invalid);  // does not fit
  CHECK(code_of({{{"name", "a"}, {"size_mib", -1}}}) == Code::invalid);
  CHECK(code_of({{{"name", "a"}, {"type", "swap"}}}) == Code::invalid);
  CHECK(code_of({{{"name", "a"}, {"size", 1}}}) == Code::invalid);
  CHECK(!c.ran());
}

TEST_CASE("filesystem: on a partition that is there and empty, and on no other device") {
  Cut c;
  const StepModule* filesystem = find_step_module("filesystem");
  Json params = {{"label", "cache"}, {"partition", "cache"}, {"disks", c.one()["disks"]}};
  CHECK(filesystem->check(c.context, params)->diff == "disk A has no partition cache");
  CHECK(filesystem->apply(c.context, params).error().code == Code::not_found);
  REQUIRE(c.apply(c.one()).ok());
  Json keep = params;
  keep["disks"][0]["policy"] = "keep";
  CHECK(filesystem->apply(c.context, keep).error().code == Code::denied);
  REQUIRE(filesystem->apply(c.context, params).ok());
  CHECK(c.machine.called("mkfs.xfs -q -L cache /dev/nvme1n1p1"));
  CHECK(filesystem->check(c.context, params)->holds == Holds::yes);
  Json other = params;
  other["label"] = "other";
  CHECK(filesystem->apply(c.context, other).error().code == Code::denied);
  c.machine.put("/sys/block/nvme1n1/nvme1n1p2/start", "4096\n");  // an old view of the table
  params["partition"] = "data";
  CHECK(filesystem->apply(c.context, params).error().code == Code::conflict);
}

TEST_CASE("mount: something else at the mount point is not taken away, and a look-alike is seen") {
  Two two;
  put_xfs(two.machine, "nvme1n1", "data");
  two.machine.mount_entry("nvme2n1", "/scratch", "xfs");
  StepContext context = two.machine.context();
  const Json params = {{"source", "LABEL=data"},
                       {"target", "/scratch"},
                       {"disks", Json::array({two.machine.approved("A", "keep")})}};
  const StepModule* mount = find_step_module("mount");
  CHECK(mount->check(context, params)->holds == Holds::no);
  CHECK(mount->apply(context, params).error().code == Code::conflict);
}

TEST_CASE("moosefs: nothing is written below an unmounted share, and a master's metadata is kept") {
  FakeMachine machine;
  StepContext context = machine.context();
  const Json file = {{"target", "/shared"},
                     {"fstype", "fuse*"},
                     {"source", "*10.20.0.11:9421"},
                     {"file", "x"},
                     {"content", "y"}};
  CHECK(find_step_module("shared_write")->apply(context, file).error().code == Code::conflict);
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /shared rw - ext4 /dev/nvme0n1p2 rw\n");
  CHECK(find_step_module("shared_write")->apply(context, file).error().code == Code::conflict);
  CHECK(!machine.files().exists("/shared/.muster/x"));

  (void)machine.run({.argv = {"useradd", "-d", "/var/lib/mfs", "-s", "/bin/false", "mfs"}}).ok();
  machine.put("/state/mfs/master/metadata.mfs.back", "years of data");
  machine.put("/var/lib/mfs/metadata.mfs.empty", "MFSM NEW");
  CHECK(find_step_module("moosefs_master")
            ->apply(context, {{"address", "10.20.0.11"},
                              {"clients", Json::array()},
                              {"may_create", false},
                              {"disks", Json::array()}})
            .ok());
  CHECK(machine.get("/state/mfs/master/metadata.mfs.back") == "years of data");
  CHECK(!machine.files().exists("/state/mfs/master/metadata.mfs"));
}

TEST_CASE("moosefs: the declared nodes may mount and no others, and root is root on the master's node only") {
  FakeMachine machine;
  StepContext context = machine.context();
  (void)machine.run({.argv = {"useradd", "-d", "/var/lib/mfs", "-s", "/bin/false", "mfs"}}).ok();
  machine.put("/state/mfs/master/metadata.mfs.back", "years of data");
  const StepModule* master = find_step_module("moosefs_master");
  Json params = {
      {"address", "10.20.0.11"},
      {"may_create", false},
      {"disks", Json::array()},
      {"clients",
       {{{"name", "node02"}, {"address", "10.20.0.12"}}, {{"name", "node03"}, {"address", "10.20.0.13"}}}}};
  REQUIRE(master->apply(context, params).ok());
  std::map<std::string, std::string> lines;
  for (const auto& line : split_lines(machine.get("/etc/mfs/mfsexports.cfg")))
    if (line[0] != '#') lines[line.substr(0, line.find(' '))] = line;
  REQUIRE(lines.size() == 3);
  CHECK(lines["10.20.0.11"].find("maproot=0:0") != std::string::npos);
  for (const char* client : {"10.20.0.12", "10.20.0.13"}) {
    CHECK(lines[client].find("maproot=nobody:nogroup") != std::string::npos);
    CHECK(lines[client].find("admin") == std::string::npos);
  }
  for (const char* everybody : {"*", "0.0.0.0", "0.0.0.0/0", "10.20.0.0/24", "::", "", "node02"}) {
    CAPTURE(everybody);
    Json open = params, as = params;
    open["clients"][1]["address"] = everybody;
    as["address"] = everybody;
    CHECK(master->apply(context, open).error().code == Code::invalid);
    CHECK(master->apply(context, as).error().code == Code::invalid);
  }
}

TEST_CASE("moosefs: all users may write at the top, muster's own folder belongs to `nobody`") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.put("/proc/self/mountinfo",
              "40 1 0:50 / /shared rw,nosuid,nodev - fuse mfs\\04310.20.0.11:9421 rw\n");
  machine.put("/shared/x", "");
  const Json params = {{"name", "shared"}, {"master", "10.20.0.11"}, {"target", "/shared"}};
  const StepModule* policy = find_step_module("moosefs_policy");
  REQUIRE(policy->apply(context, params).ok());
  CHECK(policy->check(context, params)->holds == Holds::yes);
  CHECK(steps::look(machine.files(), "/shared").mode == 01777);
  CHECK(steps::look(machine.files(), "/shared/.muster").directory);
  REQUIRE(::chmod(machine.files().real("/shared").c_str(), 0755) == 0);
  CHECK(policy->check(context, params)->holds == Holds::no);
}

TEST_CASE("mounts: what forbids programs to change who runs them is in force, not only in a file") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.add_disk("nvme1n1", "A");
  (void)machine.run({.argv = {"mkfs.xfs", "-L", "data", "/dev/nvme1n1"}});
  Json params = {{"label", "data"}, {"target", "/data"}, {"disks", Json::array({machine.approved("A")})}};
  const StepModule* mount = find_step_module("mount");
  REQUIRE(mount->apply(context, params).ok());
  params["options"] = "noatime,nosuid,nodev";
  CHECK(mount->check(context, params)->holds == Holds::no);
  REQUIRE(mount->apply(context, params).ok());  // of one that is mounted already, and in use
  CHECK(mount->check(context, params)->holds == Holds::yes);
  CHECK(machine.get("/proc/self/mountinfo").find("nosuid,nodev") != std::string::npos);

  machine.put("/proc/self/mountinfo", "40 1 0:50 / /shared rw - fuse mfs\\04310.20.0.11:9421 rw\n");
  machine.put("/shared/x", "");
  const Json shared = {
      {"name", "shared"}, {"master", "10.20.0.11"}, {"target", "/shared"}, {"deadline_seconds", 0}};
  const StepModule* mfs = find_step_module("moosefs_mount");
  REQUIRE(mfs->apply(context, shared).ok());
  CHECK(mfs->check(context, shared)->holds == Holds::yes);
  CHECK(machine.get("/proc/self/mountinfo").find("nosuid,nodev") != std::string::npos);
}

TEST_CASE("mounts: what a service mounted long ago is remounted, not only at its next start") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule* flags = find_step_module("mount_flags");
  const Json params = {{"target", "/beegfs"}, {"flags", "nosuid,nodev"}};
  CHECK(flags->check(context, params)->holds == Holds::no);
  CHECK(flags->apply(context, params).error().code == Code::not_found);  // mounts nothing
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /beegfs rw,relatime,nodev - beegfs beegfs_nodev rw\n");
  CHECK(flags->check(context, params)->holds == Holds::no);
  REQUIRE(flags->apply(context, params).ok());
  CHECK(flags->check(context, params)->holds == Holds::yes);
  CHECK(machine.get("/proc/self/mountinfo").find("nosuid") != std::string::npos);
  for (const char* bad : {"suid", "nosuid,dev", "ro"})
    CHECK(flags->check(context, {{"target", "/beegfs"}, {"flags", bad}}).error().code == Code::invalid);
  CHECK(flags->check(context, {{"target", "beegfs"}}).error().code == Code::invalid);
}

TEST_CASE("nfs: exported to the declared nodes and to no others, root squashed, whatever else is exported") {
  FakeMachine machine;
  machine.units["nfs-server.service"] = {};
  StepContext context = machine.context();
  const StepModule* server = find_step_module("nfs_server");
  const Json params = {
      {"name", "home"},
      {"path", "/export"},
      {"clients",
       {{{"name", "node02"}, {"address", "10.20.0.12"}}, {{"name", "node03"}, {"address", "10.20.0.13"}}}}};
  machine.put("/export/x", "");
  CHECK(server->apply(context, params).error().code == Code::conflict);  // nothing is mounted there
  CHECK(machine.get("/etc/exports.d/muster-home.exports").empty());
  machine.put("/proc/self/mountinfo", "40 1 259:1 / /export rw - xfs /dev/nvme1n1 rw\n");
  REQUIRE(server->apply(context, params).ok());
  const std::string line = machine.get("/etc/exports.d/muster-home.exports");
  CHECK(line.find("mountpoint") != std::string::npos);
  CHECK(line.find(" 10.20.0.12(") != std::string::npos);
  CHECK(line.find("no_root_squash") == std::string::npos);
  CHECK(line.find("/24") == std::string::npos);
  CHECK(server->check(context, params)->holds == Holds::yes);
  CHECK(steps::look(machine.files(), "/export").mode == 01777);
  CHECK(steps::look(machine.files(), "/export/.muster").directory);

  // The files are right, the running server is not.
  const auto also = [&](const std::string& text) {
    machine.put("/etc/exports", text);
    (void)machine.run({.argv = {"exportfs", "-ra"}}).ok();
    const bool right = server->check(context, params)->holds == Holds::yes;
    const bool applied = server->apply(context, params).ok();
    machine.put("/etc/exports", "");
    CHECK(server->apply(context, params).ok());
    return right || applied;
  };
  CHECK_FALSE(also("/export *(rw)\n"));
  CHECK_FALSE(also("/export 10.20.0.0/24(rw,mountpoint)\n"));

  // A node less, and none at all: a path without a client would be everybody's.
  Json fewer = params;
  fewer["clients"].erase(1);
  CHECK(server->check(context, fewer)->holds == Holds::no);
  CHECK(server->apply(context, fewer).ok());
  CHECK(server->check(context, fewer)->holds == Holds::yes);
  CHECK(server->check(context, params)->holds == Holds::no);
  fewer["clients"] = Json::array();
  CHECK(server->apply(context, fewer).ok());
  CHECK(machine.run({.argv = {"exportfs", "-s"}})->out.empty());

  for (const char* client : {"*", "0.0.0.0", "0.0.0.0/0", "10.20.0.0/24", "::", "", "node02"}) {
    Json open = params;
    open["clients"][0]["address"] = client;
    CHECK(server->apply(context, open).error().code == Code::invalid);
  }
}

TEST_CASE("shared files: a mount of the right type from another source does not count") {
  FakeMachine machine;
  StepContext context = machine.context();
  const Json params = {{"target", "/export"},
                       {"fstype", "nfs4"},
                       {"source", "10.20.0.11:/export"},
                       {"file", "x"},
                       {"content", "y"}};
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /export rw - nfs4 10.20.0.12:/export rw\n");
  CHECK(find_step_module("shared_write")->apply(context, params).error().code == Code::conflict);
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /export rw - nfs4 10.20.0.11:/export rw\n");
  CHECK(find_step_module("shared_write")->apply(context, params).ok());
  CHECK(machine.get("/export/.muster/x") == "y");
  Json outside = params;
  outside["file"] = "../../etc/passwd";
  CHECK(find_step_module("shared_write")->apply(context, outside).error().code == Code::invalid);
}

TEST_CASE(
    "moosefs: no empty file system where anything says that there was one, and the metadata that is brought "
    "back is used") {
  for (const std::string found :
       {"nothing", "the plan", "a copy", "change logs", "a label", "no such disk"}) {
    INFO(found);
    FakeMachine machine;
    StepContext context = machine.context();
    machine.put("/etc/passwd", machine.get("/etc/passwd") + "mfs:x:" + std::to_string(getuid()) + ":" +
                                   std::to_string(getgid()) + "::/var/lib/mfs:/bin/false\n");
    machine.put("/etc/group", machine.get("/etc/group") + "mfs:x:" + std::to_string(getgid()) + ":\n");
    machine.put("/state/x", "");
    machine.put("/var/lib/mfs/metadata.mfs.empty", "MFSM NEW");
    machine.add_disk("nvme3n1", "SERIAL-C1");
    Json params = {{"address", "10.20.0.11"},
                   {"clients", Json::array()},
                   {"may_create", found != "the plan"},
                   {"disks", Json::array({machine.approved("SERIAL-C1")})}};
    if (found == "a copy") machine.put("/state/mfs/metalogger/metadata_ml.mfs.back", "years of data");
    if (found == "change logs") machine.put("/state/mfs/metalogger/changelog_ml.0.mfs", "days of data");
    if (found == "a label") put_xfs(machine, "nvme3n1", "mfs-ERIAL-C1");
    if (found == "no such disk") params["disks"][0]["serial"] = "SERIAL-X";
    const StepModule* master = find_step_module("moosefs_master");
    const Status made = master->apply(context, params);
    CHECK(made.ok() == (found == "nothing"));
    CHECK(machine.files().exists("/state/mfs/master/metadata.mfs") == (found == "nothing"));
    CHECK(machine.units["moosefs-master.service"].active == (found == "nothing"));
    if (made.ok() || found == "no such disk") continue;
    CHECK(made.error().code == Code::denied);
    CHECK(made.error().message.find("/state/mfs/metalogger on another node") != std::string::npos);
    machine.put("/state/mfs/master/metadata_ml.mfs.back", "years of data");
    CHECK(master->apply(context, params).ok());
    CHECK(machine.units["moosefs-master.service"].active);
    CHECK_FALSE(machine.files().exists("/state/mfs/master/metadata.mfs"));
  }
}

TEST_CASE(
    "facts say whether the metadata of a shared file system lies here, and nothing of an engine that is not "
    "here") {
  FakeMachine machine;
  const auto seen = [&] { return collect_facts(machine.files())->storage_metadata; };
  CHECK(seen().empty());
  machine.put("/var/lib/mfs/metadata.mfs.empty", "MFSM NEW");
  machine.put("/var/lib/ceph/osd/ceph-0/keyring", "");
  CHECK(seen() == std::map<std::string, bool>{{"moosefs", false}, {"ceph", false}});
  machine.put("/var/lib/ceph/mon/ceph-node01/store.db/CURRENT", "");
  machine.put("/var/lib/mfs/master/changelog.0.mfs", "");
  CHECK(seen() == std::map<std::string, bool>{{"moosefs", true}, {"ceph", true}});
  // With /state that is where they lie.
  machine.put("/state/x", "");
  CHECK_FALSE(seen().at("moosefs"));
  machine.put("/state/mfs/master/metadata.mfs.back", "");
  CHECK(seen().at("moosefs"));
}

TEST_CASE(
    "moosefs: a node is drained when the master says so, and not begun when the others cannot take its "
    "data") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule* drain = find_step_module("moosefs_drain");
  machine.add_disk("nvme3n1", "C");
  machine.put("/mfs/servers", "10.20.0.11 10.20.0.12");
  machine.put("/mfs/own", "10.20.0.12");
  const Json params = {{"master", "10.20.0.11"},
                       {"address", "10.20.0.12"},
                       {"disks", Json::array({machine.approved("C")})},
                       {"deadline_seconds", 0}};
  // Two copies on one other server: no.
  CHECK(drain->apply(context, params).error().code == Code::conflict);
  CHECK(!machine.files().exists("/etc/mfs/mfshdd.cfg"));
  machine.put("/mfs/servers", "10.20.0.11 10.20.0.12 10.20.0.13");
  machine.put("/mfs/full", "");
  CHECK(drain->apply(context, params).error().message.find("do not fit") != std::string::npos);
  CHECK(!machine.files().exists("/etc/mfs/mfshdd.cfg"));
  (void)machine.files().remove("/mfs/full").ok();

  machine.put("/mfs/undergoal", "3");
  CHECK(drain->apply(context, params).error().message.find("3 chunks are undergoal") != std::string::npos);
  CHECK(drain->check(context, params)->holds == Holds::no);
  (void)machine.files().remove("/mfs/undergoal").ok();
  CHECK(drain->apply(context, params).ok());
  CHECK(machine.get("/etc/mfs/mfshdd.cfg").find("*/srv/mfs/C\n") != std::string::npos);
  CHECK(drain->check(context, params)->holds == Holds::yes);

  // Its disks are none of the members' business now.
  const StepModule* members = find_step_module("moosefs_members");
  const Json both = {
      {"master", "10.20.0.11"},
      {"members", {{{"name", "a"}, {"address", "10.20.0.11"}}, {{"name", "c"}, {"address", "10.20.0.13"}}}},
      {"deadline_seconds", 0}};
  CHECK(members->check(context, both)->holds == Holds::yes);
  Json all = both;
  all["members"].push_back({{"name", "b"}, {"address", "10.20.0.12"}});
  CHECK(members->check(context, all)->diff.find("a disk of b is") != std::string::npos);
}

TEST_CASE("slurm: a job that does not end gives the nodes back and says what it knows") {
  struct Hangs : Process {
    Result<Output> run(const Command& command) override {
      if (command.argv[0] != "runuser") return Output{0, "", ""};
      argv = command.argv;
      deadline = command.deadline;
      Output out;
      out.exit_code = 124;
      out.err = "srun: task 1 never came";
      return out;
    }
    std::vector<std::string> argv;
    DurationMs deadline = 0;
  } process;
  FakeMachine machine;
  const StepContext whole = machine.context();
  StepContext requested{whole.files, process, whole.node};
  const Json params = {{"hosts", {{{"name", "node01"}}, {{"name", "node02"}}}}, {"deadline_seconds", 90}};
  const auto result = find_step_module("slurm_mpi")->check(requested, params);
  REQUIRE(result.ok());
  CHECK(result->holds == Holds::no);
  CHECK(result->diff.find("srun: task 1 never came") != std::string::npos);
  const auto has = [&](const std::string& word) {
    return std::find(process.argv.begin(), process.argv.end(), word) != process.argv.end();
  };
  CHECK(has("timeout"));
  CHECK(has("OMPI_MCA_pml=ob1"));  // some nodes may have RDMA and some not
  CHECK(has("90"));
  CHECK(has("--kill-on-bad-exit=1"));
  CHECK(has("--time=2"));
  CHECK(process.deadline > 100 * kSecond);  // srun is stopped in order before it is killed
}

TEST_CASE("slurm: nodes that are busy with other jobs are neither broken nor tested") {
  struct Busy : Process {
    explicit Busy(FakeMachine& of) : machine(of) {}
    Result<Output> run(const Command& command) override {
      if (command.argv[0] != "runuser") return machine.run(command);
      argv = command.argv;
      if (!then.empty()) machine.put("/slurm/node02", then);
      return Output{
          1, "",
          before +
              "srun: job 7 queued and waiting for resources\nsrun: error: Unable to allocate resources: " +
              why};
    }
    FakeMachine& machine;
    std::string before, why, then;
    std::vector<std::string> argv;
  };
  FakeMachine machine;
  Busy process(machine);
  for (const char* node : {"node01", "node02"}) machine.put(std::string("/slurm/") + node, "idle|none");
  const StepContext whole = machine.context();
  StepContext requested{whole.files, process, whole.node};
  const Json params = {{"hosts", {{{"name", "node01"}}, {{"name", "node02"}}}}};
  const StepModule* mpi = find_step_module("slurm_mpi");
  process.why = "Requested nodes are busy\n";
  CHECK(mpi->check(requested, params)->holds == Holds::not_applicable);
  process.why = "Required partition not available (inactive or drain)\n";
  CHECK(mpi->check(requested, params)->holds == Holds::not_applicable);
  process.why = "Requested node configuration is not available\n";
  CHECK(mpi->check(requested, params)->holds == Holds::no);
  // Taken out since the states were tested: by a person, or because it failed.
  process.before = "srun: Required node not available (down, drained or reserved)\n";
  process.why = "Requested nodes are busy\n";
  process.then = "drained|RMA 123|ann|2026-11-29T09:48:25";
  CHECK(mpi->check(requested, params)->holds == Holds::not_applicable);
  machine.put("/slurm/node02", "idle|none");
  process.then = "down*|Not responding";
  CHECK(mpi->check(requested, params)->holds == Holds::no);
  process.then.clear();
  machine.put("/slurm/node02", "drained|RMA 123|ann|2026-11-29T09:48:25");
  mpi->check(requested, params).value();
  CHECK(std::find(process.argv.begin(), process.argv.end(), "--nodelist=node01") != process.argv.end());
  machine.put("/slurm/node01", "drained|head|ann|2026-11-29T09:48:25");
  process.argv.clear();
  CHECK(mpi->check(requested, params)->holds == Holds::not_applicable);
  CHECK(process.argv.empty());
}

TEST_CASE("slurm: nodes that do not answer are named") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.put("/slurm/node01", "idle|none");
  machine.put("/slurm/node02", "down*|Not responding");
  const StepModule* nodes = find_step_module("slurm_nodes");
  Json params = {{"nodes", {{{"name", "node01"}}, {{"name", "node02"}}, {{"name", "node03"}}}},
                 {"deadline_seconds", 0}};
  const auto looked = nodes->check(context, params);
  CHECK(looked->holds == Holds::no);
  for (const char* part : {"node02", "down*", "Not responding", "node03"})
    CHECK(looked->diff.find(part) != std::string::npos);
  params["nodes"] = {{{"name", "node01"}}};
  CHECK(nodes->check(context, params)->holds == Holds::yes);
  // slurmctld reads its list when it starts: no use in waiting.
  params = {{"nodes", {{{"name", "node03"}}}}, {"deadline_seconds", 1000}};
  CHECK(nodes->check(context, params)->holds == Holds::no);
}

TEST_CASE("slurm: nodes that others took out fail no test of all nodes, and are named") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.put("/slurm/node01", "idle|none");
  const StepModule* nodes = find_step_module("slurm_nodes");
  const Json params = {{"nodes", {{{"name", "node01"}}, {{"name", "node02"}}}}, {"deadline_seconds", 0}};
  for (const char* state : {"drained|RMA 123|ann|2026-11-29T09:48:25", "draining|muster health: gpu_xids +1",
                            "fail|bad fan", "drained|muster drain", "maint|none", "inval|RMA 124",
                            "drained*|mustering out", "down|ann: RMA 123"}) {
    CAPTURE(state);
    machine.put("/slurm/node02", state);
    const auto looked = nodes->check(context, params);
    CHECK(looked->holds == Holds::yes);
    CHECK(looked->note.find("node02") != std::string::npos);
    CHECK(looked->note.find("node01") == std::string::npos);
  }
  for (const char* state :
       {"drained|muster reimage", "inval|Low CPUs", "down|Node unexpectedly rebooted", "idle*|none"}) {
    CAPTURE(state);
    machine.put("/slurm/node02", state);
    CHECK(nodes->check(context, params)->holds == Holds::no);
  }
}

}  // namespace
}  // namespace muster
