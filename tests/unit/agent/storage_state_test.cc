// What a node says of its mounts: local ones by themselves, those of servers by asking where one may hang.
#include "agent/storage/storage_state.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <future>

#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

// A mirror at /scratch, the site's storage at /data, the system's own disk, and what is no storage.
struct Node {
  FakeMachine machine;
  Files files = machine.files();
  StorageState state{files, machine, kMinute};
  Node() {
    machine.put("/proc/self/mountinfo",
                "20 1 259:1 / / rw - ext4 /dev/nvme0n1p2 rw\n"
                "21 1 259:2 / /state rw - ext4 /dev/nvme0n1p4 rw\n"
                "22 1 0:20 / /proc rw - proc proc rw\n"
                "23 1 259:3 / /scratch rw - xfs /dev/md127 rw\n"
                "24 1 259:4 / /srv/mfs/C rw - xfs /dev/nvme3n1 rw\n"
                "25 1 0:40 / /data rw,nosuid - nfs4 10.0.0.5:/export rw\n"
                "26 1 0:41 / /snap rw - fuse.snapfuse snap rw\n");
    machine.put("/scratch/file", "x");
    for (const auto& [name, value] : std::map<std::string, std::string>{{"level", "raid1"},
                                                                        {"raid_disks", "2"},
                                                                        {"degraded", "0"},
                                                                        {"array_state", "clean"},
                                                                        {"sync_action", "resync"},
                                                                        {"sync_completed", "1 / 4"},
                                                                        {"dev-sda/state", "in_sync"},
                                                                        {"dev-sdb/state", "in_sync"}})
      machine.put("/sys/block/md127/md/" + name, value + "\n");
  }
  // Nothing mounted that a server has to answer for.
  void only_local() { machine.put("/proc/self/mountinfo", "23 1 259:3 / /scratch rw - xfs /dev/md127 rw\n"); }
  void put_master() {
    machine.put("/etc/mfs/mfsmaster.cfg", "# Written by muster.\n");
    machine.put("/sys/fs/cgroup/system.slice/moosefs-master.service/cgroup.procs", "77\n");
    machine.put("/mfs/servers", "10.20.0.11 10.20.0.12");
  }
  void put_monitor() {
    machine.put("/etc/ceph/muster-admin.secret", "KEY\n");
    machine.put("/var/lib/ceph/mon/ceph-node01/store.db/CURRENT", "x");
  }
  Json of(const std::string& engine, int64_t seconds = 0) {
    for (const Json& one : state.look(seconds))
      if (one.value("engine", "") == engine) return one;
    return nullptr;
  }
  Json at(const std::string& target, int64_t seconds = 0) {
    for (const Json& one : state.look(seconds))
      if (one.value("at", "") == target) return one;
    return nullptr;
  }
  size_t requested() const {
    return static_cast<size_t>(std::count_if(machine.calls.begin(), machine.calls.end(),
                                             [](const auto& call) { return call.starts_with("stat "); }));
  }
};

TEST_CASE("storage state: what is mounted for storage, and nothing of the system") {
  Node node;
  CHECK(node.state.look(0).size() == 2);
  const Json scratch = node.at("/scratch");
  CHECK(scratch["array"] == "raid1");
  CHECK(scratch["health"] == "resync, 25 %");
  CHECK_FALSE(scratch.contains("ok"));
  CHECK(scratch["size"].get<uint64_t>() > 0);
  // Other programs write to this machine's own file system, whose use is shown.
  Json text = parse_json(node.state.text(0)).value(), look = node.state.look(0);
  for (Json* both : {&text, &look})
    for (Json& one : *both) one.erase("used");
  CHECK(text == look);
}

TEST_CASE("storage state: an array that lost a member is not fine") {
  Node node;
  node.machine.put("/sys/block/md127/md/dev-sdb/state", "faulty\n");
  node.machine.put("/sys/block/md127/md/degraded", "1\n");
  node.machine.put("/sys/block/md127/md/sync_action", "idle\n");
  CHECK(node.at("/scratch")["ok"] == false);
  CHECK(node.at("/scratch")["health"] == "degraded: 1 of 2 members, sdb failed");
}

TEST_CASE(
    "storage state: a server is queried by another process, once a minute, and one that is gone is said to "
    "be") {
  Node node;
  CHECK(node.at("/data")["silent"] == true);  // what answers is no answer
  node.machine.put("/site/capacity", "4096 1000 250\n");
  CHECK(node.at("/data", 30)["silent"] == true);
  CHECK(node.requested() == 1);
  const Json data = node.at("/data", 60);
  CHECK(data["size"] == 4096000);
  CHECK(data["used"] == 3072000);
  CHECK(data["from"] == "10.0.0.5:/export");
  node.machine.put("/site/gone", "");
  CHECK(node.at("/data", 119)["size"] == 4096000);
  CHECK(node.at("/data", 120)["silent"] == true);
  CHECK_FALSE(node.at("/data", 120).contains("size"));
  CHECK(node.requested() == 3);
}

TEST_CASE("storage state: very many mounts still fit into a request") {
  Node node;
  std::string all;
  for (int i = 0; i < 200; ++i)
    all +=
        "30 1 259:9 / /local/disk" + std::to_string(i) + " rw - xfs /dev/sdb" + std::to_string(i) + " rw\n";
  node.machine.put("/proc/self/mountinfo", all);
  node.put_master();
  CHECK(node.state.look(0).size() == 201);
  CHECK(node.state.text(0).size() <= 2048);
  const auto reported = parse_json(node.state.text(0));
  REQUIRE(reported.ok());
  REQUIRE(reported->size() > 2);
  CHECK(reported->front()["engine"] == "moosefs");
  CHECK(reported->back() == Json({{"cut", true}}));
  CHECK((*reported)[1]["at"] == "/local/disk0");
}

// A server that never answers: who asks it waits until the test lets go.
class Hanging : public Process {
 public:
  explicit Hanging(Process& others, std::string word = "/data") : others_(others), word_(std::move(word)) {}
  Result<Output> run(const Command& command) override {
    if (command.argv.back() != word_) return others_.run(command);
    ++questions;
    released_.wait();
    return fail(Code::timeout, "killed");
  }
  void release() { release_.set_value(); }
  std::atomic<int> questions = 0;

 private:
  Process& others_;
  std::string word_;
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

TEST_CASE("storage state: a server that never answers delays nothing, and is not queried twice at a time") {
  Node node;
  Hanging process(node.machine);
  StorageState state(node.files, process, 20);
  const auto at = [&](const std::string& target, int64_t seconds) {
    for (const Json& one : state.look(seconds))
      if (one["at"] == target) return one;
    return Json();
  };
  CHECK(at("/data", 0)["silent"] == true);
  CHECK(at("/scratch", 0)["array"] == "raid1");
  for (int64_t minute = 1; minute < 10; ++minute) CHECK(at("/data", 60 * minute)["silent"] == true);
  CHECK(process.questions <= 1);  // 0: it has not even been started on a busy machine
  process.release();
}

TEST_CASE("storage state: MooseFS' master is queried for its chunks, once a minute and where it runs") {
  Node node;
  node.only_local();
  node.put_master();
  REQUIRE(
      node.machine.files().remove("/sys/fs/cgroup/system.slice/moosefs-master.service/cgroup.procs").ok());
  CHECK(node.of("moosefs").is_null());  // another node took over: its settings are still here
  CHECK_FALSE(node.machine.called("mfscli"));
  node.put_master();
  CHECK(node.of("moosefs") == Json({{"engine", "moosefs"}, {"ok", true}}));
  node.machine.put("/mfs/undergoal", "3");
  CHECK(node.of("moosefs", 59)["ok"] == true);
  CHECK(node.of("moosefs", 60) ==
        Json({{"engine", "moosefs"}, {"ok", false}, {"health", "3 chunks are undergoal"}}));
  node.machine.broken.insert("mfscli");
  CHECK(node.of("moosefs", 120) == Json({{"engine", "moosefs"}, {"silent", true}}));
  node.machine.broken.clear();
  CHECK(node.of("moosefs", 180)["ok"] == false);
  REQUIRE(node.machine.files().remove("/mfs/servers").ok());  // it answers, and says nothing of chunks
  CHECK(node.of("moosefs", 240)["silent"] == true);
  CHECK(std::count_if(node.machine.calls.begin(), node.machine.calls.end(),
                      [](const auto& call) { return call.starts_with("mfscli "); }) == 5);
}

TEST_CASE("storage state: a monitor is queried for Ceph's health; nodes that only hold data are not") {
  Node node;
  node.only_local();
  node.machine.put("/etc/ceph/muster-admin.secret", "KEY\n");
  CHECK(node.of("ceph").is_null());
  CHECK_FALSE(node.machine.called("ceph"));
  node.put_monitor();
  node.machine.put("/ceph/health", "MGR_MODULE_DEPENDENCY HEALTH_WARN\n");
  CHECK(node.of("ceph") == Json({{"engine", "ceph"}, {"ok", true}}));
  node.machine.put("/ceph/health", "MGR_MODULE_DEPENDENCY HEALTH_WARN\nOSD_DOWN HEALTH_WARN\n");
  CHECK(node.of("ceph", 60) ==
        Json({{"engine", "ceph"}, {"ok", false}, {"health", "OSD_DOWN: something about it"}}));
}

// Says one thing, whatever the question.
class Says : public Process {
 public:
  std::string words;
  Result<Output> run(const Command&) override { return Output{0, words, ""}; }
};

TEST_CASE("storage state: what is muted in Ceph is not told, and what is no answer is none") {
  Node node;
  node.only_local();
  node.put_monitor();
  Says process;
  StorageState state(node.files, process, kMinute);
  process.words = R"({"status": "HEALTH_OK", "checks": {"OSDMAP_FLAGS": {"severity": "HEALTH_WARN",
      "summary": {"message": "noout"}, "muted": true}}})";
  CHECK(state.look(0)[0] == Json({{"engine", "ceph"}, {"ok", true}}));
  int64_t seconds = 0;
  for (const char* odd : {"", "7", "[]", "{}", R"({"checks": 5})", "HEALTH_OK"}) {
    process.words = odd;
    CHECK(state.look(seconds += 60)[0] == Json({{"engine", "ceph"}, {"silent", true}}));
  }
  process.words = R"({"checks": {"A": 1, "B": {"severity": 2, "summary": "x"}}})";
  CHECK(state.look(seconds + 60)[0]["ok"] == false);
}

TEST_CASE("storage state: a slow engine delays nothing, and is not reported yet") {
  Node node;
  node.only_local();
  node.put_monitor();
  Hanging process(node.machine, "json");
  StorageState state(node.files, process, 20);
  const Json reported = state.look(0);
  REQUIRE(reported.size() == 1);
  CHECK(reported[0]["at"] == "/scratch");
  CHECK(state.look(60).size() == 1);
  CHECK(process.questions <= 1);
  process.release();
}

TEST_CASE("storage state: a compute node whose Slurm does not answer says so, with what was last known") {
  Node node;
  node.only_local();
  Says process;
  StorageState state(node.files, process, kMinute);
  process.words = "node01|drained|bad fan|ann|2026-11-29T09:48:25\n";
  CHECK(state.look(0).size() == 1);  // no slurmd
  node.machine.put("/etc/slurm/slurm.conf", "x");
  node.machine.put("/usr/sbin/slurmd", "x");
  node.machine.put("/proc/sys/kernel/hostname", "node01\n");
  process.words.clear();
  CHECK(state.look(60)[0] == Json({{"scheduler", "slurm"}, {"silent", true}}));
  process.words = "node01|drained|bad fan|ann|2026-11-29T09:48:25\n";
  Json known = {{"scheduler", "slurm"},
                {"state", "drained"},
                {"reason", "bad fan"},
                {"user", "ann"},
                {"since", "2026-11-29T09:48:25"}};
  CHECK(state.look(120)[0] == known);
  process.words.clear();
  known["silent"] = true;
  CHECK(state.look(180)[0] == known);
}

// On a slow machine to ask takes longer than everything else that the agent does.
class Slow : public Process {
 public:
  explicit Slow(Process& under) : under_(under) {}
  Result<Output> run(const Command& command) override {
    now += takes;
    return under_.run(command);
  }
  std::atomic<int64_t> now{0}, takes{0};

 private:
  Process& under_;
};

TEST_CASE("storage state: what takes long is queried less often, at most a twentieth of the time") {
  Node node;
  node.only_local();
  node.put_monitor();
  Slow process(node.machine);
  StorageState state(node.files, process, kMinute, [&] { return process.now.load(); });
  const auto requested = [&](int64_t seconds) {
    const size_t before = node.machine.calls.size();
    state.look(seconds);
    return node.machine.calls.size() - before;
  };
  const auto [takes, rest] =
      GENERATE(std::pair{int64_t{500}, int64_t{60}}, std::pair{int64_t{3000}, int64_t{60}},
               std::pair{int64_t{10000}, int64_t{200}}, std::pair{int64_t{20000}, int64_t{400}});
  process.takes = takes;
  CHECK(requested(0) == 1);
  CHECK(requested(rest - 1) == 0);
  CHECK(requested(rest) == 1);
}

TEST_CASE("storage state: an engine that did not answer is queried again soon, however long that took") {
  Node node;
  node.only_local();
  node.put_monitor();
  Slow process(node.machine);
  process.takes = 20000;
  StorageState state(node.files, process, kMinute, [&] { return process.now.load(); });
  node.machine.broken.insert(node.machine.broken.end(), "ceph");
  state.look(0);
  node.machine.calls.clear();
  state.look(59);
  CHECK(node.machine.calls.empty());
  state.look(60);
  CHECK(node.machine.calls.size() == 1);
  // Killed at its deadline: it may be the question that takes the processor.
  node.machine.broken.clear();
  node.machine.calls.clear();
  node.machine.dies_at = 0;
  state.look(120);
  REQUIRE(node.machine.calls.size() == 1);
  state.look(519);
  CHECK(node.machine.calls.size() == 1);
  state.look(520);
  CHECK(node.machine.calls.size() == 2);
}

TEST_CASE("storage state: an engine's question that does not die is found by its script") {
  Node node;
  node.only_local();
  node.put_monitor();
  node.machine.put("/proc/77/comm", "ceph\n");
  node.machine.put("/proc/77/cmdline", std::string("/usr/bin/python3\0/usr/bin/ceph\0--connect-timeout\0"
                                                   "15\0health\0-f\0json\0",
                                                   67));
  for (const int64_t second : {0, 30, 60}) {
    CHECK(node.of("ceph", second)["silent"] == true);
    CHECK(node.machine.calls.empty());
  }
}

const std::string kStuck("stat\0--file-system\0--format=%S %b %a\0/data\0", 43);

// To read a command line takes a lock of the process's memory, which a process that hangs may hold for ever.
TEST_CASE("storage state: the command lines of other programs are not opened") {
  Node node;
  node.machine.put("/site/capacity", "4096 1000 250\n");
  node.machine.put("/proc/78/comm", "python3\n");
  node.machine.put("/proc/78/cmdline", kStuck);
  const int opened = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(opened >= 0);
  REQUIRE(::inotify_add_watch(opened, node.files.real("/proc/78/cmdline").c_str(), IN_OPEN) >= 0);
  CHECK(node.at("/data")["size"] == 4096000);
  char event[4096];
  const auto seen = ::read(opened, event, sizeof event);
  const int why = errno;
  ::close(opened);
  CHECK(seen == -1);
  CHECK(why == EAGAIN);
}

TEST_CASE("storage state: a foreign process of that name is none of muster's queries") {
  if (::geteuid() != 0) return;  // only root gives a file away
  Node node;
  node.machine.put("/site/capacity", "4096 1000 250\n");
  node.machine.put("/proc/79/comm", "stat\n");
  node.machine.put("/proc/79/cmdline", kStuck);
  REQUIRE(::chown(node.files.real("/proc/79").c_str(), 1000, 1000) == 0);
  CHECK(node.at("/data")["size"] == 4096000);
}

TEST_CASE("storage state: a question that does not die is not put again, by the next agent either") {
  Node node;
  node.machine.put("/site/capacity", "4096 1000 250\n");
  node.machine.put("/proc/77/comm", "stat\n");
  node.machine.put("/proc/77/cmdline", kStuck);
  CHECK(node.at("/data")["silent"] == true);
  CHECK(node.at("/data", 60)["silent"] == true);
  CHECK(node.requested() == 0);
  REQUIRE(node.machine.files().remove("/proc/77/cmdline").ok());
  CHECK(node.at("/data", 120)["size"] == 4096000);
  CHECK_FALSE(node.at("/data", 120).contains("age"));
  CHECK(node.requested() == 1);
  node.machine.put("/site/gone", "");
  CHECK(node.at("/data", 180)["age"] == 60);
  CHECK(node.at("/data", 250)["age"] == 130);
}

}  // namespace
}  // namespace muster
