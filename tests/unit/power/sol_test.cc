// Consoles over IPMI: a stand-in for `ipmitool sol activate`, and the real one in front of ipmi_sim.
#include "controller/power/sol.h"

#include <condition_variable>
#include <filesystem>

#include "controller/power/logins.h"
#include "kernels/common/connection.h"
#include "tests/catch.h"
#include "tests/fakes/ipmi_sim.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// What was heard, and a wait for it.
struct Ear {
  std::mutex mutex;
  std::condition_variable news;
  std::map<std::string, std::string> said;
  SolReader::OnData received() {
    return [this](const std::string& node, const std::string& bytes) {
      std::lock_guard lock(mutex);
      said[node] += bytes;
      news.notify_all();
    };
  }
  bool hears(const std::string& node, const std::string& text, int times = 1) {
    std::unique_lock lock(mutex);
    return news.wait_for(lock, std::chrono::seconds(60), [&] {
      int found = 0;
      for (size_t at = 0; (at = said[node].find(text, at)) != std::string::npos; at += text.size()) ++found;
      return found >= times;
    });
  }
};

// ipmitool 1.8.19 in front of a BMC: wants a terminal, ends at "~.", fails as recorded. Its manners are
// files: `busy`, `full`, `no17`, `wrong`, `drops` (ends by itself after the first words), `then_full`.
struct FakeSol {
  TempDir dir;
  FakeSol() {
    dir.write("ipmitool", R"sh(#!/bin/sh
d=${0%/*}
echo "$@" >>"$d/calls"
echo "$IPMITOOL_PASSWORD" >>"$d/passwords"
[ -t 0 ] && [ -t 1 ] || { echo "no terminal" >>"$d/calls"; exit 1; }
echo "Loading IANA PEN Registry..."
case "$*" in *"-C 17"*) [ ! -e "$d/no17" ] || {
  echo "Error in open session response message : invalid authentication algorithm"
  echo "Error: Unable to establish IPMI v2 / RMCP+ session"; exit 1; } ;; esac
[ ! -e "$d/wrong" ] || { echo "> RAKP 2 HMAC is invalid"; echo "Error: Unable to establish IPMI v2 / RMCP+ session"; exit 1; }
[ ! -e "$d/full" ] || { rm "$d/full"; echo "Error in open session response message : insufficient resources for session"; echo "Error: Unable to establish IPMI v2 / RMCP+ session"; exit 1; }
[ ! -e "$d/busy" ] || { rm "$d/busy"; echo "Info: SOL payload already active on another session"; exit 1; }
stty raw -echo
printf '[SOL Session operational.  Use ~? for help]\r\n[    1.0] Kernel panic - not syncing: %s\r\n' "$(cat "$d/calls" | wc -l)"
[ ! -e "$d/drops" ] || { rm "$d/drops"; [ ! -e "$d/then_full" ] || mv "$d/then_full" "$d/full"; exit 0; }
dd bs=1 count=2 2>/dev/null >"$d/typed"
)sh");
    std::filesystem::permissions(dir.path("ipmitool"), std::filesystem::perms(0755));
  }
  std::string program() const { return dir.path("ipmitool"); }
  static PowerTarget target() {
    PowerTarget t;
    t.node = "n1";
    t.address = "10.20.1.11:6230";
    t.user = "admin";
    t.password = "very secret";
    return t;
  }
  size_t count(const std::string& file) const {
    const std::string text = std::filesystem::exists(dir.path(file)) ? dir.read(file) : "";
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

}  // namespace

TEST_CASE("a console is heard, its password is in no argument, and it is hung up without a key typed",
          "[power][ipmi][sol]") {
  FakeSol bmc;
  Ear ear;
  {
    SolReader reader(ear.received(), bmc.program());
    reader.want({{"n1", FakeSol::target()}});
    REQUIRE(ear.hears("n1", "not syncing: 1\r\n"));
  }
  CHECK(bmc.count("calls") == 1);
  CHECK(bmc.dir.read("calls").find("very secret") == std::string::npos);
  CHECK(bmc.dir.read("calls").find("-H 10.20.1.11 -p 6230 -U admin -E -C 17") != std::string::npos);
  CHECK(bmc.dir.read("passwords") == "very secret\n");
  CHECK(bmc.dir.read("typed") == "~.");  // for ipmitool, which passes none of it on
}

TEST_CASE("a suite that is not offered, a session that ends and one that is in use: tried again",
          "[power][ipmi][sol]") {
  FakeSol bmc;
  const std::string manner = GENERATE("no17", "busy", "drops");
  CAPTURE(manner);
  bmc.dir.write(manner, "");
  Ear ear;
  SolReader reader(ear.received(), bmc.program(), 0);
  reader.want({{"n1", FakeSol::target()}});
  REQUIRE(ear.hears("n1", "not syncing: 2\r\n"));
}

TEST_CASE("a login that was refused twice is not tried again, and another password is",
          "[power][ipmi][sol]") {
  FakeSol bmc;
  bmc.dir.write("wrong", "");
  Ear ear;
  SolReader reader(ear.received(), bmc.program(), 0);
  auto target = FakeSol::target();
  reader.want({{"n1", target}});
  REQUIRE(ear.hears("n1", "Unable to establish", 2));
  // Another node's session comes and goes meanwhile: the reader had its turns.
  auto other = target;
  other.node = "n2";
  reader.want({{"n1", target}, {"n2", other}});
  REQUIRE(ear.hears("n2", "Unable to establish", 2));
  reader.want({{"n1", target}});
  CHECK(bmc.count("calls") == 4);
  CHECK(bmc.dir.read("calls").find("-C 3 -L ADMINISTRATOR -N 5") != std::string::npos);
  std::filesystem::remove(bmc.dir.path("wrong"));
  target.password = "right";
  reader.want({{"n1", target}});
  REQUIRE(ear.hears("n1", "Kernel panic"));
  CHECK(bmc.count("calls") == 5);
}

TEST_CASE("a console's failed logins and the driver's are two together", "[power][ipmi][sol]") {
  FakeSol bmc;
  bmc.dir.write("wrong", "");
  Ear ear;
  SolReader reader(ear.received(), bmc.program(), 0);
  auto target = FakeSol::target();
  target.logins = std::make_shared<Logins>([] { return 100 * kMinute; });
  target.logins->failed(target);
  target.logins->failed(target);
  // Another account's session comes and goes meanwhile: the reader had its turns.
  auto other = target;
  other.node = "n2";
  other.user = "other";
  reader.want({{"n1", target}, {"n2", other}});
  REQUIRE(ear.hears("n2", "Unable to establish"));
  CHECK(bmc.dir.read("calls").find("-U admin") == std::string::npos);
}

TEST_CASE("a suite that is not offered counts once, however often the BMC starts again",
          "[power][ipmi][sol]") {
  FakeSol bmc;
  for (const char* manner : {"no17", "drops", "then_full"}) bmc.dir.write(manner, "");
  Ear ear;
  SolReader reader(ear.received(), bmc.program(), 0);
  reader.want({{"n1", FakeSol::target()}});
  // 17 no, 3 operational until it drops, 3 no room, 17 no, 3 operational.
  REQUIRE(ear.hears("n1", "not syncing: 5\r\n"));
}

TEST_CASE("a program that is not there does no harm", "[power][ipmi][sol]") {
  Ear ear;
  SolReader reader(ear.received(), "/nowhere/ipmitool", 0);
  reader.want({{"n1", FakeSol::target()}});
  reader.want({});
  CHECK(ear.said.empty());
}

TEST_CASE("the real ipmitool over ipmi_sim: what the machine says is heard", "[power][ipmi][sol]") {
  auto machine = kernels::Listener::open("127.0.0.1", 0);
  REQUIRE(machine.ok());
  testing::IpmiSim sim("123456789abcdef0123456789abcdef0",
                       "  sol \"tcp:127.0.0.1:" + std::to_string(machine->port()) + "\" 115200\n");
  const int port =
      ::accept(machine->fd(), nullptr, nullptr);  // ipmi_sim connects to the machine's serial port
  REQUIRE(port >= 0);
  PowerTarget target;
  target.node = "n1";
  target.address = sim.address();
  target.user = testing::IpmiSim::kUser;
  target.password = testing::IpmiSim::kPassword;
  Ear ear;
  SolReader reader(ear.received());
  reader.want({{"n1", target}});  // suite 17, which it does not have, then 3
  REQUIRE(ear.hears("n1", "[SOL Session operational"));
  const std::string panic = "[    2.7] Kernel panic - not syncing: Attempted to kill init!\r\n";
  REQUIRE(::write(port, panic.data(), panic.size()) == static_cast<ssize_t>(panic.size()));
  CHECK(ear.hears("n1", "Attempted to kill init!"));
  ::close(port);
}
