// The rules that keep disks from being written by mistake. In every case the bytes on the disk are what is looked at.
#include "agent/step.h"
#include "agent/steps/data_disks.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

const std::string kPrecious = "precious data of somebody";

// Two disks A and B; on B lies something at 100 MiB that must survive every refusal.
struct Two {
  FakeMachine machine;
  Two() { machine.add_disk("nvme1n1", "A"), machine.add_disk("nvme2n1", "B"); }
  Json both(const std::string& policy = "format-if-blank") { return {{"name", "scratch"}, {"disks", {machine.approved("A", policy), machine.approved("B", policy)}}}; }
  Status raid(const Json& params) {
    StepContext context = machine.context();
    return find_step_module("raid")->apply(context, params);
  }
  Status mkfs(const Json& disk) {
    StepContext context = machine.context();
    return find_step_module("filesystem")->apply(context, {{"label", "data"}, {"disks", Json::array({disk})}});
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
  CHECK(two.raid(params).error().code == Code::not_found);
  two.machine.add_disk("nvme3n1", "B");
  CHECK(two.raid(two.both()).error().code == Code::conflict);
  CHECK(two.untouched());
}

TEST_CASE("disks: identity is serial, size, WWID and model together") {
  Two two;
  for (const auto& [key, value] : std::map<std::string, Json>{{"size_bytes", 1u << 20}, {"wwid", "eui.other"}, {"model", "OTHER"}}) {
    Json params = two.both();
    params["disks"][0][key] = value;
    INFO(key);
    CHECK(two.raid(params).error().code == Code::conflict);
  }
  CHECK(two.untouched());
}

TEST_CASE("disks: the same disk named twice, no disks, a policy nobody knows") {
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
  CHECK(two.raid({{"name", "scratch"}, {"disks", {two.machine.approved("A"), two.machine.approved("C")}}}).error().code == Code::denied);
  CHECK(two.untouched());
}

TEST_CASE("raid: disks in an array with other members are refused") {
  Two two;
  REQUIRE(two.raid(two.both()).ok());
  two.machine.add_disk("nvme3n1", "C");
  two.machine.calls.clear();
  CHECK(two.raid({{"name", "scratch"}, {"disks", {two.machine.approved("A"), two.machine.approved("C")}}}).error().code == Code::conflict);
  CHECK(two.untouched());
}

TEST_CASE("raid: the ghost of a former file system is gone from a new array") {
  Two two;
  REQUIRE(two.raid(two.both()).ok());
  CHECK(two.machine.disk_bytes("md127", 0, 4) == std::string(4, '\0'));
}

TEST_CASE("raid: an interrupted creation is taken up again for the same disks only") {
  Two two;
  const Json params = two.both();
  two.machine.broken = {"mdadm --create"};
  CHECK(!two.raid(params).ok());
  two.machine.broken.clear();
  two.machine.add_disk("nvme3n1", "C");
  CHECK(two.raid({{"name", "scratch"}, {"disks", {two.machine.approved("A"), two.machine.approved("C")}}}).error().code == Code::conflict);
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

TEST_CASE("mount: something else at the mount point is not taken away, and a look-alike is seen") {
  Two two;
  put_xfs(two.machine, "nvme1n1", "data");
  two.machine.mount_entry("nvme2n1", "/scratch", "xfs");
  StepContext context = two.machine.context();
  const Json params = {{"source", "LABEL=data"}, {"target", "/scratch"}, {"disks", Json::array({two.machine.approved("A", "keep")})}};
  const StepModule* mount = find_step_module("mount");
  CHECK(mount->check(context, params)->holds == Holds::no);
  CHECK(mount->apply(context, params).error().code == Code::conflict);
}

TEST_CASE("moosefs: nothing is written below an unmounted share, and a master's metadata is kept") {
  FakeMachine machine;
  StepContext context = machine.context();
  const Json file = {{"target", "/shared"}, {"fstype", "fuse*"}, {"source", "*10.20.0.11:9421"}, {"file", "x"}, {"content", "y"}};
  CHECK(find_step_module("shared_write")->apply(context, file).error().code == Code::conflict);
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /shared rw - ext4 /dev/nvme0n1p2 rw\n");
  CHECK(find_step_module("shared_write")->apply(context, file).error().code == Code::conflict);
  CHECK(!machine.files().exists("/shared/.muster/x"));

  (void)machine.run({.argv = {"useradd", "-d", "/var/lib/mfs", "-s", "/bin/false", "mfs"}}).ok();
  machine.put("/state/mfs/master/metadata.mfs.back", "years of data");
  machine.put("/var/lib/mfs/metadata.mfs.empty", "MFSM NEW");
  CHECK(find_step_module("moosefs_master")->apply(context, {{"network", "10.20.0.0/24"}}).ok());
  CHECK(machine.get("/state/mfs/master/metadata.mfs.back") == "years of data");
  CHECK(!machine.files().exists("/state/mfs/master/metadata.mfs"));
  CHECK(find_step_module("moosefs_master")->apply(context, {{"network", "0.0.0.0/0"}}).error().code == Code::invalid);
}

TEST_CASE("nfs: exported to the cluster and to nobody else, whoever says otherwise") {
  FakeMachine machine;
  machine.units["nfs-server.service"] = {};
  StepContext context = machine.context();
  const StepModule* server = find_step_module("nfs_server");
  const Json params = {{"name", "home"}, {"path", "/export"}, {"network", "10.20.0.0/24"}};
  REQUIRE(server->apply(context, params).ok());
  CHECK(machine.get("/etc/exports.d/muster-home.exports").find("mountpoint") != std::string::npos);
  CHECK(server->check(context, params)->holds == Holds::yes);

  // The files are right, the running server is not.
  machine.put("/etc/exports", "/export *(rw)\n");
  (void)machine.run({.argv = {"exportfs", "-ra"}}).ok();
  CHECK(server->check(context, params)->holds == Holds::no);
  CHECK(server->apply(context, params).error().message.find("exported to * too") != std::string::npos);
  machine.put("/etc/exports", "");
  CHECK(server->apply(context, params).ok());

  for (const char* network : {"*", "0.0.0.0/0", ""}) {
    Json open = params;
    open["network"] = network;
    CHECK(server->apply(context, open).error().code == Code::invalid);
  }
}

TEST_CASE("shared files: a mount of the right type from another source does not count") {
  FakeMachine machine;
  StepContext context = machine.context();
  const Json params = {{"target", "/export"}, {"fstype", "nfs4"}, {"source", "10.20.0.11:/export"}, {"file", "x"}, {"content", "y"}};
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /export rw - nfs4 10.20.0.12:/export rw\n");
  CHECK(find_step_module("shared_write")->apply(context, params).error().code == Code::conflict);
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /export rw - nfs4 10.20.0.11:/export rw\n");
  CHECK(find_step_module("shared_write")->apply(context, params).ok());
  CHECK(machine.get("/export/.muster/x") == "y");
  Json outside = params;
  outside["file"] = "../../etc/passwd";
  CHECK(find_step_module("shared_write")->apply(context, outside).error().code == Code::invalid);
}

TEST_CASE("moosefs: a node is drained when the master says so, and not begun when the others cannot take its data") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule* drain = find_step_module("moosefs_drain");
  machine.add_disk("nvme3n1", "C");
  machine.put("/mfs/servers", "10.20.0.11 10.20.0.12");
  machine.put("/mfs/own", "10.20.0.12");
  const Json params = {{"master", "10.20.0.11"}, {"address", "10.20.0.12"}, {"disks", Json::array({machine.approved("C")})}, {"deadline_seconds", 0}};
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
  const Json both = {{"master", "10.20.0.11"}, {"members", {{{"name", "a"}, {"address", "10.20.0.11"}}, {{"name", "c"}, {"address", "10.20.0.13"}}}}, {"deadline_seconds", 0}};
  CHECK(members->check(context, both)->holds == Holds::yes);
  Json all = both;
  all["members"].push_back({{"name", "b"}, {"address", "10.20.0.12"}});
  CHECK(members->check(context, all)->diff.find("a disk of b is") != std::string::npos);
}

TEST_CASE("slurm: nodes that do not answer are named; a node taken out by somebody else stays out") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.put("/slurm/node01", "idle|none");
  machine.put("/slurm/node02", "down*|Not responding");
  const StepModule* nodes = find_step_module("slurm_nodes");
  Json params = {{"nodes", {{{"name", "node01"}}, {{"name", "node02"}}, {{"name", "node03"}}}}, {"deadline_seconds", 0}};
  CHECK(nodes->check(context, params)->diff == "node02 is down*; node03 is unknown to slurmctld");
  params["nodes"] = {{{"name", "node01"}}};
  CHECK(nodes->check(context, params)->holds == Holds::yes);

  const StepModule* one = find_step_module("slurm_node");
  const Json back = {{"node", "node01"}, {"state", "resume"}, {"only_reason", "muster"}};
  machine.put("/slurm/node01", "drained|bad DIMM, ask Ann");
  CHECK(one->apply(context, back).ok());
  CHECK(machine.get("/slurm/node01") == "drained|bad DIMM, ask Ann");
  machine.put("/slurm/node01", "drained|muster drain");
  CHECK(one->check(context, back)->holds == Holds::no);
  CHECK(one->apply(context, back).ok());
  CHECK(machine.get("/slurm/node01") == "idle|none");
  CHECK(one->apply(context, {{"node", "node09"}, {"state", "drain"}}).error().code == Code::not_found);
}

}  // namespace
}  // namespace muster
