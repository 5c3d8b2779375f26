// `muster status` of storage: what agents say with their requests, held against the spec.
#include "controller/link/storage_reports.h"

#include "base/json.h"
#include "controller/engines/ceph_engine.h"
#include "tests/catch.h"

using namespace muster;

namespace {

Spec spec() {
  Spec out;
  for (const char* name : {"node01", "node02"}) {
    NodeSpec node;
    node.name = NodeName(name);
    node.role = "cpu";
    node.disks["fast"] = {};
    out.nodes.push_back(node);
  }
  StorageSpec scratch;
  scratch.name = "scratch", scratch.engine = "local", scratch.disks = "fast", scratch.mount = "/scratch";
  StorageSpec home;
  home.name = "home", home.engine = "external", home.mount = "/home", home.fstype = "nfs4";
  home.source = "10.0.0.5:/export";
  out.storage = {scratch, home};
  return out;
}

const std::string kScratch =
    R"({"at": "/scratch", "fs": "xfs", "from": "/dev/md127", "size": 1000, "used": 100, "array": "raid1"})";
const std::string kHome =
    R"({"at": "/home", "fs": "nfs4", "from": "10.0.0.5:/export", "size": 500, "used": 5})";

bool nobody(const std::string&) { return false; }

// One section of an engine at /shared over both nodes; node01 leads it.
Spec shared_by(const std::string& engine) {
  Spec out = spec();
  out.cluster = "gaggle";
  out.nodes[0].address = "10.20.0.11", out.nodes[1].address = "10.20.0.12";
  StorageSpec shared;
  shared.name = "shared", shared.engine = engine, shared.disks = "fast", shared.mount = "/shared";
  if (engine == "nfs") shared.server = "node01";
  out.storage = {shared};
  return out;
}
std::string mounted(const std::string& fs, const std::string& from) {
  return R"({"at": "/shared", "fs": ")" + fs + R"(", "from": ")" + from + R"("})";
}
const std::string kMfs = mounted("fuse", "mfs#10.20.0.11:9421");
std::string of_ceph() { return mounted("ceph", "muster@" + ceph_fsid("gaggle", "shared") + ".shared=/"); }

}  // namespace

TEST_CASE("storage of each node adds up, that of a server counts once", "[api]") {
  StorageReports reported;
  reported.update("node01", "[" + kScratch + "," + kHome + "]");
  reported.update("node02", "[" + kScratch + "," + kHome + "]");
  const Json status = reported.status(spec(), nobody);
  REQUIRE(status.size() == 2);
  CHECK(status[0]["size_bytes"] == 2000);
  CHECK(status[0]["used_bytes"] == 200);
  CHECK(status[1]["size_bytes"] == 500);
  for (const Json& section : status) {
    CHECK(section["healthy"] == true);
    CHECK(section["problems"].empty());
    for (const Json& node : section["nodes"]) CHECK(node["state"] == "mounted");
  }
}

TEST_CASE("what is wrong with storage is said with its node", "[api]") {
  StorageReports reported;
  reported.update("node01", "[" + kScratch + "]");
  reported.update("node02", R"([{"at": "/scratch", "fs": "xfs", "from": "/dev/md127", "array": "raid1",
      "health": "degraded: 1 of 2 members", "ok": false},
      {"at": "/home", "fs": "nfs4", "from": "10.0.0.5:/export", "silent": true}])");
  const Json status = reported.status(spec(), nobody);
  CHECK(status[0]["healthy"] == false);
  CHECK(status[0]["problems"] ==
        Json::parse(R"([{"node": "node02", "problem": "raid1 degraded: 1 of 2 members"}])"));
  CHECK(status[1]["healthy"] == false);
  CHECK(status[1]["nodes"][0]["state"] == "absent");
  CHECK(status[1]["nodes"][1]["state"] == "silent");
  reported.update(
      "node02", R"([{"at": "/home", "fs": "nfs4", "from": "10.0.0.5:/export", "silent": true, "age": 300}])");
  const std::string since = reported.status(spec(), nobody)[1]["problems"][1]["problem"].get<std::string>();
  CHECK(since.find("300 s") != std::string::npos);
  reported.update("node02", R"([{"at": "/home", "fs": "nfs4", "from": "10.0.0.6:/export"}])");
  CHECK(reported.status(spec(), nobody)[1]["nodes"][1]["state"] == "other");
}

TEST_CASE("of a node that is not heard, or says nonsense, nothing is known of its storage", "[api]") {
  StorageReports reported;
  reported.update("node01", "[" + kScratch + "," + kHome + "]");
  for (const std::string& bad : {std::string(), std::string("{}"), std::string("[[["), std::string("7"),
                                 "[" + std::string(9000, ' ') + "]"}) {
    reported.update("node02", "[" + kHome + "]");
    reported.update("node02", bad);
    CHECK(reported.status(spec(), nobody)[0]["nodes"][1]["state"] == "unknown");
  }
  for (const std::string odd : {"[1, null, \"x\", {\"at\": 5}]",
                                R"([{"at": "/scratch", "size": "big", "used": -1, "ok": 0, "array": {}}])"}) {
    reported.update("node02", odd);
    CHECK(reported.status(spec(), nobody).size() == 2);
  }
  const Json silent = reported.status(spec(), [](const std::string&) { return true; });
  for (const Json& section : silent) {
    CHECK(section["healthy"].is_null());
    CHECK_FALSE(section.contains("size_bytes"));
  }
}

TEST_CASE("an engine that is not well is said to be, with its own words", "[api]") {
  const auto status = [](const std::string& engine, const std::string& first, const std::string& second) {
    const std::string mount = engine == "ceph" ? of_ceph() : kMfs;
    StorageReports reported;
    reported.update("node01", "[" + first + (first.empty() ? "" : ",") + mount + "]");
    reported.update("node02", "[" + second + (second.empty() ? "" : ",") + mount + "]");
    const Json all = reported.status(shared_by(engine), nobody);
    for (const Json& node : all[0]["nodes"]) CHECK(node["state"] == "mounted");
    return all[0];
  };
  const std::string lost = R"({"engine": "moosefs", "ok": false, "health": "3 chunks are undergoal"})";
  CHECK(status("moosefs", "", "")["healthy"] == true);  // agents of older versions, and no master among them
  CHECK(status("moosefs", R"({"engine": "moosefs", "ok": true})", "")["healthy"] == true);
  const Json bad = status("moosefs", lost, "");
  CHECK(bad["healthy"] == false);
  CHECK(bad["problems"] ==
        Json::parse(R"([{"node": "node01", "problem": "3 chunks are undergoal", "of_engine": true}])"));
  CHECK(status("moosefs", R"({"engine": "moosefs", "silent": true})", "")["healthy"] == false);
  // A former master that began again has not heard of the chunks since.
  CHECK(status("moosefs", R"({"engine": "moosefs", "ok": true})", lost)["problems"].empty());
  CHECK(status("moosefs", R"({"engine": "ceph", "ok": false, "health": "x"})", "")["healthy"] == true);

  const std::string well = R"({"engine": "ceph", "ok": true})",
                    silent = R"({"engine": "ceph", "silent": true})",
                    down = R"({"engine": "ceph", "ok": false, "health": "OSD_DOWN: 1 osds down"})";
  CHECK(status("ceph", silent, well)["healthy"] == true);  // a monitor that is cut off
  CHECK(status("ceph", silent, silent)["problems"].size() == 1);
  CHECK(status("ceph", well, down)["healthy"] == false);
  CHECK(status("ceph", down, down)["problems"] ==
        Json::parse(R"([{"node": "node01", "problem": "OSD_DOWN: 1 osds down", "of_engine": true}])"));
  CHECK(status("ceph", R"({"engine": "ceph", "ok": false, "health": 5})", "")["healthy"] == false);
  CHECK(status("ceph", R"({"engine": "ceph", "ok": "x", "silent": 1})", "")["healthy"] == true);
}

TEST_CASE("what a master said that is not heard any more is not shown", "[api]") {
  StorageReports reported;
  reported.update("node01", R"([{"engine": "moosefs", "ok": false, "health": "1 chunks are missing"}])");
  reported.update("node02", "[" + kMfs + "]");
  const Json status =
      reported.status(shared_by("moosefs"), [](const std::string& node) { return node == "node01"; });
  CHECK(status[0]["problems"].empty());
}

TEST_CASE("another file system over a section's mount is not the section, whatever its engine", "[api]") {
  const std::string own = mounted("xfs", "/dev/md127"), site = mounted("nfs4", "10.0.0.5:/export"),
                    nfs = mounted("nfs4", "10.20.0.11:/shared"), beegfs = mounted("beegfs", "beegfs_nodev");
  struct Case {
    const char* engine;
    std::string first, second;  // rightly mounted
  };
  for (const Case& one : std::vector<Case>{{"local", own, own},
                                           {"moosefs", kMfs, mounted("fuse.mfs", "10.20.0.11:9421")},
                                           {"nfs", own, nfs},
                                           {"ceph", of_ceph(), of_ceph()},
                                           {"beegfs", beegfs, beegfs}}) {
    CAPTURE(one.engine);
    StorageReports reported;
    reported.update("node01", "[" + one.first + "]");
    reported.update("node02", "[" + one.second + "]");
    CHECK(reported.status(shared_by(one.engine), nobody)[0]["healthy"] == true);
    for (const std::string& other :
         {own, site, nfs, beegfs, of_ceph(), mounted("fuse", "mfs#10.20.0.99:9421")}) {
      if (other == one.second) continue;
      CAPTURE(other);
      reported.update("node02", "[" + other + "]");
      const Json section = reported.status(shared_by(one.engine), nobody)[0];
      CHECK(section["nodes"][1]["state"] == "other");
      CHECK(section["healthy"] == false);
    }
  }
  StorageReports reported;
  reported.update("node01", "[" + nfs + "]");  // the server mounts no export of its own
  CHECK(reported.status(shared_by("nfs"), nobody)[0]["nodes"][0]["state"] == "other");
}

TEST_CASE("a mount that a node had no room to tell of is not known, and not absent", "[api]") {
  StorageReports reported;
  reported.update("node01", "[" + kScratch + R"(, {"cut": true}])");
  reported.update("node02", "[" + kScratch + R"(, {"cut": false}])");
  const Json home = reported.status(spec(), nobody)[1];
  CHECK(home["nodes"][0]["state"] == "unknown");
  CHECK(home["nodes"][1]["state"] == "absent");
  CHECK(home["problems"].size() == 1);
  CHECK(reported.status(spec(), nobody)[0]["nodes"][0]["state"] == "mounted");
}

TEST_CASE("storage told: what the scheduler says of a node", "[storage][rollout]") {
  const auto report = [](const std::string& entry) {
    StorageReports reported;
    reported.update("node01", R"([{"scheduler": "slurm")" + entry + "}]");
    return reported.scheduler("node01");
  };
  const auto word = [&](const std::string& state, const std::string& reason = "") {
    return report(R"(, "state": ")" + state + R"(", "reason": ")" + reason + "\"");
  };
  CHECK_FALSE(word("idle").busy);
  CHECK_FALSE(word("idle").out);
  for (const char* state : {"allocated", "mixed-", "completing", "draining*"}) CHECK(word(state).busy);
  for (const char* state : {"drained*", "draining", "down", "fail", "maint", "inval", "idle*", "unknown",
                            "powered_down", "reboot^", "hibernating", "idle&"}) {
    CAPTURE(state);
    CHECK(word(state, "psu").out);
  }
  CHECK_FALSE(word("drained", "muster reimage").out);  // left behind by a run: the next one resumes it
  CHECK(word("drained", "muster reimage").paused);
  CHECK(word("drained*", "muster reimage").paused);  // as reported while it booted
  CHECK_FALSE(word("drained", "psu").paused);
  CHECK_FALSE(word("drained", "muster reimages").paused);
  CHECK_FALSE(word("idle", "muster reimage").paused);
  // It takes no jobs when it is resumed, either.
  CHECK(word("inval", "muster reimage").out);
  CHECK_FALSE(word("inval", "muster reimage").paused);
  // Without an answer it may have jobs; what is known of it stays.
  for (const char* entry : {R"(, "silent": true)", R"(, "silent": true, "state": "idle", "reason": "")"}) {
    CHECK(report(entry).busy);
    CHECK_FALSE(report(entry).out);
  }
  CHECK(report(R"(, "silent": true, "state": "drained", "reason": "psu")").out);
  // What an operator reads of it.
  const std::string drained =
      R"(, "state": "drained", "reason": "psu", "user": "ann", "since": "2026-11-29")";
  for (const char* part : {"drained", "psu", "ann", "2026-11-29"})
    CHECK(report(drained).words.find(part) != std::string::npos);
  CHECK(word("drained", "psu").words.find("psu") != std::string::npos);  // of an earlier agent
  CHECK(word("hibernating").words.find("hibernating") != std::string::npos);
  CHECK(word("mixed", "psu").words.empty());
  StorageReports none;
  CHECK_FALSE(none.scheduler("node01").busy);
  CHECK_FALSE(none.scheduler("node01").out);
}
