// Field cases of area `disks`, kind "devices by identity": what chooses a device is what only that device
// has.
#include <sys/stat.h>

#include <algorithm>

#include "agent/disk/bearers.h"
#include "agent/disk/gpt.h"
#include "agent/facts/collect_facts.h"
#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "agent/steps/accounts.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"
#include "controller/engines/engine.h"
#include "controller/image/customize.h"
#include "controller/image/ram.h"
#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/machines.h"

namespace muster::tests {
namespace {

// The step of the case on its machine, which has a selected disk OWN1 and a stranger with a link of udev's.
struct TwoBearers {
  FakeMachine machine;
  Json params;
  explicit TwoBearers(const std::string& name) {
    build(machine, field_input(name, "machine.json"));
    (void)machine.files().make_directories("/dev/disk/by-label").ok();
    (void)machine.files().symlink("../../nvme1n1", "/dev/disk/by-label/scratch").ok();
    params = parse_json(field_input("mount-label-twice", "params.json")).value();
    params["disks"] = Json::array({machine.approved("OWN1")});
    REQUIRE_FALSE(params["disks"][0].is_null());
  }
  std::string mounts() const { return machine.get("/proc/self/mountinfo"); }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_for(const FakeMachine& m, const std::string& target) {
  std::vector<std::string> out;
  for (const auto& line : split_lines(m.get("/etc/fstab"))) {
    const auto words = split(line, ' ');
    if (words.size() > 1 && plain_path(words[1]) == target) out.push_back(line);
  }
  return out;
}

}  // namespace

FIELD_CASE("mount-label-twice") {
  for (const bool by_playbook : {false, true}) {  // as playbooks said it before, and as they say it now
    TwoBearers two("mount-label-twice");
    if (by_playbook) two.params.erase("source"), two.params["label"] = "scratch";
    const auto stranger = two.machine.disk_bytes("nvme1n1", 0, 4096);
    const Status done = apply(two.machine, "mount", two.params);
    INFO((done.ok() ? "" : done.error().message));
    REQUIRE(done.ok());
    const auto entry = find_mount(two.machine.files(), "/scratch");
    REQUIRE(entry);
    CHECK(entry->source == "/dev/nvme0n1");
    CHECK_FALSE(contains(two.mounts(), "nvme1n1"));
    CHECK(two.machine.disk_bytes("nvme1n1", 0, 4096) == stranger);
    const auto lines = lines_for(two.machine, "/scratch");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with("UUID="));
    CHECK(steps::look(two.machine.files(), "/scratch").mode == 01777);
    CHECK(check(two.machine, "mount", two.params)->holds == Holds::yes);
  }
}

FIELD_CASE("mount-label-twice: what lies there is looked at before its mode is changed") {
  TwoBearers two("mount-label-twice");
  // Mounted by its label before, the way an earlier version did it: the stranger.
  two.machine.put("/etc/fstab", "LABEL=scratch /scratch xfs noatime,nofail 0 0\n");
  two.machine.mount_entry("nvme1n1", "/scratch", "xfs");
  REQUIRE(two.machine.files().make_directories("/scratch", 0750).ok());
  CHECK(check(two.machine, "mount", two.params)->holds == Holds::no);
  CHECK(apply(two.machine, "mount", two.params).error().code == Code::conflict);
  CHECK(steps::look(two.machine.files(), "/scratch").mode == 0750);
}

FIELD_CASE("mount-label-twice: the line that an earlier version wrote is taken over, and the plan says so") {
  TwoBearers two("mount-label-twice");
  two.machine.put("/etc/fstab", "UUID=1 / ext4 rw 0 1\nLABEL=scratch /scratch xfs noatime,nofail 0 0\n");
  two.machine.mount_entry("nvme0n1", "/scratch", "xfs");
  REQUIRE(two.machine.files().make_directories("/scratch", 01777).ok());
  const auto before = check(two.machine, "mount", two.params);
  REQUIRE(before.ok());
  CHECK(before->holds == Holds::no);
  CHECK(contains(before->diff, "LABEL=scratch /scratch"));
  REQUIRE(apply(two.machine, "mount", two.params).ok());
  CHECK(lines_for(two.machine, "/scratch").front().starts_with("UUID="));
  CHECK(lines_for(two.machine, "/").size() == 1);

  PlannerInput in = muster::testing::with_nodes(muster::testing::installed);
  for (auto& [name, seen] : in.nodes) seen.state = NodeState::accepted;
  const Plan first = muster::testing::planned(in);
  for (auto& [name, seen] : in.nodes) seen.config_digest = first.config_digests.at(name);
  CHECK(muster::testing::planned(in).unchanged.size() == 3);
  in.nodes["node02"].facts->by_label = {"LABEL=scratch /scratch", "LABEL=mine /mine"};
  const Plan plan = muster::testing::planned(in);
  CHECK(plan.unchanged == std::vector<std::string>{"node01", "node03"});
  CHECK(std::count_if(plan.notes.begin(), plan.notes.end(),
                      [](const std::string& note) { return contains(note, "LABEL=scratch /scratch"); }) == 1);
  CHECK(std::none_of(plan.notes.begin(), plan.notes.end(),
                     [](const std::string& note) { return contains(note, "/mine"); }));
}

FIELD_CASE("mount-label-alone") {
  FakeMachine machine;
  for (const auto& source : split_lines(field_input("mount-label-alone", "sources.txt"))) {
    INFO(source);
    CHECK(apply(machine, "mount", {{"source", source}, {"target", "/backup"}}).error().code == Code::invalid);
  }
  CHECK(machine.calls.empty());
  CHECK_FALSE(machine.files().exists("/etc/fstab"));
  // Logical volumes, of groups whose names begin like the kernel's.
  for (const char* volume : {"/dev/vdata/home", "/dev/nvme_vg/scratch", "/dev/mdvg/x"}) {
    INFO(volume);
    CHECK(check(machine, "mount", {{"source", volume}, {"target", "/backup"}}).ok());
  }
}

FIELD_CASE("mount-uuid-copied") {
  TwoBearers two("mount-uuid-copied");
  for (const bool named_by_uuid : {false, true}) {
    Json params = two.params;
    if (named_by_uuid) {
      params.erase("disks");
      params["source"] = "UUID=30303030-3030-3030-3030-303030303037";
    }
    const Status refused = apply(two.machine, "mount", params);
    CHECK(refused.error().code == Code::conflict);
    CHECK(contains(refused.error().message, "nvme1n1"));
    CHECK(check(two.machine, "mount", params).error().code == Code::conflict);
  }
  CHECK(two.machine.calls.empty());
  CHECK_FALSE(two.machine.files().exists("/etc/fstab"));
}

FIELD_CASE("mount-uuid-copied: a copy that appears between the look and the mount is unmounted untouched") {
  TwoBearers two("mount-label-twice");
  Json params = two.params;
  // The fake's mount takes the first name; the other device gets it during mount.
  two.machine.add_disk("nvme0n0", "LATE1", 48 << 20);
  two.machine.on_mount = [&] {
    two.machine.write_disk("nvme0n0", 0, two.machine.disk_bytes("nvme0n1", 0, 512));
  };
  REQUIRE(two.machine.files().make_directories("/scratch", 0750).ok());
  CHECK(apply(two.machine, "mount", params).error().code == Code::conflict);
  CHECK_FALSE(find_mount(two.machine.files(), "/scratch"));
  CHECK(steps::look(two.machine.files(), "/scratch").mode == 0750);
}

FIELD_CASE("btrfs-two-devices") {
  FakeMachine machine;
  const auto device = [&](const std::string& name, const std::string& number) {
    machine.add_disk(name, "S" + name, 48 << 20);
    machine.write_disk(name, 0x10040, "_BHRfS_M");
    machine.write_disk(name, 0x10020, "0123456789abcdef");
    machine.write_disk(name, 0x100c9, number + std::string(7, '\0'));
  };
  device("sdb", "\x01");
  device("sdc", "\x02");
  const std::string uuid = "30313233-3435-3637-3839-616263646566";
  REQUIRE(machine.files().make_directories("/dev/disk/by-uuid").ok());
  REQUIRE(machine.files().symlink("../../sdc", "/dev/disk/by-uuid/" + uuid).ok());
  CHECK(file_system_bearers(machine.files(), uuid) == std::vector<std::string>{"sdc"});
  device("sdd", "\x02");  // a copy of the second
  CHECK(file_system_bearers(machine.files(), uuid).size() == 3);
}

FIELD_CASE("root-partuuid-copied") {
  // The initrd's script, with programs that say which partitions blkid finds and note what is called.
  const auto run = [](const std::string& cmdline, const std::vector<std::string>& found) {
    const TempDir folder;
    const Files files(folder.path("."));
    const std::string calls = folder.path("calls");
    const auto program = [&](const std::string& name, const std::string& text) {
      REQUIRE(files.write("/" + name, "#!/bin/sh\n" + text, 0755).ok());
    };
    std::string first, all;
    for (const auto& device : found) all += device + "\\n";
    if (!found.empty()) first = found.front() + "\\n";
    program("cat", "case $1 in /proc/cmdline) echo '" + cmdline + "';; esac\n");
    program("blkid", "case \"$*\" in *-l*) printf '" + first + "';; *) printf '" + all + "';; esac\n");
    for (const char* name : {"mount", "modprobe", "reboot", "switch_root"})
      program(name, std::string("echo ") + name + " \"$@\" >> '" + calls + "'\n");
    program("sleep", "exit 0\n");
    std::string script = boot_init();
    const std::string path = "export PATH=/usr/sbin:/usr/bin";
    REQUIRE(script.find(path) != std::string::npos);
    script.replace(script.find(path), path.size(), "PATH='" + folder.path(".") + "'");
    // As few rounds as there are waits for the first device.
    const auto out = make_process()->run({.argv = {"/bin/sh", "-c", script}});
    REQUIRE(out.ok());
    return std::pair(folder.read("calls"), out->out);
  };
  std::string cmdline = field_input("root-partuuid-copied", "cmdline.txt");
  while (!cmdline.empty() && cmdline.back() == '\n') cmdline.pop_back();
  const auto [one, said] = run(cmdline, {"/dev/nvme0n1p2"});
  CHECK(contains(one, "mount -t ext4 -o rw /dev/nvme0n1p2 /root"));
  const auto [two, both] = run(cmdline, {"/dev/nvme0n1p2", "/dev/sda2"});
  CHECK_FALSE(contains(two, "mount -t ext4"));
  CHECK_FALSE(contains(two, "switch_root"));
  CHECK(contains(two, "reboot -f"));
  CHECK((contains(both, "/dev/nvme0n1p2") && contains(both, "/dev/sda2")));
  for (const char* root :
       {"root=LABEL=muster-root-a", "root=PARTLABEL=muster-root-a", "root=/dev/sda2", ""}) {
    INFO(root);
    const auto [label, why] = run(root, {"/dev/sda2"});
    CHECK_FALSE(contains(label, "mount -t ext4"));
    CHECK(contains(label, "reboot -f"));
  }
}

namespace {

// Two disks with muster's partitions; the system runs from the first.
struct TwoSystems {
  FakeMachine machine;
  TwoSystems() {
    machine.add_system("nvme0n1", "OWN1");
    machine.add_system("nvme1n1", "OLD1");
    machine.mount_entry("nvme0n1p2", "/", "ext4");
    machine.put("/run/systemd/system/x", "");
    machine.put("/etc/muster/image.json", R"({"name":"cpu","digest":"sha256:1","slot":"a"})");
    machine.put("/proc/cmdline", "root=PARTUUID=x rw quiet muster.slot=a\n");
    machine.put("/etc/fstab", field_input("esp-partlabel-twice", "fstab.txt"));
    machine.put("/boot/efi/loader/entries/muster-a.conf", "title x\noptions root=PARTUUID=x rw quiet\n");
    for (const auto& [label, part] :
         {std::pair{"by-partlabel/muster-esp", "nvme1n1p1"}, {"by-label/MUSTER-ESP", "nvme1n1p1"}}) {
      const std::string link = std::string("/dev/disk/") + label;
      (void)machine.files().make_directories(link.substr(0, link.rfind('/'))).ok();
      (void)machine.files().symlink(std::string("../../") + part, link).ok();
    }
  }
  std::string guid(const std::string& disk, const std::string& name) const {
    const auto device = BlockDevice::open(machine.files().real("/dev/" + disk), BlockDevice::Access::read);
    return read_gpt(*device)->named(name)->guid;
  }
};

const Json kIommu = {{"present", {"iommu=pt"}}};

}  // namespace

FIELD_CASE("esp-partlabel-twice") {
  TwoSystems two;
  const Status done = apply(two.machine, "kernel_command_line", kIommu);
  INFO((done.ok() ? "" : done.error().message));
  REQUIRE(done.ok());
  CHECK(two.machine.called("mount -t vfat -o rw,umask=0077 /dev/nvme0n1p1 /boot/efi"));
  CHECK_FALSE(two.machine.called("nvme1n1"));
  CHECK(contains(two.machine.get("/boot/efi/loader/entries/muster-a.conf"), "iommu=pt"));
}

FIELD_CASE("esp-partlabel-twice: the disk that the system runs from is not known") {
  TwoSystems two;
  two.machine.put("/proc/self/mountinfo", "30 1 0:44 / / rw - overlay overlay rw\n");
  const std::string entry = two.machine.get("/boot/efi/loader/entries/muster-a.conf");
  const Status refused = apply(two.machine, "kernel_command_line", kIommu);
  CHECK(refused.error().code == Code::conflict);
  for (const char* part : {"/dev/nvme0n1p1", "/dev/nvme1n1p1"})
    CHECK(contains(refused.error().message, part));
  CHECK(two.machine.calls.empty());
  CHECK(two.machine.get("/boot/efi/loader/entries/muster-a.conf") == entry);
  // The kernel line names the partition.
  two.machine.put("/proc/cmdline",
                  "root=PARTUUID=" + two.guid("nvme1n1", "muster-root-b") + " rw muster.slot=a\n");
  REQUIRE(apply(two.machine, "kernel_command_line", kIommu).ok());
  CHECK(two.machine.called("/dev/nvme1n1p1 /boot/efi"));
}

FIELD_CASE("esp-partlabel-twice: another disk's partition is mounted there") {
  TwoSystems two;
  two.machine.mount_entry("nvme1n1p1", "/boot/efi", "vfat");
  const std::string entry = two.machine.get("/boot/efi/loader/entries/muster-a.conf");
  CHECK(apply(two.machine, "kernel_command_line", kIommu).error().code == Code::conflict);
  CHECK(two.machine.get("/boot/efi/loader/entries/muster-a.conf") == entry);
}

FIELD_CASE("esp-partlabel-twice: what an earlier version wrote is taken over, and the plan says so") {
  TwoSystems two;
  two.machine.put("/proc/cmdline", "root=PARTLABEL=muster-root-a rw muster.slot=a\n");
  two.machine.put("/boot/efi/loader/entries/muster-a.conf",
                  "title x\noptions root=PARTLABEL=muster-root-a rw\n");
  CHECK(check(two.machine, "own_devices", Json::object())->holds == Holds::no);
  REQUIRE(apply(two.machine, "own_devices", Json::object()).ok());
  CHECK(lines_for(two.machine, "/boot/efi")
            .front()
            .starts_with("PARTUUID=" + two.guid("nvme0n1", "muster-esp")));
  CHECK(contains(two.machine.get("/boot/efi/loader/entries/muster-a.conf"),
                 "options root=PARTUUID=" + two.guid("nvme0n1", "muster-root-a") + " rw"));
  CHECK(check(two.machine, "own_devices", Json::object())->holds == Holds::yes);
  CHECK_FALSE(two.machine.called("nvme1n1"));

  const auto seen = collect_facts(two.machine.files());
  REQUIRE(seen.ok());
  CHECK(seen->by_label == std::vector<std::string>{"root=PARTLABEL=muster-root-a /"});  // until the next boot
  PlannerInput in = muster::testing::with_nodes(muster::testing::installed);
  in.nodes["node01"].facts->by_label = {"PARTLABEL=muster-esp /boot/efi"};
  const Plan plan = muster::testing::planned(in);
  CHECK(std::any_of(plan.notes.begin(), plan.notes.end(), [](const std::string& note) {
    return contains(note, "PARTLABEL=muster-esp /boot/efi");
  }));
}

FIELD_CASE("esp-partlabel-twice: a new system names the partition of its own disk by its UUID") {
  const auto layout = make_layout(uint64_t{8} << 30, 1 << 20, 0).value();
  const std::string right =
      "PARTUUID=" + layout.named("muster-esp")->guid + " /boot/efi vfat noauto,umask=0077 0 0\n";
  const wire::ImageJob job;
  const ImageManifest manifest;
  std::string shipped;
  for (const auto& file : builtin_files())
    if (file.path == "/etc/fstab") shipped = file.content;
  // As images have it now, as older images have it, and as a recipe may have written it.
  for (const std::string& fstab : {shipped, field_input("esp-partlabel-twice", "fstab.txt"),
                                   std::string("LABEL=ESP /boot/efi vfat rw 0 0\n")}) {
    const TempDir dir;
    const Files root(dir.path("root"));
    REQUIRE(root.write("/etc/fstab", fstab).ok());
    REQUIRE(
        seed_root(root, {job, manifest, "/dev/null", layout, "a", true, {}}, std::string(32, 'a'), {}).ok());
    const std::string text = root.read("/etc/fstab").value();
    CHECK(text.substr(text.size() - std::min(text.size(), right.size())) == right);
    CHECK_FALSE(contains(text, "LABEL="));
  }
  const TempDir dir;
  const Files root(dir.path("root"));
  const std::string own = "UUID=1234-ABCD /boot/efi vfat defaults 0 1\n";
  REQUIRE(root.write("/etc/fstab", own).ok());
  REQUIRE(
      seed_root(root, {job, manifest, "/dev/null", layout, "a", true, {}}, std::string(32, 'a'), {}).ok());
  CHECK(root.read("/etc/fstab").value() == own);
}

FIELD_CASE("host-own-labels") {
  FakeMachine machine;
  const std::string own = field_input("host-own-labels", "fstab.txt");
  machine.put("/etc/fstab", own);
  CHECK(check(machine, "own_devices", Json::object())->holds == Holds::not_applicable);
  CHECK(apply(machine, "own_devices", Json::object()).ok());
  build(machine, field_input("mount-label-twice", "machine.json"));
  REQUIRE(
      apply(
          machine, "mount",
          {{"label", "scratch"}, {"target", "/scratch"}, {"disks", Json::array({machine.approved("OWN1")})}})
          .ok());
  CHECK(machine.get("/etc/fstab").starts_with(own));
}

FIELD_CASE("fstab-same-target") {
  const auto others = split_lines(field_input("fstab-same-target", "others.txt"));
  REQUIRE(others.size() == 4);
  for (const auto& other : others)
    for (const bool ours_first : {false, true}) {
      INFO(other << (ours_first ? ", behind ours" : ""));
      TwoBearers two("mount-label-twice");
      REQUIRE(apply(two.machine, "mount", two.params).ok());
      const std::string ours = two.machine.get("/etc/fstab");
      two.machine.put("/etc/fstab", ours_first ? ours + other + "\n" : other + "\n" + ours);
      CHECK(check(two.machine, "mount", two.params)->holds == Holds::no);
      REQUIRE(apply(two.machine, "mount", two.params).ok());
      CHECK(two.machine.get("/etc/fstab") == ours);
      CHECK(check(two.machine, "mount", two.params)->holds == Holds::yes);
    }
}

FIELD_CASE("fstab-comment-behind") {
  TwoBearers two("mount-label-twice");
  REQUIRE(apply(two.machine, "mount", two.params).ok());
  const std::string ours = two.machine.get("/etc/fstab");
  two.machine.put("/etc/fstab", "# /scratch\n" + ours.substr(0, ours.size() - 1) + " # fast disk\n");
  REQUIRE(apply(two.machine, "mount", two.params).ok());
  CHECK(two.machine.get("/etc/fstab") == "# /scratch\n" + ours);
}

FIELD_CASE("fstab-last-line-open") {
  TwoBearers two("mount-label-twice");
  const std::string before = field_input("fstab-last-line-open", "fstab.txt");
  REQUIRE(before.back() != '\n');
  two.machine.put("/etc/fstab", before);
  REQUIRE(apply(two.machine, "mount", two.params).ok());
  const auto lines = split_lines(two.machine.get("/etc/fstab"));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] + "\n" + lines[1] == before);
  CHECK(lines[2].starts_with("UUID="));
}

}  // namespace muster::tests
