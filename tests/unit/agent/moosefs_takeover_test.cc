// Another MooseFS master: what it begins with, that the former one is stopped and put aside, that two never
// run, and that mounts follow. Over a made-up machine; the real programs are tests/e2e/moosefs-takeover.sh's.
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>

#include "agent/steps/accounts.h"
#include "agent/storage/metadata.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

const auto image = tests::moosefs_image;
std::string changes(uint64_t last) {
  return std::to_string(last - 1) + ": 1700000000|ACCESS(1)\n" + std::to_string(last) +
         ": 1700000001|CREATE(1,a):2\n";
}

const std::string kLogger = "/state/mfs/metalogger", kMaster = "/state/mfs/master";

struct Node {
  FakeMachine machine;
  StepContext context = machine.context();
  Json params = {{"address", "10.20.0.11"},
                 {"clients", {{{"name", "node02"}, {"address", "10.20.0.12"}}}},
                 {"may_create", false},
                 {"take_over", true},
                 {"accept_old", false}};
  const StepModule* master = find_step_module("moosefs_master");
  const StepModule* retired = find_step_module("moosefs_retired");

  Node() {
    const std::string id = std::to_string(getuid()), group = std::to_string(getgid());
    machine.put("/etc/passwd",
                machine.get("/etc/passwd") + "mfs:x:" + id + ":" + group + "::/var/lib/mfs:/bin/false\n");
    machine.put("/etc/group", machine.get("/etc/group") + "mfs:x:" + group + ":\n");
    machine.put("/state/x", "");
    machine.put("/var/lib/mfs/metadata.mfs.empty", "MFSM NEW");
    machine.units["moosefs-metalogger.service"] = {.enabled = true, .active = true};
    machine.add_disk("nvme3n1", "C");
    params["disks"] = Json::array({machine.approved("C")});
  }
  void logged(uint64_t image_version, uint64_t last_change) {
    machine.put(kLogger + "/metadata_ml.mfs.back", image(image_version));
    machine.put(kLogger + "/changelog_ml.0.mfs", changes(last_change));
  }
  void older(const std::string& path, int64_t seconds) {
    const timeval at = {std::time(nullptr) - seconds, 0};
    const timeval both[2] = {at, at};
    REQUIRE(::utimes(machine.files().real(path).c_str(), both) == 0);
  }
  // The same parameters as the master's, without its clients.
  Result<CheckResult> check_heir() {
    Json own = params;
    for (const char* key : {"address", "clients"}) own.erase(key);
    return find_step_module("moosefs_heir")->check(context, own);
  }
  bool runs() { return machine.units["moosefs-master.service"].active; }
};

TEST_CASE("moosefs: a declared master takes over from its metadata logger's copy", "[takeover]") {
  Node node;
  node.logged(100, 240);
  CHECK(node.check_heir()->holds == Holds::yes);
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(node.runs());
  CHECK_FALSE(node.machine.units["moosefs-metalogger.service"].active);
  CHECK_FALSE(node.machine.units["moosefs-metalogger.service"].enabled);
  CHECK(node.machine.get(kMaster + "/metadata_ml.mfs.back") == image(100));
  CHECK(node.machine.get(kMaster + "/changelog_ml.0.mfs") == changes(240));
  CHECK(node.machine.get(kLogger + "/metadata_ml.mfs.back") == image(100));  // the copy stays
  CHECK(node.machine.get(kMaster + "/metadata.mfs") == image(101));          // its own, for the loggers
  CHECK(node.master->check(node.context, node.params)->holds == Holds::yes);
}

// Metadata loggers ask once an hour: an image that is not there when they ask first is missed for that long.
TEST_CASE("moosefs: a new master's first image is written before anybody asks for it", "[takeover]") {
  Node node;
  node.params["may_create"] = true;
  node.params["take_over"] = GENERATE(false, true);
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(node.runs());
  CHECK_FALSE(moosefs_metadata_is_new(node.machine.files()));
  CHECK(node.machine.get(kMaster + "/metadata.mfs") == image(1));
  CHECK(node.master->check(node.context, node.params)->holds == Holds::yes);
  CHECK_FALSE(node.machine.files().exists("/mfs/daemon"));
}

TEST_CASE("moosefs: an image that an interrupted run left unwritten is written by the next", "[takeover]") {
  Node node;
  node.params["may_create"] = true;
  const std::string at =
      GENERATE("before the first start", "with the program running", "with the service running");
  INFO(at);
  node.machine.put(kMaster + (at == "before the first start" ? "/metadata.mfs" : "/metadata.mfs.back"),
                   "MFSM NEW");
  if (at == "with the program running") node.machine.put("/mfs/daemon", "");
  if (at == "with the service running")
    node.machine.units["moosefs-master.service"] = {.enabled = true, .active = true};
  CHECK(node.master->check(node.context, node.params)->holds == Holds::no);
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(node.runs());
  CHECK_FALSE(moosefs_metadata_is_new(node.machine.files()));
  CHECK(node.master->check(node.context, node.params)->holds == Holds::yes);
}

TEST_CASE("moosefs: a master with an image of its own is not stopped for another", "[takeover]") {
  Node node;
  node.machine.put(kMaster + "/metadata.mfs.back", image(100));
  node.machine.put(kMaster + "/metadata.mfs.back.1", "MFSM NEW");
  node.machine.units["moosefs-master.service"] = {.enabled = true, .active = true};
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(node.machine.get(kMaster + "/metadata.mfs.back") == image(100));
  CHECK_FALSE(node.machine.files().exists(kMaster + "/metadata.mfs"));
}

// What it knows is in its memory only: neither a copy nor an empty file system goes in its place.
TEST_CASE("moosefs: nothing is put in the place of a master that runs without its metadata", "[takeover]") {
  Node node;
  node.params["may_create"] = true;
  if (GENERATE(true, false)) node.logged(100, 240);
  // Its configuration is not as it should be, either: the service's own check says that it does not hold.
  node.machine.units["moosefs-master.service"] = {.enabled = GENERATE(true, false), .active = true};
  CHECK(node.master->apply(node.context, node.params).error().code == Code::denied);
  CHECK(node.runs());
  CHECK_FALSE(has_moosefs_metadata(node.machine.files()));
  CHECK_FALSE(node.machine.files().exists("/etc/mfs/mfsmaster.cfg"));
}

TEST_CASE("moosefs: what is no whole copy is none, and nothing begins", "[takeover]") {
  const std::string what = GENERATE("nothing", "change logs alone", "an empty image",
                                    "an image that was cut short", "not declared");
  INFO(what);
  Node node;
  if (what != "nothing") node.logged(100, 240);
  const std::string path = kLogger + "/metadata_ml.mfs.back";
  if (what == "change logs alone") REQUIRE(node.machine.files().remove(path).ok());
  if (what == "an empty image") node.machine.put(path, "MFSM NEW");
  if (what == "an image that was cut short") node.machine.put(path, image(100).substr(0, 40));
  if (what == "not declared") node.params["take_over"] = false;
  const auto requested = node.check_heir();
  REQUIRE_FALSE(requested.ok());
  CHECK(requested.error().code == Code::denied);
  CHECK(node.master->apply(node.context, node.params).error().code == Code::denied);
  CHECK_FALSE(node.runs());
  CHECK_FALSE(has_moosefs_metadata(node.machine.files()));
}

TEST_CASE("moosefs: an older copy needs consent", "[takeover]") {
  Node node;
  node.logged(100, 240);
  for (const char* name : {"/metadata_ml.mfs.back", "/changelog_ml.0.mfs"}) node.older(kLogger + name, 7300);
  const auto requested = node.check_heir();
  REQUIRE_FALSE(requested.ok());
  CHECK(requested.error().code == Code::denied);
  CHECK(requested.error().message.find("--force " + node.context.node) != std::string::npos);
  CHECK_FALSE(node.master->apply(node.context, node.params).ok());
  CHECK_FALSE(node.runs());
  SECTION("given") {
    node.params["accept_old"] = true;
    CHECK(node.check_heir().ok());
    CHECK(node.master->apply(node.context, node.params).ok());
    CHECK(node.runs());
  }
  SECTION("not needed: it is still written") {
    node.older(kLogger + "/changelog_ml.0.mfs", 60);
    CHECK(node.check_heir().ok());
  }
}

TEST_CASE("moosefs: the later of two copies is taken, by what is in them", "[takeover]") {
  Node node;
  node.logged(100, 240);
  node.machine.put("/state/mfs/master.retired/metadata.mfs", image(90));
  node.machine.put("/state/mfs/master.retired.2/metadata.mfs.back", image(200));
  const uint64_t last = GENERATE(230u, 250u);
  node.machine.put("/state/mfs/master.retired.2/changelog.0.mfs", changes(last));
  const auto copy = latest_moosefs_copy(node.machine.files());
  REQUIRE(copy);
  CHECK(copy->folder == (last == 250 ? "/state/mfs/master.retired.2" : kLogger));
  CHECK(copy->version == std::max<uint64_t>(last, 240) + 1);
  // A last line that was not written whole is none.
  node.machine.put("/state/mfs/master.retired.2/changelog.0.mfs", changes(last) + "9999: 17000");
  CHECK(latest_moosefs_copy(node.machine.files())->version == copy->version);
}

TEST_CASE("moosefs: its own metadata is kept whatever copies there are", "[takeover]") {
  Node node;
  node.logged(500, 900);
  node.machine.put(kMaster + "/metadata.mfs.back", image(100));
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(node.machine.get(kMaster + "/metadata.mfs.back") == image(100));
  CHECK_FALSE(node.machine.files().exists(kMaster + "/metadata_ml.mfs.back"));
}

TEST_CASE("moosefs: a former master's metadata needs consent when it is old and another one led meanwhile",
          "[takeover]") {
  Node node;
  node.machine.put(kMaster + "/metadata.mfs", image(90));
  node.machine.put(kMaster + "/changelog.0.mfs", changes(99));
  for (const char* name : {"/metadata.mfs", "/changelog.0.mfs"}) node.older(kMaster + name, 10 * 24 * 3600);
  node.machine.put(kMaster + "/.muster-note", "written today, and no metadata");
  node.params["other_masters"] = {"node02"};
  const auto holds = [&] {
    const auto requested = node.check_heir();
    return requested.ok() && requested->holds == Holds::yes;
  };
  SECTION("nothing begins, and nothing of it is touched") {
    const auto requested = node.check_heir();
    REQUIRE_FALSE(requested.ok());
    CHECK(requested.error().code == Code::denied);
    CHECK(requested.error().message.find("node02") != std::string::npos);
    CHECK(requested.error().message.find("--force " + node.context.node) != std::string::npos);
    CHECK(node.master->apply(node.context, node.params).error().code == Code::denied);
    CHECK_FALSE(node.runs());
    CHECK(node.machine.get(kMaster + "/metadata.mfs") == image(90));
  }
  SECTION("with consent") {
    node.params["accept_old"] = true;
    CHECK(holds());
    CHECK(node.master->apply(node.context, node.params).ok());
    CHECK(node.runs());
  }
  SECTION("it is the master that runs") {
    node.machine.units["moosefs-master.service"] = {.enabled = true, .active = true};
    CHECK(holds());
  }
  SECTION("it was written an hour ago") {
    node.older(kMaster + "/changelog.0.mfs", 3600);
    CHECK(holds());
  }
  SECTION("no other node led: the whole cluster was off for ten days") {
    node.params["other_masters"] = Json::array();
    CHECK(holds());
    CHECK(node.master->apply(node.context, node.params).ok());
    CHECK(node.runs());
  }
  SECTION("no server is declared") {
    node.params["take_over"] = false;
    CHECK(holds());
  }
}

TEST_CASE("moosefs: no metadata logger runs beside a master, one that ran already either", "[takeover]") {
  Node node;
  node.machine.put(kMaster + "/metadata.mfs", image(90));
  REQUIRE(node.master->apply(node.context, node.params).ok());
  node.machine.units["moosefs-metalogger.service"] = {.enabled = true, .active = true};
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(node.runs());
  CHECK_FALSE(node.machine.units["moosefs-metalogger.service"].active);
  CHECK_FALSE(node.machine.units["moosefs-metalogger.service"].enabled);
}

TEST_CASE("moosefs: no second master begins while another one answers", "[takeover]") {
  Node node;
  node.logged(100, 240);
  node.machine.put("/mfs/other-master", "");
  SECTION("with a copy") {}
  SECTION("with metadata of its own, from before another one took over") {
    node.machine.put(kMaster + "/metadata.mfs", image(90));
  }
  CHECK(node.master->apply(node.context, node.params).error().code == Code::conflict);
  CHECK_FALSE(node.runs());
  CHECK_FALSE(node.machine.files().exists(kMaster + "/metadata_ml.mfs.back"));
  // Its copy of the other one's metadata does not fall behind.
  CHECK(node.machine.units["moosefs-metalogger.service"].active);
  CHECK(node.machine.units["moosefs-metalogger.service"].enabled);
  // At a boot systemd asks the same.
  CHECK(node.machine.get("/etc/systemd/system/moosefs-master.service.d/10-muster.conf")
            .find("ExecCondition=/etc/mfs/muster-only-master") != std::string::npos);
  CHECK(node.machine.get("/etc/mfs/muster-only-master").find("10.20.0.12") != std::string::npos);
  CHECK(steps::look(node.machine.files(), "/etc/mfs/muster-only-master").mode == 0755);
}

// A user's program on that port of a login node kept the master down.
TEST_CASE("moosefs: only nodes that may be the master are queried, and all clients are admitted",
          "[takeover]") {
  Node node;
  node.machine.put(kMaster + "/metadata.mfs", image(90));
  node.params["clients"].push_back({{"name", "login01"}, {"address", "10.20.0.50"}});
  node.params["members"] = {{{"name", "node01"}, {"address", "10.20.0.11"}},
                            {{"name", "node02"}, {"address", "10.20.0.12"}}};
  REQUIRE(node.master->apply(node.context, node.params).ok());
  const auto script = [&] { return node.machine.get("/etc/mfs/muster-only-master"); };
  CHECK(script().find("export peers=\"10.20.0.12\"\n") != std::string::npos);
  CHECK(node.machine.get("/etc/mfs/mfsexports.cfg").find("10.20.0.50 ") != std::string::npos);
  // No other may be: none is queried.
  node.params["members"].erase(1);
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(script().find("export peers=\"\"\n") != std::string::npos);
  // A playbook of before.
  node.params.erase("members");
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(script().find("export peers=\"10.20.0.12 10.20.0.50\"\n") != std::string::npos);
}

TEST_CASE("moosefs: a former master is stopped and put aside, and nothing of it is lost", "[takeover]") {
  Node node;
  node.machine.put(kMaster + "/metadata.mfs.back", image(100));
  node.machine.units["moosefs-master.service"] = {.enabled = true, .active = true};
  CHECK(node.retired->check(node.context, Json::object())->holds == Holds::no);
  REQUIRE(node.retired->apply(node.context, Json::object()).ok());
  CHECK_FALSE(node.runs());
  CHECK_FALSE(node.machine.units["moosefs-master.service"].enabled);
  CHECK_FALSE(has_moosefs_metadata(node.machine.files()));
  CHECK(node.machine.get("/state/mfs/master.retired/metadata.mfs.back") == image(100));
  CHECK(node.retired->check(node.context, Json::object())->holds == Holds::yes);
  // Again after it was master again: both stay.
  node.machine.put(kMaster + "/metadata.mfs", image(300));
  REQUIRE(node.retired->apply(node.context, Json::object()).ok());
  CHECK(node.machine.get("/state/mfs/master.retired/metadata.mfs.back") == image(100));
  CHECK(node.machine.get("/state/mfs/master.retired.2/metadata.mfs") == image(300));
  // The spec changed its mind before anybody took over: it goes on with what it was stopped with.
  REQUIRE(node.master->apply(node.context, node.params).ok());
  CHECK(node.machine.get(kMaster + "/metadata.mfs") == image(301));  // as it ended with, written again
  CHECK(node.runs());
}

TEST_CASE("moosefs: what put a former master aside never makes room for an empty one", "[takeover]") {
  Node node;
  node.machine.put("/state/mfs/master.retired/metadata.mfs", image(100));
  node.params["take_over"] = false;
  node.params["may_create"] = true;
  CHECK(node.master->apply(node.context, node.params).error().code == Code::denied);
  CHECK_FALSE(node.runs());
}

TEST_CASE("moosefs: a take-over that is interrupted anywhere is done by the next one", "[takeover]") {
  int calls = 0;
  {
    Node node;
    node.logged(100, 240);
    REQUIRE(node.master->apply(node.context, node.params).ok());
    calls = static_cast<int>(node.machine.calls.size());
  }
  REQUIRE(calls > 5);
  for (int at = 0; at < calls; ++at)
    for (const bool lost : {false, true}) {
      INFO("call " << at << (lost ? ", the answer is lost" : ", the machine dies"));
      Node node;
      node.logged(100, 240);
      (lost ? node.machine.loses_reply_at : node.machine.dies_at) = at;
      (void)node.master->apply(node.context, node.params).ok();
      node.machine.loses_reply_at = node.machine.dies_at = -1;
      REQUIRE(node.master->apply(node.context, node.params).ok());
      CHECK(node.runs());
      CHECK(node.machine.get(kMaster + "/metadata_ml.mfs.back") == image(100));
      CHECK(node.machine.get(kMaster + "/changelog_ml.0.mfs") == changes(240));
    }
}

TEST_CASE("moosefs: mounts follow to the new master, and no other mount is touched", "[takeover]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule* mount = find_step_module("moosefs_mount");
  Json params = {
      {"name", "shared"}, {"master", "10.20.0.11"}, {"target", "/shared"}, {"deadline_seconds", 0}};
  machine.put("/shared/x", "");
  REQUIRE(mount->apply(context, params).ok());
  params["master"] = "10.20.0.12";
  CHECK(mount->check(context, params)->holds == Holds::no);
  REQUIRE(mount->apply(context, params).ok());
  CHECK(mount->check(context, params)->holds == Holds::yes);
  CHECK(machine.get("/proc/self/mountinfo").find("10.20.0.11") == std::string::npos);
  // A foreign one: by hand, of something else, or without our unit.
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /shared rw - nfs4 10.20.0.9:9421 rw\n");
  CHECK(mount->apply(context, params).error().code == Code::conflict);
  machine.put("/proc/self/mountinfo", "40 1 0:50 / /shared rw - fuse mfs\\04310.20.0.9:9421 rw\n");
  REQUIRE(machine.files().remove("/etc/systemd/system/muster-mfs-shared.service").ok());
  CHECK(mount->apply(context, params).error().code == Code::conflict);
}

TEST_CASE("moosefs: a mount whose process is gone does not hold, and is made again", "[takeover]") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule* mount = find_step_module("moosefs_mount");
  const Json params = {
      {"name", "shared"}, {"master", "10.20.0.11"}, {"target", "/shared"}, {"deadline_seconds", 0}};
  machine.put("/shared/x", "");
  REQUIRE(mount->apply(context, params).ok());
  machine.put("/mfs/dead", "");
  const auto dead = mount->check(context, params);
  REQUIRE(dead.ok());
  CHECK(dead->holds == Holds::no);
  REQUIRE(mount->apply(context, params).ok());
  CHECK(mount->check(context, params)->holds == Holds::yes);
  // One that only does not answer, its master being away: nothing is taken from under its programs.
  machine.put("/site/gone", "");
  const auto silent = mount->check(context, params);
  REQUIRE(silent.ok());
  CHECK(silent->holds == Holds::no);
  machine.calls.clear();
  CHECK(mount->apply(context, params).error().code == Code::failed);
  for (const auto& call : machine.calls) CHECK(call.find("umount") == std::string::npos);
}

TEST_CASE("moosefs: the unit takes dead mounts away before it mounts, and no other", "[takeover]") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.put("/shared/x", "");
  const Json params = {
      {"name", "shared"}, {"master", "10.20.0.11"}, {"target", "/shared"}, {"deadline_seconds", 0}};
  REQUIRE(find_step_module("moosefs_mount")->apply(context, params).ok());
  const std::string unit = machine.get("/etc/systemd/system/muster-mfs-shared.service");
  const std::string before = "ExecStartPre=-/bin/sh -c '";
  const auto at = unit.find(before);
  REQUIRE(at != std::string::npos);
  const std::string line = unit.substr(at + before.size(), unit.find("'\n", at) - at - before.size());

  // `mounts` has a line for each of the mounts that are stacked there, the top one last.
  const std::string folder = machine.files().real("/programs");
  machine.put("/programs/stat",
              "#!/bin/sh\nwhy=$(tail -n 1 " + folder +
                  "/mounts)\n[ -n \"$why\" ] || exit 0\n"
                  "echo \"stat: cannot read file system information for '$3': $why\" >&2; exit 1\n");
  machine.put("/programs/umount",
              "#!/bin/sh\nsed -i '$d' " + folder + "/mounts; [ ! -e " + folder + "/stuck ]\n");
  for (const char* program : {"stat", "umount"}) ::chmod((folder + "/" + program).c_str(), 0755);
  const auto left_of = [&](const std::string& mounts) {
    machine.put("/programs/mounts", mounts);
    Command command;
    command.argv = {"/bin/sh", "-c", line};
    command.env["PATH"] = folder + ":/usr/bin:/bin";
    command.deadline = 20 * kSecond;
    REQUIRE(make_process()->run(command).ok());
    return machine.get("/programs/mounts");
  };
  const std::string dead = "Transport endpoint is not connected\n";
  CHECK(left_of(dead) == "");
  CHECK(left_of(dead + dead) == "");
  CHECK(left_of("\n" + dead) == "\n");  // an answering one below
  CHECK(left_of("\n") == "\n");
  CHECK(left_of("Stale file handle\n") == "Stale file handle\n");
  CHECK(left_of("Permission denied\n" + dead) == "Permission denied\n");
  machine.put("/programs/stuck", "");
  CHECK(left_of(dead + dead) == dead);
}

}  // namespace
}  // namespace muster
