// Ceph's step modules beyond the suite of all modules: which disk is given to it, what is known again, and
// when something is taken away.
#include <unistd.h>

#include <algorithm>

#include "agent/core/step.h"
#include "agent/storage/health.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

const std::string kUuid = "aaaaaaaa-2222-8333-a444-555555555555";
const std::string kStore = "bluestore block device\n" + kUuid + "\n";

Json named(std::initializer_list<const char*> names) {
  Json out = Json::array();
  for (const char* name : names)
    out.push_back({{"name", name}, {"address", std::string("10.20.0.1") + name[5]}});
  return out;
}

struct Node {
  FakeMachine machine;
  Node() {
    const std::string id = std::to_string(getuid()), group = std::to_string(getgid());
    machine.put("/etc/passwd",
                machine.get("/etc/passwd") + "ceph:x:" + id + ":" + group + "::/var/lib/ceph:/bin/false\n");
    machine.put("/etc/group", machine.get("/etc/group") + "ceph:x:" + group + ":\n");
    machine.put("/var/lib/ceph/mon/.keep", "");
    machine.add_disk("nvme3n1", "C");
    machine.units["ceph-mon@node01.service"] = machine.units["ceph-osd@0.service"] =
        machine.units["ceph-osd@7.service"] = {};
  }
  void osds(int count) {
    for (int n = 1; n <= count; ++n)
      machine.put("/ceph/osds/" + std::to_string(n),
                  "u" + std::to_string(n) + " node0" + std::to_string(n) + " 1 1");
  }
  Status apply(const char* module, const Json& params) {
    StepContext context = machine.context();
    return find_step_module(module)->apply(context, params);
  }
  CheckResult check(const char* module, const Json& params) {
    StepContext context = machine.context();
    const auto out = find_step_module(module)->check(context, params);
    REQUIRE(out.ok());
    return *out;
  }
  Json mon(bool may_create = true) {
    return {{"name", "node01"},          {"fsid", "f"},
            {"mons", named({"node01"})}, {"fs", "shared"},
            {"mon_key", "SECRET1"},      {"admin_key", "SECRET2"},
            {"client_key", "SECRET3"},   {"may_create", may_create},
            {"disks", disks()["disks"]}, {"deadline_seconds", 0}};
  }
  Json disks(const std::string& policy = "format-if-blank") {
    Json disk = machine.approved("C", policy);
    disk["uuid"] = kUuid;
    return {{"disks", Json::array({disk})}, {"deadline_seconds", 0}};
  }
};

TEST_CASE("ceph: a disk is given to it only by the plan, and what is on it stays otherwise") {
  for (const std::string what : {"keep", "no hash", "not blank", "changed", "in use"}) {
    Node node;
    if (what == "not blank") node.machine.write_disk("nvme3n1", 0, "precious data of a user");
    Json params = node.disks(what == "keep" ? "keep" : "format-if-blank");
    if (what == "no hash") params["disks"][0]["content_hash"] = "";
    if (what == "changed") node.machine.write_disk("nvme3n1", 0, "precious data of a user");
    if (what == "in use") node.machine.mount_entry("nvme3n1", "/data", "xfs");
    const std::string before = node.machine.disk_bytes("nvme3n1", 0, 4096);
    INFO(what);
    CHECK(node.apply("ceph_osds", params).error().code == Code::denied);
    CHECK(node.machine.disk_bytes("nvme3n1", 0, 4096) == before);
    CHECK(!node.machine.called("--mkfs"));
  }
}

TEST_CASE("ceph: another cluster's object store is foreign, and no tool of Ceph is let near it") {
  Node node;
  node.machine.write_disk("nvme3n1", 0, "bluestore block device\nbbbbbbbb-2222-8333-a444-555555555555\n");
  const Json params = node.disks();
  CHECK(node.check("ceph_osds", params).diff.find("ceph_bluestore") != std::string::npos);
  CHECK(node.apply("ceph_osds", params).error().code == Code::denied);
  CHECK(!node.machine.called("ceph-osd"));
  CHECK(!node.machine.called("ceph-bluestore-tool"));
}

TEST_CASE(
    "ceph: after the node was reinstalled its store is used again, under its old number and without a "
    "right to write") {
  Node node;
  node.machine.write_disk("nvme3n1", 0, kStore);
  node.machine.put("/ceph/labels/nvme3n1", "7");
  Json params = node.disks("keep");
  params["disks"][0]["content_hash"] = "";
  SECTION("known to the monitors") {
    node.machine.put("/ceph/osds/7", kUuid + " node01 0 0"), node.machine.put("/ceph/keys/osd.7", "KEY7");
  }
  SECTION("forgotten by them") {}
  const Status done = node.apply("ceph_osds", params);
  INFO((done.ok() ? "" : done.error().message));
  REQUIRE(done.ok());
  CHECK(!node.machine.called("--mkfs"));
  CHECK(node.machine.get("/ceph/osds/7") == kUuid + " node01 1 1");
  CHECK(node.machine.get("/var/lib/ceph/osd/ceph-7/keyring") ==
        "[osd.7]\n\tkey = " + node.machine.get("/ceph/keys/osd.7") + "\n");
  CHECK(node.check("ceph_osds", params).holds == Holds::yes);
}

TEST_CASE("ceph: a store that was begun is completed; one whose number is another's is not touched") {
  Node node;
  Json params = node.disks();
  node.machine.write_disk("nvme3n1", 0, kStore);
  CHECK(node.check("ceph_osds", params).diff.find("not complete") != std::string::npos);
  REQUIRE(node.apply("ceph_osds", params).ok());
  CHECK(node.machine.get("/ceph/labels/nvme3n1") == "0");

  node.machine.put("/ceph/labels/nvme3n1", "7");  // the monitors say 0
  node.machine.units["ceph-osd@0.service"] = {};
  node.machine.put("/ceph/osds/0", kUuid + " node01 0 1");
  CHECK(node.apply("ceph_osds", params).error().code == Code::conflict);
}

TEST_CASE("ceph: its program is not called for what is known without it") {
  Node node;
  const auto new_calls = [&] {
    const auto& calls = node.machine.calls;
    const auto n = std::count_if(calls.begin(), calls.end(),
                                 [](const std::string& call) { return call.starts_with("ceph --"); });
    node.machine.calls.clear();
    return n;
  };
  REQUIRE(node.apply("ceph_mon", node.mon()).ok());
  new_calls();
  CHECK(node.check("ceph_daemons", {{"name", "node01"}}).holds == Holds::no);
  CHECK(new_calls() == 0);
  REQUIRE(node.apply("ceph_daemons", {{"name", "node01"}}).ok());
  CHECK(new_calls() == 2);
  CHECK(node.check("ceph_daemons", {{"name", "node01"}}).holds == Holds::yes);
  CHECK(new_calls() == 2);
  REQUIRE(node.apply("ceph_osds", node.disks()).ok());
  CHECK(new_calls() == 3);  // is it known, a new one, is it up
  CHECK(node.check("ceph_osds", node.disks()).holds == Holds::yes);
}

TEST_CASE("ceph: no key is in the arguments of a program or in a message") {
  Node node;
  const Json params = node.mon();
  CHECK(node.check("ceph_mon", params).diff.find("SECRET") == std::string::npos);
  REQUIRE(node.apply("ceph_mon", params).ok());
  REQUIRE(node.apply("ceph_osds", node.disks()).ok());
  CHECK(!node.machine.called("SECRET"));
  CHECK(!node.machine.called(node.machine.get("/ceph/keys/osd.0")));
  CHECK(!node.machine.files().exists("/var/lib/ceph/mon/ceph-node01.first"));
  CHECK(node.machine.get("/var/lib/ceph/mon/ceph-node01/store.db/CURRENT").find("SECRET3") !=
        std::string::npos);
}

TEST_CASE("ceph: a monitor's store is kept; that of a monitor that was taken out is set aside") {
  Node node;
  const Json params = node.mon(false);
  node.machine.put("/state/x", "");
  node.machine.put("/state/ceph/mon/store.db/CURRENT", "years of maps");
  (void)node.machine.files().symlink("/state/ceph/mon", "/var/lib/ceph/mon/ceph-node01").ok();
  (void)node.apply("ceph_mon", params).ok();
  CHECK(node.machine.get("/state/ceph/mon/store.db/CURRENT") == "years of maps");

  node.machine.put("/ceph/mons", "node02 ");
  node.machine.put("/ceph/quorum", "node02 ");
  node.machine.units["ceph-mon@node01.service"] = {};
  (void)node.apply("ceph_mon", params).ok();
  CHECK(node.machine.get("/state/ceph/mon.old/store.db/CURRENT") == "years of maps");
  CHECK(node.machine.get("/state/ceph/mon/store.db/CURRENT") != "years of maps");
}

TEST_CASE("ceph: no new cluster where object stores are, but a lost monitor joins those that answer") {
  for (const bool by_plan : {true, false}) {
    INFO(by_plan);
    Node node;
    if (!by_plan) node.machine.write_disk("nvme3n1", 0, kStore);
    const Json params = node.mon(!by_plan);
    const Status made = node.apply("ceph_mon", params);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().code == Code::denied);
    CHECK(made.error().message.find(by_plan ? "disks with OSDs" : "/dev/nvme3n1") != std::string::npos);
    CHECK(!node.machine.called("--mkfs"));
    CHECK(!node.machine.files().exists("/var/lib/ceph/mon/ceph-node01"));
    node.machine.put("/ceph/mons", "node02 node03 ");
    node.machine.put("/ceph/quorum", "node02 node03 ");
    CHECK(node.apply("ceph_mon", params).ok());
    CHECK(node.machine.files().exists("/var/lib/ceph/mon/ceph-node01/store.db"));
  }
}

TEST_CASE("ceph: something else at the mount point is not taken away") {
  Node node;
  const Json params = {{"name", "shared"}, {"fsid", "f"}, {"target", "/shared"}, {"deadline_seconds", 0}};
  node.machine.put("/proc/self/mountinfo", "41 1 0:51 / /shared rw - ceph muster@other.shared=/ rw\n");
  CHECK(node.apply("ceph_mount", params).error().code == Code::conflict);
  CHECK(node.check("ceph_mount", params).holds == Holds::no);
}

TEST_CASE("ceph: members are up, in and placed, and the cluster is healthy as far as all take part") {
  Node node;
  node.osds(3);
  const Json all = {
      {"members", named({"node01", "node02", "node03"})}, {"declared", 3}, {"deadline_seconds", 0}};
  Json two = all;
  two["members"] = named({"node01", "node02"});
  CHECK(node.check("ceph_members", all).holds == Holds::yes);
  node.machine.put("/ceph/health", "MGR_MODULE_DEPENDENCY HEALTH_WARN\n");
  CHECK(node.check("ceph_members", all).holds == Holds::yes);
  node.machine.put("/ceph/health", "OSD_DOWN HEALTH_WARN\n");
  node.machine.put("/ceph/osds/3", "u3 node03 0 1");
  CHECK(node.check("ceph_members", all).diff.find("osd.3 of node03 is down; OSD_DOWN") == 0);
  CHECK(node.check("ceph_members", two).holds == Holds::yes);
  node.machine.put("/ceph/health", "PG_AVAILABILITY HEALTH_WARN\n");
  CHECK(node.check("ceph_members", two).holds == Holds::no);
  // Of monitors alone it concerns no member's data, and may stay until a monitor is restarted.
  node.osds(3);
  const auto slow = [&](const std::string& whose) {
    node.machine.put("/ceph/health",
                     "SLOW_OPS HEALTH_WARN 1 slow ops, oldest one blocked for 1863 sec, " + whose + "\n");
    return node.check("ceph_members", all).holds;
  };
  CHECK(slow("mon.node03 has slow ops") == Holds::yes);
  CHECK(slow("daemons [mon.node02,mon.node03] have slow ops.") == Holds::yes);
  CHECK(slow("osd.3 has slow ops") == Holds::no);
  CHECK(slow("daemons [mon.node02,osd.3] have slow ops.") == Holds::no);
  CHECK(slow("daemons [mon.a,mon.b]... have slow ops.") == Holds::no);
  CHECK(slow("in words of another version") == Holds::no);
  // Up and in, and yet no pool can use them: their hosts are outside of the root.
  node.osds(3);
  node.machine.put("/ceph/health", "");
  node.machine.put("/ceph/stray", "");
  CHECK(node.check("ceph_members", all).diff.find("node01 has no OSD in the CRUSH map") != std::string::npos);
}

TEST_CASE("ceph: which checks of the health count in which scope") {
  const auto counts = [](CephScope scope, const std::string& code, const std::string& severity, bool muted,
                         const std::string& message = "text") {
    const Json found = {{"severity", severity}, {"muted", muted}, {"summary", {{"message", message}}}};
    return !ceph_wrong({{"checks", {{code, found}}}}, scope).empty();
  };
  const auto everywhere = [&](const auto&... check) {
    std::string out;
    for (const auto scope : {CephScope::shown, CephScope::all_members, CephScope::some_members})
      out += counts(scope, check...) ? 'y' : 'n';
    return out;
  };
  const std::string monitor = "1 slow ops, oldest one blocked for 9 sec, mon.a has slow ops";
  CHECK(everywhere("OSD_DOWN", "HEALTH_WARN", false) == "yyn");
  CHECK(everywhere("OSD_FULL", "HEALTH_ERR", false) == "yyy");
  CHECK(everywhere("PG_AVAILABILITY", "HEALTH_WARN", false) == "yyy");
  CHECK(everywhere("MGR_MODULE_DEPENDENCY", "HEALTH_WARN", false) == "nnn");
  CHECK(everywhere("SLOW_OPS", "HEALTH_WARN", false, monitor) == "ynn");
  CHECK(everywhere("SLOW_OPS", "HEALTH_WARN", false, "osd.1 has slow ops") == "yyn");
  // What an operator has acknowledged is not shown again, but still holds a bring-up.
  CHECK(everywhere("OSD_DOWN", "HEALTH_WARN", true) == "nyn");
  CHECK(everywhere("PG_AVAILABILITY", "HEALTH_WARN", true) == "nyy");
}

TEST_CASE("ceph: what is left of a node is forgotten only when it is down and nothing is lost with it") {
  Node node;
  node.osds(3);
  node.machine.put("/ceph/mons", "node01 node02 node03 ");
  node.machine.put("/ceph/quorum", "node01 node02 ");
  const Json params = {
      {"members", named({"node01", "node02"})}, {"mons", named({"node01"})}, {"deadline_seconds", 0}};
  CHECK(node.apply("ceph_left", params).error().message.find("osd.3 of node03 is running") !=
        std::string::npos);
  CHECK(node.machine.get("/ceph/mons") == "node01 ");  // node02 is a member; a monitor it is no more
  node.machine.put("/ceph/osds/3", "u3 node03 0 1");
  node.machine.put("/ceph/busy", "");
  CHECK(node.apply("ceph_left", params).error().message.find("mapped to them") != std::string::npos);
  CHECK(node.machine.files().exists("/ceph/osds/3"));
  (void)node.machine.files().remove("/ceph/busy").ok();
  CHECK(node.apply("ceph_left", params).ok());
  CHECK(!node.machine.files().exists("/ceph/osds/3"));
  CHECK(node.check("ceph_left", params).holds == Holds::yes);

  // A declared monitor that does not answer yet keeps the others from being removed.
  node.machine.put("/ceph/mons", "node01 node03 ");
  node.machine.put("/ceph/quorum", "node03 ");
  CHECK(node.apply("ceph_left", params).error().code == Code::conflict);
  CHECK(node.machine.get("/ceph/mons") == "node01 node03 ");
}

TEST_CASE(
    "ceph: a node is drained when no group lacks a copy and it is safe, and not begun when the others cannot "
    "take its data") {
  Node node;
  node.osds(2);
  Json params = {{"node", "node02"}, {"state", "out"}, {"copies", 2}, {"deadline_seconds", 0}};
  CHECK(node.apply("ceph_drain", params)
            .error()
            .message.find("2 copies require as many other nodes, but only 1") != std::string::npos);
  node.osds(3);
  node.machine.put("/ceph/full", "");
  CHECK(node.apply("ceph_drain", params).error().message.find("do not fit") != std::string::npos);
  CHECK(node.machine.get("/ceph/osds/2") == "u2 node02 1 1");
  (void)node.machine.files().remove("/ceph/full").ok();
  for (const char* why : {"/ceph/degraded", "/ceph/busy"}) {
    INFO(why);
    node.machine.put(why, "");
    CHECK(!node.apply("ceph_drain", params).ok());
    CHECK(node.check("ceph_drain", params).holds == Holds::no);
    (void)node.machine.files().remove(why).ok();
  }
  CHECK(node.apply("ceph_drain", params).ok());
  CHECK(node.machine.get("/ceph/osds/2") == "u2 node02 1 0");
  params["state"] = "in";
  CHECK(node.check("ceph_drain", params).holds == Holds::no);
  CHECK(node.apply("ceph_drain", params).ok());
  CHECK(node.machine.get("/ceph/osds/2") == "u2 node02 1 1");
  params["state"] = "away";
  CHECK(node.apply("ceph_drain", params).error().code == Code::invalid);
}

TEST_CASE("ceph: noout is set when the others have what the node has, and not before") {
  Node node;
  node.osds(3);
  Json params = {{"node", "node02"}, {"state", "set"}, {"deadline_seconds", 0}};
  const auto has_flag = [&] { return node.machine.files().exists("/ceph/noout/node02"); };
  const auto waits = [&](bool flag) {
    CHECK(node.apply("ceph_noout", params).error().code == Code::failed);
    CHECK(node.check("ceph_noout", params).holds == Holds::no);
    CHECK(has_flag() == flag);
  };
  SECTION("groups are not whole") { node.machine.put("/ceph/degraded", ""); }
  SECTION("the manager does not know them yet") { node.machine.put("/ceph/unknown", ""); }
  SECTION("another node's store is down") { node.machine.put("/ceph/osds/3", "u3 node03 0 1"); }
  waits(false);
  CHECK(node.machine.called("osd ok-to-stop 2"));
  for (const char* why : {"/ceph/degraded", "/ceph/unknown"}) (void)node.machine.files().remove(why).ok();
  node.osds(3);
  REQUIRE(node.apply("ceph_noout", params).ok());
  CHECK(has_flag());
  CHECK(node.check("ceph_noout", params).holds == Holds::yes);
  // Not by an operator before, either.
  node.machine.put("/ceph/degraded", "");
  waits(true);
  params["state"] = "unset";
  CHECK(node.check("ceph_noout", params).holds == Holds::no);
  REQUIRE(node.apply("ceph_noout", params).ok());
  CHECK_FALSE(has_flag());
  CHECK(node.check("ceph_noout", params).holds == Holds::yes);
}

TEST_CASE("ceph: a node whose stores are down already, or are all there are, is not waited for") {
  Node node;
  std::string name = "node02";
  SECTION("down") {
    node.osds(3);
    node.machine.put("/ceph/osds/2", "u2 node02 0 1");
  }
  SECTION("all there are") {
    node.osds(1);
    node.machine.put("/ceph/degraded", "");
    name = "node01";
  }
  CHECK(node.apply("ceph_noout", {{"node", name}, {"state", "set"}, {"deadline_seconds", 0}}).ok());
  CHECK(node.machine.files().exists("/ceph/noout/" + name));
}

}  // namespace
}  // namespace muster
