// Hosts at work: recorded processes of hosts on which another user works or measures, and the lock that
// decides between two measurements.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "agent/measuring/host_claim.h"
#include "agent/measuring/look_first.h"
#include "base/split.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

// A host whose processes were recorded twice, a second apart.
struct Recorded {
  FakeMachine machine;
  LookInput input;
  std::string name;

  Recorded(std::string of, int processors, int cores, const std::string& load) : name(std::move(of)) {
    put("/sys/devices/system/cpu/online", "0-" + std::to_string(processors - 1) + "\n");
    for (int cpu = 0; cpu < processors; ++cpu) {
      const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      put(topology + "physical_package_id", "0\n");
      put(topology + "core_id", std::to_string(cpu % cores) + "\n");
    }
    put("/proc/loadavg", load + " " + load + " " + load + " 3/300 100\n");
    put("/proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\nbtime 1790000000\n");
    put("/etc/passwd",
        "root:x:0:0::/root:/bin/sh\nbob:x:1007:1007::/home/bob:/bin/sh\nkim:x:1002:1002::/:/bin/sh\n");
    input.self = 4011;
    input.session = "0011223344556677";
    show("stat-before", "900.00");
    input.earlier = process_table(machine.files());
    show("stat-after", "901.00");
  }
  void put(const std::string& path, const std::string& text) const { machine.put(path, text); }
  void remove(int64_t pid) const {
    for (const char* file : {"/stat", "/cmdline", "/status"})
      REQUIRE(machine.files().remove("/proc/" + std::to_string(pid) + file).ok());
  }
  HostLook look() const { return look_first(machine.files(), input); }
  // The only reason.
  BusyReason reason() const {
    const auto busy = look().busy;
    REQUIRE(busy.size() == 1);
    return busy[0];
  }

 private:
  void show(const std::string& file, const std::string& uptime) const {
    put("/proc/uptime", uptime + " 1.00\n");
    for (const std::string& line : split_lines(field_input(name, file)))
      put("/proc/" + line.substr(0, line.find(' ')) + "/stat", line + "\n");
    for (const std::string& line : split_lines(field_input(name, "owners"))) {
      const auto words = split_words(line);
      std::string cmdline;
      for (size_t at = 2; at < words.size(); ++at) cmdline += words[at] + std::string(1, '\0');
      put("/proc/" + words[0] + "/cmdline", cmdline);
      put("/proc/" + words[0] + "/status", "Name:\tx\nUid:\t" + words[1] + "\t" + words[1] + "\n");
    }
  }
};

constexpr int64_t kFirstRank = 20000, kRanks = 64;

FIELD_CASE("full-load-is-not-busy") {
  const Recorded host("full-load-is-not-busy", 128, 64, "64.00");
  const BusyReason reason = host.reason();
  CHECK(reason.kind == Busy::load);
  CHECK(reason.pids.size() == kRanks);
  CHECK(reason.pids.count(kFirstRank) == 1);
  CHECK(has(reason.text, "bob"));
  CHECK(has(reason.text, "ring"));
  CHECK(host.look().not_looked_at.empty());
}

FIELD_CASE(
    "full-load-is-not-busy: one rank of 64 cores is noted, and so is the load of a job that has ended") {
  const Recorded host("full-load-is-not-busy", 128, 64, "3.00");
  for (int64_t rank = kFirstRank + 1; rank < kFirstRank + kRanks; ++rank) host.remove(rank);
  CHECK(host.look().busy.empty());
  REQUIRE(host.look().notes.size() == 1);
  CHECK(has(host.look().notes[0], "bob"));
  host.remove(kFirstRank);
  CHECK(host.look().busy.empty());
  CHECK(host.look().notes.empty());
  host.put("/proc/loadavg", "64.00 64.00 64.00 3/300 100\n");
  CHECK(host.look().busy.empty());
  CHECK(host.look().notes.size() == 1);
}

FIELD_CASE("full-load-is-not-busy: what was used before the look does not count") {
  Recorded host("full-load-is-not-busy", 128, 64, "3.00");
  // What looks for parents only reads no command line.
  for (const auto& [pid, one] : process_tree(host.machine.files()).all) CHECK(one.argv.empty());
  host.input.earlier = process_table(host.machine.files());
  host.put("/proc/uptime", "902.00 1.00\n");
  CHECK(host.look().busy.empty());
  host.input.earlier = {};  // never taken
  CHECK(host.look().busy.empty());
  CHECK(host.look().not_looked_at.size() == 1);
}

FIELD_CASE("second-operator-unseen") {
  const Recorded host("second-operator-unseen", 2, 2, "0.30");
  host.put("/proc/700/loginuid", "1002");
  const BusyReason reason = host.reason();
  CHECK(reason.kind == Busy::measurement);
  CHECK(reason.pids == std::set<int64_t>{753});
  for (const char* part : {"pid 700", "root", "kim", "2026-09-"}) CHECK(has(reason.text, part));
  CHECK_FALSE(has(reason.text, "4010"));  // its own
}

FIELD_CASE("second-operator-unseen: an agent that begins counts if it has the lock, and an old one always") {
  Recorded host("second-operator-unseen", 2, 2, "0.30");
  host.remove(753);
  CHECK(host.look().busy.empty());
  host.input.holder = HostClaim::Holder{701, 0};
  CHECK(host.reason().kind == Busy::measurement);
  CHECK(has(host.reason().text, "pid 700"));
  host.input.holder = HostClaim::Holder{4011, 0};  // of this session, before the connection was lost
  CHECK(host.look().busy.empty());
  host.input.holder = HostClaim::Holder{};
  CHECK(host.reason().kind == Busy::measurement);
  host.input.holder.reset();
  const std::string old("/dev/shm/.muster.REJaRT/muster-agent\0measure\0--stdin\0--node\0node03\0", 67);
  host.put("/proc/700/cmdline", old);
  CHECK(host.reason().kind == Busy::measurement);
  CHECK(host.reason().pids.count(700) == 1);
}

FIELD_CASE("second-operator-unseen: from a descriptor of another program, and from a file on disk") {
  const Recorded host("second-operator-unseen", 2, 2, "0.30");
  const Files files = host.machine.files();
  REQUIRE(files.symlink("/memfd:muster (deleted)", "/proc/753/exe").ok());
  CHECK(host.reason().pids == std::set<int64_t>{753});
  REQUIRE(files.remove("/proc/753/exe").ok());
  REQUIRE(files.symlink("/tmp/.muster.x/program (deleted)", "/proc/753/exe").ok());
  CHECK(host.reason().pids == std::set<int64_t>{753});
  REQUIRE(files.remove("/proc/753/exe").ok());
  REQUIRE(files.symlink("/memfd:other (deleted)", "/proc/753/exe").ok());
  CHECK(host.look().busy.empty());
}

FIELD_CASE("full-load-is-not-busy: the command line of an agent hides no other user's load") {
  Recorded host("full-load-is-not-busy", 128, 64, "64.00");
  const std::string session = "0011223344556677";
  const std::string forged =
      std::string("muster-agent\0measure\0--stdin\0--session\0", 39) + session + std::string(1, '\0');
  host.put("/proc/4011/status", "Name:\tmuster-agent\nUid:\t1000\t1000\n");
  host.put("/proc/" + std::to_string(kFirstRank) + "/cmdline", forged);
  CHECK(host.reason().pids.count(kFirstRank) == 1);  // also with the id of this session
  host.input.session = "8899aabbccddeeff";
  CHECK(host.reason().pids.count(kFirstRank) == 1);
  for (const char* believed : {"0", "1000"}) {
    host.put("/proc/" + std::to_string(kFirstRank) + "/status", std::string("Uid:\t") + believed + "\n");
    CHECK(host.reason().pids.count(kFirstRank) == 0);
  }
}

FIELD_CASE("load-average-of-the-host") {
  const Recorded host("load-average-of-the-host", 128, 64, "120.00");
  host.put("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3\n");
  CHECK(host.look().share.cores == 4);
  CHECK(host.look().busy.empty());
  CHECK(host.look().notes.size() == 1);
  // A neighbour: on other processors, and then on these.
  const std::string neighbour = "77 (train) R 1 77 77 0 -1 4194304 0 0 0 0 100 0 0 0 20 0 1 0 90020 0 0\n";
  host.put("/proc/77/stat", neighbour);
  host.put("/proc/77/cmdline", "./train");
  host.put("/proc/77/status", "Name:\ttrain\nUid:\t1007\t1007\nCpus_allowed_list:\t64-67\n");
  CHECK(host.look().busy.empty());
  host.put("/proc/77/status", "Name:\ttrain\nUid:\t1007\t1007\nCpus_allowed_list:\t2-5\n");
  CHECK(host.reason().pids == std::set<int64_t>{77});
}

std::string own_name(const char* what) {
  return std::string("muster-test-") + what + "-" + std::to_string(::getpid());
}

// A socket that has an abstract name and does not listen.
int bound(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  return fd;
}

FIELD_CASE("lock-file-of-another-user") {
  const std::string name = own_name("claim");
  HostClaim second(name);
  {
    HostClaim first(name);
    const auto taken = first.take();
    REQUIRE(taken.ok());
    CHECK_FALSE(taken->has_value());
    CHECK(first.held());
    CHECK(first.take().ok());  // has it already
    const auto refused = second.take();
    REQUIRE(refused.ok());
    REQUIRE(refused->has_value());
    CHECK((*refused)->pid == ::getpid());
    CHECK((*refused)->uid == ::getuid());
    CHECK_FALSE(second.held());
  }
  REQUIRE(second.take().ok());
  CHECK(second.held());
}

FIELD_CASE("lock-file-of-another-user: of many at the same moment, one wins") {
  constexpr size_t kMany = 8;
  const std::string name = own_name("race");
  std::atomic<int> winners = 0, named = 0;
  std::atomic<size_t> ready = 0;
  std::vector<std::unique_ptr<HostClaim>> claims;
  for (size_t n = 0; n < kMany; ++n) claims.push_back(std::make_unique<HostClaim>(name));
  std::vector<std::thread> threads;
  for (auto& claim : claims)
    threads.emplace_back([&, one = claim.get()] {
      ++ready;
      while (ready < kMany) std::this_thread::yield();
      const auto taken = one->take();
      if (taken.ok() && !taken->has_value()) ++winners;
      if (taken.ok() && taken->has_value() && (*taken)->pid == ::getpid()) ++named;
    });
  for (auto& thread : threads) thread.join();
  CHECK(winners == 1);
  CHECK(named == kMany - 1);
}

FIELD_CASE("lock-file-of-another-user: who takes the name and does not respond is named as well") {
  const std::string name = own_name("mute");
  const int fd = bound(name);
  const auto refused = HostClaim(name).take();
  ::close(fd);
  REQUIRE(refused.ok());
  REQUIRE(refused->has_value());
  CHECK((*refused)->pid == ::getpid());
  CHECK((*refused)->uid == ::getuid());
}

FIELD_CASE("lock-file-of-another-user: a name that looks like a line of the kernel names no process") {
  const std::string name = own_name("forged");
  const int victim = bound(own_name("victim")), holder = bound(name);
  const std::string link = Files().read_link("/proc/self/fd/" + std::to_string(victim)).value();
  const std::string inode = link.substr(link.find('[') + 1, link.find(']') - link.find('[') - 1);
  const int forged = bound("x\n0: 2 0 0 1 1 " + inode + " @" + name);
  const auto refused = HostClaim(name).take();
  for (const int fd : {victim, holder, forged}) ::close(fd);
  REQUIRE(refused.ok());
  REQUIRE(refused->has_value());
  CHECK((*refused)->pid == 0);
  CHECK_FALSE((*refused)->uid.has_value());
}

}  // namespace
}  // namespace muster::tests
