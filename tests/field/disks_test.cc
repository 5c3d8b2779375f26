// Field cases of area `disks`, kind "plan and deed agree": what the plan approves is what the agent finds and
// does, or the plan refuses.
#include <algorithm>

#include "agent/disk/disk_probe.h"
#include "agent/facts/collect_facts.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/disk/mounts.h"
#include "base/disk_source.h"
#include "base/json_dump.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/lint.h"
#include "controller/spec/hardware.h"
#include "host/disks_under.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/machines.h"

namespace muster::tests {
namespace {

using muster::testing::planned;

// A machine with the disks of the case.
struct Made {
  FakeMachine machine;
  explicit Made(const std::string& name) { build(machine, field_input(name, "machine.json")); }
  std::vector<DiskFacts> seen() const { return scan_disks(machine.files()); }
  std::string label_of_member(const std::string& disk) const {
    const std::string block = machine.disk_bytes(disk, 4096, 256);
    return block.substr(32, 32).c_str();
  }
};

size_t destroyed_of(const Plan& plan, const std::string& group) {
  return static_cast<size_t>(std::count_if(plan.destroys.begin(), plan.destroys.end(),
                                           [&](const Destruction& d) { return d.group == group; }));
}

Json as_wanted(const DiskFacts& d, const std::string& policy) {
  return {{"serial", d.serial},
          {"wwid", d.wwid},
          {"model", d.model},
          {"size_bytes", d.size_bytes},
          {"content_hash", d.content_hash},
          {"policy", policy}};
}

// Both disks of 48 MiB become the array, each found by the agent, and nothing else is written.
void check_array_over(Made& made, const std::vector<std::string>& names, const std::string& spared) {
  const auto seen = made.seen();
  const Plan plan = planned(with_fast(seen, 2, DiskPolicy::format_if_blank));
  CHECK(lint_plan(plan).empty());
  CHECK(destroyed_of(plan, "fast") == 2);
  const Status done = set_up(made.machine, disks_in(plan));
  INFO((done.ok() ? "" : done.error().message));
  REQUIRE(done.ok());
  CHECK(made.machine.called("/dev/" + names[0] + " /dev/" + names[1]));
  for (const auto& name : names) CHECK(made.label_of_member(name) == "any:scratch");
  if (!spared.empty()) CHECK(made.machine.disk_bytes(spared, 0, 8192) == std::string(8192, '\0'));
}

}  // namespace

FIELD_CASE("raid-controller-one-serial") {
  Made made("raid-controller-one-serial");
  const auto seen = made.seen();
  REQUIRE(seen.size() == 3);
  for (const auto& d : seen) {
    const auto found = find_disk(seen, d);
    REQUIRE(found.ok());
    CHECK(found->name == d.name);
  }
  // Without a WWID nothing tells them apart.
  CHECK(find_disk(seen, {"RAID77", "", "", 48 << 20}).error().code == Code::conflict);
  check_array_over(made, {"sdb", "sdc"}, "sda");
}

FIELD_CASE("raid-controller-one-serial: acceptance knows them apart too") {
  Made made("raid-controller-one-serial");
  for (const char* name : {"sda", "sdb", "sdc"})
    made.machine.put("/sys/block/" + std::string(name) + "/device/x", "");
  const auto seen = made.seen();
  const DiskFacts &a = named(seen, "sda"), &b = named(seen, "sdb");
  CHECK(lies_on(made.machine.files(), "/dev/sdb", disk_source({b})).ok());
  CHECK(lies_on(made.machine.files(), "/dev/sdb", disk_source({a})).error().code == Code::denied);
  CHECK(lies_on(made.machine.files(), "/dev/sdb", disk_source({a, b})).error().code == Code::denied);
  CHECK(lies_on(made.machine.files(), "/dev/sdb", disk_source({})).error().code == Code::denied);
}

FIELD_CASE("nvme-namespaces-one-serial") {
  Made made("nvme-namespaces-one-serial");
  check_array_over(made, {"nvme0n1", "nvme0n2"}, "");
}

FIELD_CASE("nvme-namespaces-one-serial: interrupted work is noted for each of them") {
  Made made("nvme-namespaces-one-serial");
  const auto seen = made.seen();
  const Json first = as_wanted(named(seen, "nvme0n1"), "format"),
             second = as_wanted(named(seen, "nvme0n2"), "format");
  const Json cut = Json::array({Json{{"name", "data"}}});
  made.machine.broken = {"sfdisk"};
  CHECK_FALSE(apply(made.machine, "partition", {{"partitions", cut}, {"disks", Json::array({first})}}).ok());
  // The other namespace was not being partitioned.
  const auto other =
      check(made.machine, "partition", {{"partitions", cut}, {"disks", Json::array({second})}});
  REQUIRE(other.ok());
  CHECK(other->diff.find("interrupted") == std::string::npos);
}

FIELD_CASE("engine-calls-disks-by-serial") {
  for (const std::string engine : {"moosefs", "ceph"}) {
    INFO(engine);
    PlannerInput in = muster::testing::with_nodes(muster::testing::seen_in_ram);
    in.spec.storage.back().engine = engine;
    auto& disks = in.nodes["node01"].facts->disks;
    DiskFacts twin = disks[3];
    twin.wwid = "eui.another";
    twin.name = "nvme9n2";
    disks.push_back(twin);
    in.spec.nodes[0].disks["bulk"].match.count = 2;
    CHECK(refused_by(in) == "disk-identity");
  }
}

FIELD_CASE("wwid-all-zero") {
  Made made("wwid-all-zero");
  check_array_over(made, {"nvme0n1", "nvme1n1"}, "");
}

FIELD_CASE("wwid-of-a-batch") {
  Made made("wwid-of-a-batch");
  CHECK(refused_by(with_fast(made.seen(), 1, DiskPolicy::format_if_blank)) == "disk-identity");
}

FIELD_CASE("md-foreign-homehost-format") {
  for (const bool assembled : {false, true}) {
    INFO((assembled ? "assembled by itself meanwhile" : "not assembled"));
    Made made("md-foreign-homehost-format");
    const Plan plan = planned(with_fast(made.seen(), 2, DiskPolicy::format));
    CHECK(destroyed_of(plan, "fast") == 2);
    if (assembled)
      REQUIRE(
          made.machine.run({.argv = {"mdadm", "--assemble", "/dev/md127", "/dev/nvme1n1", "/dev/nvme2n1"}})
              ->ok());
    made.machine.calls.clear();
    const Status done = set_up(made.machine, disks_in(plan));
    INFO((done.ok() ? "" : done.error().message));
    REQUIRE(done.ok());
    CHECK(made.machine.called("mdadm --create"));
    CHECK(made.machine.called("mdadm --stop") == assembled);
    CHECK(made.machine.called("mkfs.xfs"));
    for (const char* disk : {"nvme1n1", "nvme2n1"}) CHECK(made.label_of_member(disk) == "any:scratch");
  }
}

FIELD_CASE("md-foreign-homehost-format: it is kept where nothing gives it up") {
  Made made("md-foreign-homehost-format");
  CHECK(refused_by(with_fast(made.seen(), 2, DiskPolicy::format_if_blank)) == "disk-foreign");
  const auto before = made.machine.snapshot();
  Json disks = Json::array();
  for (const auto& d : made.seen()) disks.push_back(as_wanted(d, "format"));
  for (auto& disk : disks) disk["content_hash"] = "";  // nothing was approved
  CHECK(set_up(made.machine, disks).error().code == Code::denied);
  CHECK(made.machine.snapshot() == before);
  // Running and in use, it is not stopped either, whatever was approved.
  REQUIRE(made.machine.run({.argv = {"mdadm", "--assemble", "/dev/md127", "/dev/nvme1n1", "/dev/nvme2n1"}})
              ->ok());
  made.machine.mount_entry("md127", "/old", "xfs");
  for (size_t i = 0; i < disks.size(); ++i) disks[i] = as_wanted(made.seen()[i], "format");
  made.machine.calls.clear();
  CHECK(set_up(made.machine, disks).error().code == Code::denied);
  CHECK(made.machine.calls.empty());
}

FIELD_CASE("md-foreign-homehost-format: mdadm gets our array by its UUID, and an older line is taken over") {
  Made made("md-foreign-homehost-format");
  const Plan plan = planned(with_fast(made.seen(), 2, DiskPolicy::format));
  made.machine.put("/etc/mdadm/mdadm.conf", "ARRAY /dev/md/scratch metadata=1.2 name=any:scratch\n");
  REQUIRE(set_up(made.machine, disks_in(plan)).ok());
  const std::string conf = made.machine.get("/etc/mdadm/mdadm.conf");
  CHECK(conf.find("name=") == std::string::npos);
  CHECK(conf.find("ARRAY /dev/md/scratch metadata=1.2 UUID=30313233:34353637:38396162:63646566\n") !=
        std::string::npos);
}

FIELD_CASE("md-stale-member") {
  Made made("md-stale-member");
  for (const auto policy : {DiskPolicy::keep, DiskPolicy::format_if_blank, DiskPolicy::format})
    CHECK(refused_by(with_fast(made.seen(), 2, policy)) == "array-mixed");
  const auto rule_with = [&](const Json& second) {
    FakeMachine machine;
    const auto all = parse_json(field_input("md-stale-member", "machine.json"));
    add_disk(machine, all->at("disks")[0]);
    add_disk(machine, second);
    return refused_by(with_fast(scan_disks(machine.files()), 2, DiskPolicy::format));
  };
  const Json blank = {{"name", "nvme2n1"}, {"serial", "A2"}, {"wwid", "eui.a2"}};
  CHECK(rule_with(blank) == "array-incomplete");
  const auto member = [&](int level, int members) {
    Json out = blank;
    out["md"] = {{"name", "any:scratch"}, {"id", "5"}, {"level", level}, {"members", members}};
    return out;
  };
  CHECK(rule_with(member(0, 2)) == "");
  CHECK(rule_with(member(1, 2)) == "array-level");
  CHECK(rule_with(member(0, 3)) == "array-incomplete");
}

FIELD_CASE("md-part-assembled") {
  Made made("md-part-assembled");
  const Plan plan = planned(with_fast(made.seen(), 2, DiskPolicy::format));
  REQUIRE(made.machine.run({.argv = {"mdadm", "--assemble", "/dev/md127", "/dev/nvme1n1"}})->ok());
  made.machine.calls.clear();
  const Status done = set_up(made.machine, disks_in(plan));
  INFO((done.ok() ? "" : done.error().message));
  REQUIRE(done.ok());
  CHECK(made.machine.called("mdadm --stop /dev/md127"));
  CHECK(made.machine.called("mdadm --create"));
}

FIELD_CASE("md-on-partitions") {
  FakeMachine machine;
  machine.add_disk("nvme1n1", "A1", 48 << 20);
  machine.add_disk("nvme2n1", "A2", 48 << 20);
  for (const char* disk : {"nvme1n1", "nvme2n1"}) {
    REQUIRE(machine
                .run({.argv = {"sfdisk", "--quiet", std::string("/dev/") + disk},
                      .input = "label: gpt\nstart=2048, size=40MiB, name=old\n"})
                ->ok());
    machine.write_disk(disk, (1 << 20) + 4096, md_block({{"name", "old:0"}, {"id", "3"}}, 40 << 20));
  }
  const Plan plan = planned(with_fast(scan_disks(machine.files()), 2, DiskPolicy::format));
  REQUIRE(set_up(machine, disks_in(plan)).ok());
  for (const auto& d : scan_disks(machine.files())) {
    CHECK(d.partitions.empty());
    CHECK(d.signatures.size() == 1);
  }
}

FIELD_CASE("read-only-disk") {
  Made made("read-only-disk");
  const auto seen = made.seen();
  CHECK(named(seen, "sda").read_only);
  CHECK_FALSE(named(seen, "sdb").read_only);
  const auto reported = disk_facts_from_json(to_json(named(seen, "sda")), "disk");
  REQUIRE(reported.ok());
  CHECK(reported->read_only);
  for (const auto policy : {DiskPolicy::format_if_blank, DiskPolicy::format})
    CHECK(refused_by(with_fast(seen, 2, policy)) == "disk-read-only");

  // The agent looks again: it was writable when the plan was made.
  const auto before = made.machine.snapshot();
  Json disks = Json::array();
  for (const auto& d : seen) disks.push_back(as_wanted(d, "format"));
  CHECK(set_up(made.machine, disks).error().code == Code::denied);
  CHECK(made.machine.snapshot() == before);
}

FIELD_CASE("read-only-disk: it would be the OS disk") {
  PlannerInput in = muster::testing::with_nodes(muster::testing::seen_in_ram);
  in.nodes["node02"].facts->disks[0].read_only = true;
  CHECK(refused_by(in) == "disk-read-only");
  in = muster::testing::with_nodes(muster::testing::installed);
  in.request = {RequestKind::reimage, {"node02"}};
  in.nodes["node02"].facts->disks[0].read_only =
      true;  // muster's own system, and its other slot is to be written
  CHECK(refused_by(in) == "disk-read-only");
}

FIELD_CASE("multipath-holds-a-drive") {
  const Made drives("multipath-holds-a-drive");
  const auto seen = drives.seen();
  CHECK(named(seen, "sda").multipath == "mpatha");
  CHECK(named(seen, "sdb").multipath.empty());
  const auto reported = disk_facts_from_json(to_json(named(seen, "sda")), "disk");
  REQUIRE(reported.ok());
  CHECK(reported->multipath == "mpatha");
  for (const auto policy : {DiskPolicy::keep, DiskPolicy::format_if_blank, DiskPolicy::format}) {
    const PlannerInput in = with_fast(seen, 2, policy);
    CHECK(refused_by(in) == "disk-multipath");
    const auto made = make_plan(in);
    REQUIRE(made.ok());
    REQUIRE_FALSE(made->refusals.empty());
    CHECK(made->refusals.front().message.find("mpatha") != std::string::npos);
  }
  // A group that no storage uses is not written.
  PlannerInput unused = with_fast(seen, 2, DiskPolicy::keep);
  std::erase_if(unused.spec.storage, [](const StorageSpec& s) { return s.disks == "fast"; });
  CHECK(refused_by(unused).empty());
}

FIELD_CASE("multipath-holds-a-drive: the agent looks again") {
  Made made("multipath-holds-a-drive");
  Json disks = Json::array();
  for (const auto& d : made.seen()) disks.push_back(as_wanted(d, "format"));
  const auto before = made.machine.snapshot();
  for (const Json& step :
       {Json{{"module", "raid"}, {"name", "scratch"}, {"level", "raid0"}, {"disks", disks}},
        Json{{"module", "filesystem"}, {"label", "data"}, {"disks", Json::array({disks[0]})}},
        Json{{"module", "partition"},
             {"partitions", Json::array({Json{{"name", "data"}}})},
             {"disks", Json::array({disks[0]})}}}) {
    Json params = step;
    params.erase("module");
    const Status done = apply(made.machine, step["module"].get<std::string>(), params);
    INFO(dump_json(step));
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().code == Code::denied);
    CHECK(done.error().message.find("mpatha") != std::string::npos);
  }
  CHECK(made.machine.snapshot() == before);
}

FIELD_CASE("multipath-holds-a-drive: it would be the OS disk") {
  PlannerInput in = muster::testing::with_nodes(muster::testing::seen_in_ram);
  in.nodes["node02"].facts->disks[0].multipath = "mpathb";
  CHECK(refused_by(in) == "disk-multipath");
  in = muster::testing::with_nodes(muster::testing::installed);
  in.request = {RequestKind::reimage, {"node02"}};
  in.nodes["node02"].facts->disks[0].multipath = "mpathb";
  CHECK(refused_by(in) == "disk-multipath");
}

FIELD_CASE("emmc-boot-areas") {
  Made made("emmc-boot-areas");
  CHECK(made.seen().empty());
  CHECK(left_out_facts(made.machine.files()) ==
        std::vector{left_out("drive", "mmcblk0boot0", Why::boot_area)});
  // Agents of earlier versions listed them.
  std::vector<DiskFacts> seen(1);
  seen[0].name = "mmcblk0boot0";
  seen[0].serial = "E1";
  seen[0].size_bytes = uint64_t{48} << 20;
  seen[0].read_only = true;
  seen[0].transport = "unknown";
  DiskMatch match;
  match.size_bytes = int64_t{48} << 20;
  CHECK_FALSE(disk_matches(match, seen[0]));
  CHECK(refused_by(with_fast(seen, 1, DiskPolicy::format)) == "disk-count");
}

namespace {

// The facts of an NVMe drive whose entry in /sys/block is a link to this place.
DiskFacts drive_at(const std::string& name) {
  std::string place = field_input(name, "link.txt");
  while (!place.empty() && place.back() == '\n') place.pop_back();
  const TempDir folder;
  const Files files(folder.path("root"));
  const std::string disk = place.substr(place.rfind('/') + 1);
  const std::string controller = place.substr(0, place.find("/nvme/"));
  const std::string pci = controller.substr(controller.rfind('/') + 1);
  const auto put = [&](const std::string& path, const std::string& text) {
    REQUIRE(files.write(path, text).ok());
  };
  put(place + "/size", "98304\n");
  put(place + "/device/serial", "V1\n");
  put(place + "/device/transport", "pcie\n");
  put("/sys/bus/pci/devices/" + pci + "/current_link_speed", "16.0 GT/s PCIe\n");
  put("/sys/bus/pci/devices/" + pci + "/current_link_width", "4\n");
  REQUIRE(files.make_directories("/sys/block").ok());
  REQUIRE(files.symlink(".." + place.substr(4), "/sys/block/" + disk).ok());
  const auto seen = scan_identities(files);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].pcie_address == pci);
  return seen[0];
}

}  // namespace

FIELD_CASE("vmd-domain") {
  const DiskFacts drive = drive_at("vmd-domain");
  CHECK(drive.pcie_address == "10003:01:00.0");
  CHECK(drive.bus_speed == "16.0 GT/s x4");
}

FIELD_CASE("pci-domain-six-digits") {
  CHECK(drive_at("pci-domain-six-digits").pcie_address == "5d0505:01:00.0");
}

FIELD_CASE("md-over-an-older-superblock") {
  Made made("md-over-an-older-superblock");
  const Json disks = Json::array({as_wanted(made.seen()[0], "keep"), as_wanted(made.seen()[1], "keep")});
  for (const char* disk : {"nvme1n1", "nvme2n1"}) {
    made.machine.write_disk(disk, 1024 + 0x38, "\x53\xef");
    made.machine.write_disk(disk, 512, "EFI PART");
    made.machine.write_disk(disk, 510, "\x55\xaa");
  }
  CHECK(made.seen()[0].signatures.size() > 1);
  for (const auto policy : {DiskPolicy::keep, DiskPolicy::format})
    CHECK(destroyed_of(planned(with_fast(made.seen(), 2, policy)), "fast") == 0);
  REQUIRE(made.machine.run({.argv = {"mdadm", "--assemble", "/dev/md127", "/dev/nvme1n1", "/dev/nvme2n1"}})
              ->ok());
  const Json params = {{"name", "scratch"}, {"level", "raid0"}, {"disks", disks}};
  REQUIRE(apply(made.machine, "raid", params).ok());
  CHECK_FALSE(made.machine.called("mdadm --create"));
  CHECK(check(made.machine, "raid", params)->holds == Holds::yes);
  // A name below it may be in use.
  made.machine.write_disk("nvme2n1", 1024 + 0x78, "archive");
  CHECK(refused_by(with_fast(made.seen(), 2, DiskPolicy::format_if_blank)) != "");
}

FIELD_CASE("md-hot-spare") {
  Made made("md-hot-spare");
  add_disk(made.machine, {{"name", "nvme3n1"},
                          {"serial", "A3"},
                          {"wwid", "eui.a3"},
                          {"md", {{"name", "node01:scratch"}, {"id", "5"}, {"level", 1}, {"members", 2}}}});
  const auto with_level = [&](const std::string& level) {
    PlannerInput in = with_fast(made.seen(), 3, DiskPolicy::keep);
    for (auto& section : in.spec.storage)
      if (section.disks == "fast") section.level = level;
    return refused_by(in);
  };
  CHECK(with_level("raid1") == "");
  CHECK(with_level("raid0") != "");
}

FIELD_CASE("nvme-namespaces-one-serial: a creation that an earlier version noted goes on") {
  Made made("md-foreign-homehost-format");
  const Plan plan = planned(with_fast(made.seen(), 2, DiskPolicy::format));
  Json serials = Json::array(), disks = disks_in(plan);
  for (const Json& disk : disks) serials.push_back(disk["serial"]);
  made.machine.broken = {"mdadm"};
  CHECK_FALSE(set_up(made.machine, disks).ok());
  made.machine.broken.clear();
  const std::string note = steps::intent_path(made.machine.files(), "raid-scratch");
  REQUIRE(made.machine.files().exists(note));
  made.machine.put(note, dump_json(Json{{"disks", serials}}));
  const Status done = set_up(made.machine, disks);
  INFO((done.ok() ? "" : done.error().message));
  CHECK(done.ok());
  CHECK_FALSE(made.machine.files().exists(note));
}

}  // namespace muster::tests
