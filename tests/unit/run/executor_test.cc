#include "controller/executor/executor.h"

#include <algorithm>
#include <memory>
#include <set>

#include "base/json_at.h"
#include "controller/executor/node_changes.h"
#include "controller/run/narrow.h"
#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

using testing::action;
using Bench = testing::RunBench;

}  // namespace

TEST_CASE("a result of unknown form is a failure, not the end of the controller", "[run]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "b1");
  REQUIRE_FALSE(b.offered("n1").empty());
  wire::Event e;
  e.order = b.offered("n1");
  e.kind = "finished";
  e.data = {{"ok", "yes"}, {"message", 7}};
  b.executor->on_event("n1", e);
  b.reactor.advance(100);
  CHECK(b.row("n1").state != NodeState::accepted);
}

TEST_CASE("an agent's message of any length is in its node's row with its start and a mark", "[run]") {
  const size_t size = GENERATE(size_t{100}, size_t{1} << 20);
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "b1");
  REQUIRE_FALSE(b.offered("n1").empty());
  wire::Event e;
  e.order = b.offered("n1");
  e.kind = "finished";
  e.data = {{"ok", false}, {"code", "invalid"}, {"message", std::string(size, 'x')}};
  b.executor->on_event("n1", e);
  b.reactor.advance(100);
  REQUIRE(b.row("n1").state == NodeState::quarantined);
  const std::string reason = b.row("n1").reason;
  CHECK(reason.size() < 2100);
  CHECK(reason.find(std::string(100, 'x')) != std::string::npos);
  CHECK(reason.ends_with("...") == (size > 2000));
  const auto journal = b.store.journal(1).value();
  for (const auto& row : journal) CHECK(text_at(row.data, "message").size() < 2100);
}

TEST_CASE("a fault of muster in a node's turn ends that node, not the run", "[run]") {
  Bench b;
  for (const char* node : {"n1", "n2"}) {
    b.add(action(node, "netboot", ActionKind::netboot));
    b.add(action(node, "inventory", ActionKind::inventory), {{std::string(node) + "/netboot"}});
  }
  b.faulty = "n1";
  b.start();
  b.reactor.advance(1000);
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.row("n1").reason.find("internal error") != std::string::npos);
  CHECK(b.powered == std::vector<std::string>{"n1", "n2"});
  CHECK(b.row("n2").state != NodeState::quarantined);
  b.executor->cancel("test");
  b.reactor.advance(1000);
  CHECK_FALSE(b.executor->active());
}

TEST_CASE("a node is forgotten only outside a run", "[run]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "b1");
  CHECK_FALSE(b.executor->forget("n1"));
  b.finish("n1");
  b.reactor.advance(1000);
  REQUIRE(b.row("n1").state == NodeState::accepted);
  CHECK(b.executor->forget("n1"));
  CHECK(b.executor->node_row("n1").state == NodeState::unknown);
}

TEST_CASE("a node goes from netboot to accepted, every intent before its effect", "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.add(action("n1", "image", ActionKind::image));
  b.add(action("n1", "boot", ActionKind::boot_disk, {{"digest", "sha256:x"}}));
  b.add(action("n1", "accept", ActionKind::check));
  b.plan.config_digests["n1"] = "sha256:config";
  b.start();
  CHECK(b.powered == std::vector<std::string>{"n1"});
  CHECK(b.row("n1").state == NodeState::installing);
  CHECK(b.store.journal(1)->front().event == "intent");
  b.hello("n1", wire::Mode::ram, "boot1");
  CHECK(b.offered("n1") == b.id("n1/image", 1));
  b.finish("n1");
  CHECK(b.offered("n1") == b.id("n1/boot", 1));
  b.finish("n1");
  CHECK(b.offered("n1").empty());
  b.hello("n1", wire::Mode::installed, "boot2", "sha256:x");
  CHECK(b.offered("n1") == b.id("n1/accept", 1));
  b.finish("n1");
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.row("n1").config_digest == "sha256:config");
  CHECK(b.row("n1").image_digest == "sha256:x");
}

TEST_CASE("a verdict against a node quarantines it and holds no other", "[run]") {
  Bench b;
  for (const char* node : {"n1", "n2"}) {
    Action check = action(node, "accept", ActionKind::check);
    check.max_attempts = 1;
    b.add(check);
  }
  b.verdict = fail(Code::failed, "dgemm: 1 GFLOP/s of 5");
  b.start();
  b.hello("n1", wire::Mode::installed, "a");
  b.hello("n2", wire::Mode::installed, "b");
  b.finish("n1");
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.row("n1").reason.find("dgemm") != std::string::npos);
  b.verdict = Ok{};
  b.finish("n2");
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::partial);
  CHECK(b.executor->why("n1")["reason"].get<std::string>().find("dgemm") != std::string::npos);
}

TEST_CASE("a busy BMC is called again; one whose answer is lost is looked at first", "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  SECTION("busy") {
    b.power_answers = {fail(Code::unavailable, "503"), fail(Code::unavailable, "503")};
    b.start();
    CHECK(b.powered.size() == 1);
    b.reactor.advance(kMinute);
    CHECK(b.powered.size() == 3);
    CHECK(b.looks == 0);
  }
  SECTION("unknown, and power is on") {
    b.power_answers = {fail(Code::timeout, "no answer")};
    b.start();
    b.reactor.advance(30 * kSecond);
    CHECK(b.looks == 1);
    CHECK(b.powered.size() == 1);
    b.hello("n1", wire::Mode::ram, "boot1");
    CHECK(b.ended.size() == 1);
  }
  SECTION("unknown, and power is off") {
    b.power_answers = {fail(Code::timeout, "no answer")};
    b.power_state = PowerState::off;
    b.start();
    b.reactor.advance(30 * kSecond);
    CHECK(b.powered.size() == 2);
  }
  SECTION("never on, whatever the call") {
    b.power_answers = std::vector<Status>(9, fail(Code::timeout, "the machine is not on"));
    b.power_state = PowerState::off;
    b.start();
    b.reactor.advance(kMinute);
    CHECK(b.powered.size() == 3);
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.row("n1").reason.find("still off") != std::string::npos);
  }
  SECTION("refused for good") {
    b.power_answers = {fail(Code::denied, "wrong password")};
    b.start();
    b.reactor.advance(kSecond);
    CHECK(b.powered.size() == 1);
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.row("n1").reason.find("wrong password") != std::string::npos);
  }
}

TEST_CASE("a node that loses power while it is imaged is netbooted and goes on", "[run]") {
  Bench b;
  b.add(action("n1", "image", ActionKind::image));
  b.plan.actions[0].timeout = 3600 * kSecond;
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  CHECK(b.offered("n1") == b.id("n1/image", 1));
  b.power_state = PowerState::off;
  b.reactor.advance(kMinute);
  CHECK(b.powered.size() == 1);
  CHECK(b.offered("n1").empty());
  b.hello("n1", wire::Mode::ram, "boot2");
  CHECK(b.offered("n1") == b.id("n1/image", 2));
  b.finish_order("n1", b.id("n1/image", 1), true, "", Json::object());  // late word of the lost attempt
  CHECK(b.ended.empty());
  b.finish("n1");
  CHECK(b.ended.size() == 1);
}

TEST_CASE(
    "a node whose firmware tests for a quarter of an hour is powered once, and `why` shows the deadline",
    "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.plan.actions.back().timeout = b.plan.limits.netboot = 20 * kMinute;
  SECTION("the BMC answered") {}
  SECTION("its answer was lost") { b.power_answers = {fail(Code::timeout, "no answer")}; }
  b.start();
  const TimeMs begun = b.reactor.now();
  b.reactor.advance(15 * kMinute);
  CHECK(b.powered.size() == 1);
  const TimeMs until = b.executor->why("n1")["wait"]["until"].get<TimeMs>();
  CHECK(until > begun + 19 * kMinute);
  CHECK(until <= begun + 20 * kMinute);
  b.hello("n1", wire::Mode::ram, "boot1");
  CHECK(b.ended.size() == 1);
}

TEST_CASE("an order that has to netboot its node first has its own time when the RAM system is there",
          "[run]") {
  Bench b;
  b.plan.limits.netboot = 20 * kMinute;
  b.add(action("n1", "boot", ActionKind::boot_disk, {{"digest", "sha256:x"}}));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.start();
  b.hello("n1", wire::Mode::installed, "boot0",
          "sha256:old");            // not what was installed: through the RAM system again
  b.power_state = PowerState::off;  // it stops in order
  b.reactor.advance(10 * kSecond);
  b.power_state = PowerState::on;
  REQUIRE(b.powered.size() == 1);
  b.reactor.advance(15 * kMinute);
  b.hello("n1", wire::Mode::ram, "boot1");
  REQUIRE(b.offered("n1") == b.id("n1/boot", 2));
  b.finish("n1");
  b.reactor.advance(15 * kMinute);  // 31 min after the attempt began
  CHECK(b.powered.size() == 1);
  CHECK(b.ended.empty());
  b.hello("n1", wire::Mode::installed, "boot2", "sha256:x");
  CHECK(b.row("n1").state == NodeState::accepted);
}

TEST_CASE("a controller that crashes while a node restarts does not switch it off in its firmware's tests",
          "[run]") {
  Bench b;
  b.add(action("n1", "boot", ActionKind::boot_disk, {{"digest", "sha256:x"}}));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  b.finish("n1");
  b.executor.reset();
  b.store.crash(MemStore::Unsynced::lost);
  b.offers.clear();
  b.live();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(15 * kMinute);
  CHECK(b.powered.empty());
  b.hello("n1", wire::Mode::installed, "boot2", "sha256:x");
  CHECK(b.row("n1").state == NodeState::accepted);
}

TEST_CASE(
    "a power cycle that a new controller goes on with is the same power-on, one that it begins is another",
    "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.plan.actions[0].max_attempts = 2;
  const auto token = [&](const std::string& digest) {
    b.store.write({TokenRow{digest, "n1", "join", b.reactor.now() + 60 * kMinute, "key", "cert"}},
                  [](Status) {});
  };
  token("of an earlier run");
  b.start();
  CHECK(b.store.join_tokens("n1")->empty());  // gone with the intent
  token("of this power-on");
  b.reactor.advance(kMinute);
  b.executor.reset();
  b.store.crash(MemStore::Unsynced::lost);
  b.live();
  b.rearm_answers = {fail(Code::failed, "disk I/O error")};
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(kMinute);
  CHECK(b.rearmed == std::vector<std::string>{"n1", "n1"});  // asked again until it is armed
  CHECK(b.armed.count("n1") == 1);
  CHECK(b.store.join_tokens("n1")->size() == 1);
  b.reactor.advance(20 * kMinute);  // a second attempt begins
  CHECK(b.executor->log().of("n1/netboot").attempt == 2);
  CHECK(b.store.join_tokens("n1")->empty());
}

TEST_CASE("a place for a power cycle that another node holds does not use up a node's time to boot",
          "[run]") {
  Bench b;
  b.plan.limits.parallel_netboot = 1;
  b.plan.limits.netboot = 5 * kMinute;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.add(action("n2", "image", ActionKind::image));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.plan.actions[1].timeout = 60 * kMinute;
  b.start();
  b.hello("n2", wire::Mode::installed, "boot1");  // it has to be netbooted, and n1 holds the only place
  b.reactor.advance(10 * kMinute);
  CHECK(b.powered == std::vector<std::string>{"n1"});
  CHECK(b.executor->log().of("n2/image").attempt == 2);
  b.hello("n1", wire::Mode::ram, "boot9");
  b.reactor.advance(4 * kMinute);
  CHECK(b.powered == std::vector<std::string>{"n1", "n2"});
  CHECK(b.executor->log().of("n2/image").attempt == 2);
}

TEST_CASE("the RAM system of a repeated netboot is waited for as long as the spec says", "[run]") {
  Bench b;
  b.plan.limits.netboot = 3 * kMinute;
  b.add(action("n1", "image", ActionKind::image));
  b.plan.actions[0].timeout = 60 * kMinute;
  b.plan.actions[0].max_attempts = 3;
  b.start();
  b.hello("n1", wire::Mode::installed, "boot0");  // netbooted again: it is not in the RAM system
  b.power_state = PowerState::off;                // and stops in order
  b.reactor.advance(10 * kSecond);
  b.power_state = PowerState::on;
  REQUIRE(b.powered.size() == 1);
  b.reactor.advance(2 * kMinute);
  CHECK(b.powered.size() == 1);
  b.reactor.advance(kMinute);
  CHECK(b.powered.size() == 2);
}

TEST_CASE("a network that is away for a minute loses nothing", "[run]") {
  Bench b;
  b.add(action("n1", "image", ActionKind::image));
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  b.reactor.advance(70 * kSecond);
  CHECK(b.executor->why("n1")["wait"]["reason"] == "the agent is silent");
  b.executor->on_contact("n1");
  b.finish("n1");
  CHECK(b.powered.empty());
  CHECK(b.ended.size() == 1);
}

TEST_CASE("after a crash an order is on offer again under the same id", "[run]") {
  Bench b;
  b.add(action("n1", "image", ActionKind::image));
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  b.executor.reset();
  b.store.crash(MemStore::Unsynced::lost);
  b.offers.clear();
  b.live();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(100);
  CHECK(b.offered("n1") == b.id("n1/image", 1));
  b.finish("n1");
  CHECK(b.executor->log().of("n1/image").state == ActionState::succeeded);
  CHECK(b.executor->resume(1).error().code == Code::conflict);
}

TEST_CASE("the number of a run that is given out again is not the name of its old orders", "[run]") {
  // A new database, or an older copy of it: the agents remember what became of the orders they
  // had.
  std::vector<std::string> offered;
  for (const DurationMs later : {DurationMs{0}, 40 * kMinute}) {
    Bench b;
    b.reactor.advance(later);
    b.add(action("n1", "configure", ActionKind::steps));
    b.start();
    b.hello("n1", wire::Mode::installed, "b1");
    CHECK(b.executor->run_id() == 1);
    offered.push_back(b.offered("n1"));
  }
  CHECK_FALSE(offered[0].empty());
  CHECK(offered[0] != offered[1]);
}

TEST_CASE("a run is not taken up again after a long absence of the controller", "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.add(action("n1", "image", ActionKind::image));
  b.plan.actions.back().timeout = 300 * kMinute;
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  REQUIRE_FALSE(b.offered("n1").empty());
  const auto comes_back = [&b](DurationMs after) {
    b.executor.reset();
    b.offers.clear(), b.powered.clear();
    b.reactor.advance(after);
    b.live();
    REQUIRE(b.executor->resume(1).ok());
    b.hello("n1", wire::Mode::ram, "boot1");
  };
  SECTION("nothing more is done to any node, and the run has ended") {
    comes_back(61 * kMinute);
    b.reactor.advance(10 * kMinute);
    CHECK(b.offers.empty());
    CHECK(b.powered.empty());
    CHECK(b.looks == 0);
    CHECK_FALSE(b.executor->active());
    CHECK(b.store.run(1)->state == RunState::cancelled);
    CHECK(b.row("n1").reason.find("the controller was away for ") == 0);
    CHECK(b.executor->resume(1).error().code == Code::conflict);
    bool started = false;  // and another may begin
    b.executor->start(b.plan, "test", [&](Result<int64_t> id) { started = id.ok() && *id == 2; });
    b.reactor.advance(100);
    CHECK(started);
  }
  SECTION("a shorter one is no reason to stop") {
    comes_back(30 * kMinute);
    CHECK(b.offered("n1") == b.id("n1/image", 1));
  }
  SECTION("nor is work that says nothing for hours while the controller is there") {
    for (int i = 0; i < 8 * 60; ++i) {
      b.executor->on_contact("n1");
      b.reactor.advance(kMinute / 2);
    }
    REQUIRE(b.executor->active());
    comes_back(kMinute);
    CHECK(b.offered("n1") == b.id("n1/image", 1));
  }
}

TEST_CASE("a run is not taken up again by a clock that was set back", "[run]") {
  Bench old;
  old.add(action("n1", "netboot", ActionKind::netboot));
  old.reactor.advance(24 * 60 * kMinute);
  old.start();
  Bench b;  // a day earlier
  std::vector<Write> rows{*old.store.run(1), *old.store.plan(old.store.run(1)->plan_digest)};
  const auto journal = *old.store.journal(1);
  for (const auto& row : journal) rows.push_back(row);
  b.store.write(rows, [](Status) {});
  b.reactor.advance(100);
  b.live();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(10 * kMinute);
  CHECK(b.powered.empty());
  CHECK(b.store.run(1)->state == RunState::cancelled);
  CHECK(b.row("n1").reason.find("the controller's clock is ") == 0);
}

TEST_CASE("after a crash in a power cycle the power state is looked at before it is touched", "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.start();
  b.executor.reset();
  b.live();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(kSecond);
  CHECK(b.looks == 1);
  CHECK(b.powered.size() == 1);
  b.hello("n1", wire::Mode::ram, "boot1");
  CHECK(b.ended.size() == 1);
}

namespace {

// gpu03 runs its installed system, and its agent answers; the plan reinstalls it.
struct Running : Bench {
  Running() {
    add(action("gpu03", "netboot", ActionKind::netboot));
    live();
    hello("gpu03", wire::Mode::installed, "boot1", "sha256:old");
  }
  void go() {
    executor->start(plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    reactor.advance(100);
  }
  std::string waits_for() { return executor->why("gpu03")["wait"]["reason"].get<std::string>(); }
};

}  // namespace

TEST_CASE("an installed system that runs is stopped in order before its power is cycled", "[run]") {
  Running b;
  b.go();
  CHECK(b.powered.empty());
  REQUIRE(b.offered("gpu03") == b.id("gpu03/netboot", 1) + "-stop");
  CHECK(b.offers["gpu03"].kind == wire::OrderKind::power_off);
  CHECK(b.waits_for() == "shutting down gpu03, for up to 3 min");
  b.finish("gpu03");  // the agent's word is not the end of it
  b.reactor.advance(20 * kSecond);
  CHECK(b.powered.empty());
  b.power_state = PowerState::off;
  b.reactor.advance(10 * kSecond);
  CHECK(b.powered == std::vector<std::string>{"gpu03"});
  CHECK(b.offered("gpu03").empty());  // the RAM system's agent must not find it
  b.hello("gpu03", wire::Mode::ram, "boot2");
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
}

TEST_CASE("a system that does not stop is switched off when its time is over", "[run]") {
  Running b;
  SECTION("it stays on") {}
  SECTION("the BMC does not say") { b.power_state = fail(Code::timeout, "no answer"); }
  SECTION("it is unreachable") { b.power_state = PowerState::unknown; }
  b.go();
  b.reactor.advance(3 * kMinute - kSecond);
  CHECK(b.powered.empty());
  b.reactor.advance(2 * kSecond);
  CHECK(b.powered == std::vector<std::string>{"gpu03"});
  CHECK(b.offered("gpu03").empty());
  // What the stop took is not taken from the power cycle.
  b.reactor.advance(8 * kMinute);
  b.hello("gpu03", wire::Mode::ram, "boot2");
  CHECK(b.ended.size() == 1);
}

TEST_CASE("no node is stopped in order that has nothing to lose or is unreachable", "[run]") {
  Bench b;
  b.add(action("gpu03", "netboot", ActionKind::netboot));
  b.live();
  SECTION("never seen") {}
  SECTION("in the RAM system") { b.hello("gpu03", wire::Mode::ram, "boot1"); }
  SECTION("silent") {
    b.hello("gpu03", wire::Mode::installed, "boot1");
    b.reactor.advance(kMinute);
  }
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  b.reactor.advance(100);
  CHECK(b.offered("gpu03").empty());
  CHECK(b.powered == std::vector<std::string>{"gpu03"});
  CHECK(b.looks == 0);
}

TEST_CASE("an orderly stop is ordered once in an attempt, and ends with what it was for", "[run]") {
  Running b;
  SECTION("the BMC is busy afterwards") {
    b.power_answers = {fail(Code::unavailable, "503")};
    b.go();
    b.power_state = PowerState::off;
    b.reactor.advance(5 * kSecond);
    CHECK(b.powered.size() == 1);
    b.executor->on_contact("gpu03");
    b.reactor.advance(kMinute);
    CHECK(b.powered.size() == 2);
    CHECK(b.offered("gpu03").empty());
  }
  SECTION("the run is cancelled") {
    b.go();
    b.executor->cancel("operator");
    b.reactor.advance(kMinute);
    CHECK(b.offered("gpu03").empty());
    CHECK(b.powered.empty());
  }
  SECTION("the machine boots another system meanwhile") {
    b.go();
    b.hello("gpu03", wire::Mode::ram, "boot2");
    CHECK(b.offered("gpu03").empty());
    CHECK(b.powered.size() == 1);
  }
}

TEST_CASE("a controller killed while a system stops goes on from where the machine is", "[run]") {
  Running b;
  b.go();
  REQUIRE(b.offered("gpu03") == b.id("gpu03/netboot", 1) + "-stop");
  b.restart();
  SECTION("it is off") {
    b.power_state = PowerState::off;
    REQUIRE(b.executor->resume(1).ok());
    b.reactor.advance(kSecond);
    CHECK(b.powered.size() == 1);
    CHECK(b.offered("gpu03").empty());
  }
  SECTION("it runs") {
    REQUIRE(b.executor->resume(1).ok());
    for (int i = 0; i < 16; ++i) {
      b.executor->on_contact("gpu03");
      b.reactor.advance(10 * kSecond);
    }
    CHECK(b.powered.empty());
    CHECK(b.offered("gpu03") == b.id("gpu03/netboot", 1) + "-stop");
    b.power_state = PowerState::off;
    b.reactor.advance(10 * kSecond);
    CHECK(b.powered.size() == 1);
  }
  b.hello("gpu03", wire::Mode::ram, "boot2");
  CHECK(b.ended.size() == 1);
}

TEST_CASE("a stage waits for all that stands before its barrier, and for none that is out", "[run]") {
  Bench b;
  for (const char* node : {"n1", "n2", "n3"}) {
    b.add(action(node, "first", ActionKind::steps));
    b.add(action(node, "second", ActionKind::steps));
    b.plan.actions.back().behind = 0;
  }
  b.plan.barriers = {{"n1/first", "n2/first", "n3/first"}};
  b.start();
  for (const char* node : {"n1", "n2", "n3"}) b.hello(node, wire::Mode::installed, "b");
  b.finish("n1");
  CHECK(b.offered("n1") == "");
  CHECK(b.executor->why("n1")["wait"]["reason"] == "waiting for the other nodes");
  SECTION("done") { b.finish("n3"), b.finish("n2"); }
  SECTION("out") {
    b.finish("n3");
    CHECK(b.offered("n3") == "");
    b.executor->quarantine("n2", "by hand");
    b.reactor.advance(100);
  }
  SECTION("done, and the controller was killed before anybody began behind it") {
    b.finish("n2");
    b.restart();
    REQUIRE(b.executor->resume(1).ok());
    b.reactor.advance(100);
    CHECK(b.offered("n1") == "");
    b.finish("n3");
  }
  CHECK(b.offered("n1") == b.id("n1/second", 1));
  CHECK(b.offered("n3") == b.id("n3/second", 1));
}

TEST_CASE("soft dependencies wait for quarantined nodes no longer, hard ones follow them", "[run]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.add(action("n2", "soft", ActionKind::steps), {{"n1/configure", false}});
  b.add(action("n3", "hard", ActionKind::steps), {{"n1/configure", true}});
  b.start();
  b.hello("n2", wire::Mode::installed, "b2");
  CHECK(b.offered("n2").empty());
  CHECK(b.executor->why("n2")["wait"]["awaited"] == "n1: configure");
  b.executor->quarantine("n1", "pulled out");
  b.reactor.advance(kSecond);
  CHECK(b.offered("n2") == b.id("n2/soft", 1));
  CHECK(b.row("n3").state == NodeState::quarantined);
  CHECK(b.row("n3").reason.find("pulled out") != std::string::npos);
}

TEST_CASE("peers that are quarantined are left out of orders that ask for live ones", "[run]") {
  Bench b;
  const Json peers = {{{"name", "n1"}}, {{"name", "n2"}}};
  const Json live = {{"id", "a"}, {"params", {{"peers", peers}, {"peers_live", true}}}};
  const Json all = {{"id", "b"}, {"params", {{"peers", peers}}}};
  b.add(action("n1", "configure", ActionKind::steps));
  b.add(action("n2", "run", ActionKind::check, {{"steps", {live, all}}}), {{"n1/configure", false}});
  b.start();
  b.hello("n2", wire::Mode::installed, "b2");
  b.executor->quarantine("n1", "gone");
  b.reactor.advance(kSecond);
  const Json& steps = b.offers["n2"].params["steps"];
  CHECK(steps[0]["params"] == Json{{"peers", Json::array({Json{{"name", "n2"}}})}});
  CHECK(steps[1]["params"]["peers"].size() == 2);
}

TEST_CASE("a step about the next node is about the next live one", "[run]") {
  const Json ring = {{{"name", "n1"}, {"address", "10.0.0.1"}},
                     {{"name", "n2"}, {"address", "10.0.0.2"}},
                     {{"name", "n3"}, {"address", "10.0.0.3"}}};
  const Json step = {
      {"id", "probe"},
      {"params",
       {{"host", "10.0.0.2"}, {"other", "10.0.0.22 n2x"}, {"file", "/shared/n2"}, {"next_live", true}}}};
  std::set<std::string> dead;
  const auto sent = [&] {
    Json params = {{"steps", Json::array({step})}, {"ring", ring}};
    const RingsOfOrder rings = take_rings(params);
    narrow_order(params, rings, "n1", [&](const std::string& name) { return dead.count(name) > 0; });
    return params;
  };
  CHECK(sent() ==
        Json{{"steps",
              {{{"id", "probe"},
                {"params", {{"host", "10.0.0.2"}, {"other", "10.0.0.22 n2x"}, {"file", "/shared/n2"}}}}}}});
  dead = {"n2"};
  CHECK(sent()["steps"][0]["params"] ==
        Json{{"host", "10.0.0.3"}, {"other", "10.0.0.22 n2x"}, {"file", "/shared/n3"}});
  dead = {"n2", "n3"};
  CHECK(sent()["steps"].empty());
}

TEST_CASE("a declared node that no run was about yet is not waited for", "[run]") {
  // `up --limit n1` of a cluster of three; n3 was accepted before, n2 was never powered.
  const Json ring = {{{"name", "n1"}, {"address", "10.0.0.1"}},
                     {{"name", "n2"}, {"address", "10.0.0.2"}},
                     {{"name", "n3"}, {"address", "10.0.0.3"}}};
  const Json next = {{"id", "ssh"}, {"params", {{"host", "10.0.0.2"}, {"next_live", true}}}};
  const Json peers = {{"id", "series"},
                      {"params", {{"nodes", ring}, {"jobs", {"node", "n2"}}, {"peers_live", true}}}};
  const auto steps_sent = [&](bool third_accepted) {
    Bench b;
    b.add(action("n1", "configure", ActionKind::steps,
                 {{"steps", Json::array({next, peers})}, {"ring", ring}}));
    b.live();
    if (third_accepted) b.executor->set_node("n3", [](NodeRow& row) { row.state = NodeState::accepted; });
    b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    b.reactor.advance(100);
    b.hello("n1", wire::Mode::installed, "b1");
    b.reactor.advance(kSecond);
    REQUIRE(b.offers.count("n1"));
    return b.offers["n1"].params["steps"];
  };
  const Json with_third = steps_sent(true);
  REQUIRE(with_third.size() == 2);
  CHECK(with_third[0]["params"]["host"] == "10.0.0.3");
  CHECK(with_third[1]["params"]["nodes"] == Json::array({ring[0], ring[2]}));
  CHECK(with_third[1]["params"]["jobs"].size() == 1);  // the list's "n2" is the node as well
  const Json alone = steps_sent(false);
  REQUIRE(alone.size() == 1);
  CHECK(alone[0]["params"]["nodes"] == Json::array({ring[0]}));
}

namespace {

// Three nodes, each of which probes the next one.
struct Ring : Bench {
  Ring() {
    const Json ring = {{{"name", "n1"}, {"address", "10.0.0.1"}},
                       {{"name", "n2"}, {"address", "10.0.0.2"}},
                       {{"name", "n3"}, {"address", "10.0.0.3"}}};
    for (int i = 1; i <= 3; ++i) {
      const std::string next = "10.0.0." + std::to_string(i % 3 + 1);
      const Json step = {{"id", "probe"}, {"params", {{"host", next}, {"next_live", true}}}};
      add(action("n" + std::to_string(i), "probe", ActionKind::steps,
                 {{"steps", Json::array({step})}, {"ring", ring}}));
    }
    live();  // their agents are there before the run begins
    for (const char* n : {"n1", "n2", "n3"}) hello(n, wire::Mode::installed, std::string("boot-") + n);
    executor->start(plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    reactor.advance(100);
  }
  std::string host(const std::string& node) {
    return offers.count(node) ? offers[node].params["steps"][0]["params"].value("host", "") : "";
  }
  void fails(const std::string& node) {
    finish(node, false, "failed", {{"steps", {{{"step", "probe"}, {"status", "failed"}}}}});
  }
  // Time goes by; these nodes are heard every 10 s, as their agents would be.
  void pass(DurationMs span, const std::vector<std::string>& alive) {
    for (DurationMs at = 0; at < span; at += 10 * kSecond) {
      for (const auto& n : alive) executor->on_contact(NodeName(n));
      reactor.advance(std::min<DurationMs>(10 * kSecond, span - at));
    }
  }
};

}  // namespace

TEST_CASE("a node that loses power while its neighbour probes it is blamed, the neighbour is not", "[run]") {
  Ring r;
  r.finish("n2");  // n2 did its part and waits; then its power goes
  r.finish("n3");
  r.reactor.advance(20 * kSecond);
  r.fails("n1");
  CHECK(r.executor->why("n1")["wait"]["awaited"] == "a message from n2");
  r.pass(60 * kSecond, {"n1", "n3"});
  CHECK(r.ended.empty());
  CHECK(r.offered("n1").empty());
  r.pass(80 * kSecond, {"n1", "n3"});
  CHECK(r.offered("n1") == r.id("n1/probe", 2));
  CHECK(r.host("n1") == "10.0.0.3");
  r.finish("n1");
  REQUIRE(r.ended.size() == 1);
  CHECK(r.row("n1").state == NodeState::accepted);
  CHECK(r.row("n3").state == NodeState::accepted);
}

TEST_CASE("a node at work that stays silent is quarantined for it", "[run]") {
  Ring r;
  r.finish("n3");
  r.fails("n1");
  r.pass(150 * kSecond, {"n1", "n3"});
  CHECK(r.row("n2").state == NodeState::quarantined);
  CHECK(r.row("n2").reason.find("silent for") != std::string::npos);
  CHECK(r.host("n1") == "10.0.0.3");
  r.finish("n1");
  REQUIRE(r.ended.size() == 1);
  CHECK(r.ended[0].state == RunState::partial);
}

TEST_CASE("tries that failed because a neighbour was away do not count", "[run]") {
  Ring r;
  r.finish("n3");
  for (int boot = 1; boot <= 2; ++boot) {
    r.fails("n1");
    r.hello("n2", wire::Mode::installed, "again-" + std::to_string(boot));
    r.pass(10 * kSecond, {"n1", "n2", "n3"});
    CHECK(r.offered("n1") == r.id("n1/probe", boot + 1));
  }
  SECTION("and are not counted after a restart of the controller either") {
    r.executor.reset();
    r.offers.clear();
    r.live();
    REQUIRE(r.executor->resume(1).ok());
    r.reactor.advance(100);
    REQUIRE(r.offered("n1") == r.id("n1/probe", 3));
    r.fails("n1");
    r.pass(10 * kSecond, {"n1", "n2", "n3"});
    CHECK(r.offered("n1") == r.id("n1/probe", 4));
  }
  SECTION("those that failed with everybody there do") {
    r.fails("n1");
    r.pass(10 * kSecond, {"n1", "n2", "n3"});
    REQUIRE(r.offered("n1") == r.id("n1/probe", 4));
    CHECK(r.host("n1") == "10.0.0.2");
    r.fails("n1");
    r.pass(10 * kSecond, {"n1", "n2", "n3"});
    REQUIRE(r.offered("n1") == r.id("n1/probe", 5));
    CHECK(r.host("n1") == "10.0.0.3");  // the second opinion
    r.fails("n1");
    r.pass(10 * kSecond, {"n1", "n2", "n3"});
    CHECK(r.row("n1").state == NodeState::quarantined);
    CHECK(r.row("n2").state != NodeState::quarantined);
  }
}

TEST_CASE("who fails a probe that another node passes is to blame", "[run]") {
  Ring r;
  r.finish("n3");
  for (int attempt = 1; attempt <= 2; ++attempt) {
    r.fails("n1");
    r.pass(10 * kSecond, {"n1", "n2", "n3"});
  }
  SECTION("it holds of the other one") { r.finish("n1"); }
  SECTION("also over a restart of the controller") {
    r.executor.reset();
    r.offers.clear();
    r.live();
    REQUIRE(r.executor->resume(1).ok());
    r.reactor.advance(100);
    REQUIRE(r.host("n1") == "10.0.0.3");
    r.finish("n1");
  }
  r.reactor.advance(kSecond);
  CHECK(r.row("n1").state == NodeState::accepted);
  CHECK(r.row("n2").state == NodeState::quarantined);
  CHECK(r.row("n2").reason.find("broken") != std::string::npos);
}

TEST_CASE("beyond the failure budget no further node is started", "[run]") {
  Bench b;
  b.plan.limits.failure_budget = 0;
  b.plan.limits.parallel_imaging = 1;
  b.add(action("n1", "image", ActionKind::image));
  b.add(action("n2", "image", ActionKind::image));
  b.start();
  CHECK(b.executor->why("n2")["wait"]["reason"] == "a limit of the plan is reached");
  b.executor->quarantine("n1", "broken");
  b.reactor.advance(kSecond);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::failed);
  CHECK(b.row("n2").state != NodeState::quarantined);
  CHECK(b.row("n2").reason.find("failure budget") != std::string::npos);
}

TEST_CASE("what an inventory found is in the node's row", "[run]") {
  Bench b;
  b.plan.kind = PlanKind::discover;
  b.add(action("n1", "inventory", ActionKind::inventory));
  b.start();
  b.hello("n1", wire::Mode::ram, "boot1");
  b.finish("n1", true, "", {{"facts", {{"system", {{"uuid", "abc"}}}}}});
  CHECK(b.row("n1").state == NodeState::discovered);
  CHECK(b.row("n1").product_uuid == "abc");
  CHECK_FALSE(b.row("n1").facts.empty());
}

TEST_CASE("a node gets the RAM system only until that has answered", "[run]") {
  Bench b;
  b.plan.kind = PlanKind::discover;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.add(action("n1", "inventory", ActionKind::inventory));
  b.start();
  REQUIRE(b.armed.count("n1"));
  b.hello("n1", wire::Mode::installed,
          "boot0");                 // came up from its disk: it is cycled again, and must find the RAM system
  b.power_state = PowerState::off;  // having stopped in order
  b.reactor.advance(10 * kSecond);
  REQUIRE(b.powered.size() == 2);
  CHECK(b.armed.count("n1"));
  b.hello("n1", wire::Mode::ram, "boot1");
  CHECK(b.armed.empty());
  b.finish("n1", true, "", {{"facts", {{"system", {{"uuid", "abc"}}}}}});
  b.reactor.advance(kSecond);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.armed.empty());
}

TEST_CASE("an action that had to netboot its node leaves it armed no longer than that took", "[run]") {
  Bench b;
  b.add(action("n1", "image", ActionKind::image));
  b.start();
  b.hello("n1", wire::Mode::installed, "boot0");
  b.power_state = PowerState::off;
  b.reactor.advance(10 * kSecond);
  REQUIRE(b.armed.count("n1"));
  SECTION("the RAM system came") { b.hello("n1", wire::Mode::ram, "boot1"); }
  SECTION("the run was cancelled") { b.executor->cancel("enough"); }
  SECTION("the node was taken out") { b.executor->quarantine("n1", "broken"); }
  b.reactor.advance(100);
  CHECK(b.armed.empty());
}

TEST_CASE("which node a machine is follows what inventories found, and what was forgotten", "[run]") {
  const std::string first = "4c4c4544-0042-3510-8052-b4c04f4d3032",
                    second = "4c4c4544-0042-3510-8052-b4c04f4d3033";
  Bench b;
  b.plan.kind = PlanKind::discover;
  b.add(action("n1", "inventory", ActionKind::inventory));
  b.start();
  b.executor->set_node("n2", [&](NodeRow& row) { row.product_uuid = second; });
  b.executor->set_node("unknown-52:54:00:20:00:04", [](NodeRow& row) {
    row.state = NodeState::unadmitted;  // not a node yet
    row.product_uuid = "4c4c4544-0042-3510-8052-b4c04f4d3034";
  });
  const auto before = b.executor->machines();
  CHECK(before->node_of(first).empty());
  CHECK(before->node_of(second) == "n2");
  CHECK(before->node_of("4c4c4544-0042-3510-8052-b4c04f4d3034").empty());
  CHECK(b.executor->machines() == before);  // not made again for every call
  b.hello("n1", wire::Mode::ram, "boot1");
  b.finish("n1", true, "", {{"facts", {{"system", {{"uuid", first}}}}}});
  CHECK(b.executor->machines()->node_of(first) == "n1");
  REQUIRE(b.executor->forget("n2"));
  CHECK(b.executor->machines()->node_of(second).empty());
}

TEST_CASE("a full disk delays a run and does not damage it", "[run]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "b1");
  b.store.fail_next(3, fail(Code::unavailable, "disk full"));
  b.finish("n1");
  CHECK(b.ended.empty());
  b.reactor.advance(kMinute);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.row("n1").state == NodeState::accepted);
}

TEST_CASE("an operator's quarantine whose write fails holds at once, and is stored when the disk has room",
          "[run]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.add(action("n2", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "b1");
  b.hello("n2", wire::Mode::installed, "b2");
  b.store.fail_next(3, fail(Code::unavailable, "disk full"));
  b.executor->quarantine("n1", "by an operator: PSU", HeldBy::an_operator);
  CHECK(b.executor->node_row("n1").state == NodeState::quarantined);
  CHECK(b.executor->node_row("n1").held_by == HeldBy::an_operator);
  CHECK(b.store.node("n1").value().held_by == HeldBy::nobody);
  CHECK(b.ended.empty());
  b.reactor.advance(kMinute);
  CHECK_FALSE(b.offers.count("n1"));
  CHECK(b.store.node("n1").value().held_by == HeldBy::an_operator);
  CHECK(b.store.node("n1").value().reason == "by an operator: PSU");
  b.finish("n2");  // the run's conclusion does not release it
  b.reactor.advance(kMinute);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.store.node("n1").value().held_by == HeldBy::an_operator);
  b.executor->set_node("n1", released());
  b.reactor.advance(kSecond);
  CHECK(b.store.node("n1").value().held_by == HeldBy::nobody);
}

TEST_CASE("since when a node is quarantined, and by which operator, is in its row until it is released",
          "[run]") {
  Bench b;
  b.live();
  const auto row = [&b] {
    b.reactor.advance(kSecond);
    return b.store.node("n1").value();
  };
  const TimeMs began = b.reactor.now();
  b.executor->quarantine("n1", "fan");
  CHECK(row().held_by == HeldBy::run);
  CHECK(row().held_since == began);
  CHECK(row().held_caller.empty());
  // An operator's hold begins a new one; what a run does meanwhile, or another reason, does not.
  const TimeMs held = b.reactor.now();
  b.executor->quarantine("n1", "by an operator", HeldBy::an_operator, "anna (sudo)");
  CHECK(row().held_since == held);
  CHECK(row().held_caller == "anna (sudo)");
  b.executor->quarantine("n1", "fan");
  b.executor->quarantine("n1", "by an operator: PSU", HeldBy::an_operator, "anna (sudo)");
  CHECK(row().held_since == held);
  CHECK(row().held_caller == "anna (sudo)");
  const Json why = b.executor->why("n1");
  CHECK(why["held_caller"] == "anna (sudo)");
  CHECK(why["held_since"] == held);
  const TimeMs taken_over = b.reactor.now();
  b.executor->quarantine("n1", "by an operator", HeldBy::an_operator, "ben");
  CHECK(row().held_since == taken_over);
  CHECK(row().held_caller == "ben");
  b.executor->set_node("n1", released());
  CHECK(row().held_by == HeldBy::nobody);
  CHECK(row().held_since == 0);
  CHECK(row().held_caller.empty());
  CHECK_FALSE(b.executor->why("n1").contains("held_caller"));
}

TEST_CASE("the part that acceptance located stays with the reason that it is of", "[run]") {
  Bench b;
  b.live();
  const auto now = [&b](const std::function<void(NodeRow&)>& change) {
    b.executor->set_node("n1", change);
    return b.executor->node_row("n1").faulty_part;
  };
  const std::string part = "link of n1, sending";
  const auto located = [&](NodeRow& row) {
    row.state = NodeState::degraded;
    row.reason = "links/located: slow";
    row.faulty_part = part;
  };
  CHECK(now(located) == part);
  CHECK(now([](NodeRow& row) { row.last_seen = 5; }) == part);
  CHECK(now([](NodeRow& row) { row.reason = "a fan is dead"; }).empty());
  CHECK(now(located) == part);
  CHECK(now([](NodeRow& row) { row.state = NodeState::accepted; }).empty());
}

TEST_CASE("a cancelled run withdraws its orders and says so", "[run]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "b1");
  b.executor->cancel("operator");
  b.reactor.advance(kSecond);
  CHECK(b.offers.empty());
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::cancelled);
}

TEST_CASE("a power cycle that waits for its BMC is not wanted any more when its node is out", "[run]") {
  Bench b;
  b.bmc_is_silent = true;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.add(action("n2", "configure", ActionKind::steps));
  b.start();
  b.hello("n2", wire::Mode::installed, "b1");
  REQUIRE(b.powered == std::vector<std::string>{"n1"});
  CHECK(b.forgotten.empty());
  SECTION("the run is cancelled") { b.executor->cancel("operator"); }
  SECTION("the node is taken out") { b.executor->quarantine("n1", "broken"); }
  CHECK(b.forgotten == std::vector<std::string>{"n1"});
}

TEST_CASE("the conclusion of a run sees all its rows, and its verdicts are written with the end", "[run]") {
  Bench b;
  for (const char* node : {"n1", "n2", "n3"}) b.add(action(node, "accept", ActionKind::check));
  size_t seen = 0;
  b.conclude = [&](const RunRow& run) {
    CHECK(run.state == RunState::done);
    CHECK(run.ended > 0);
    const auto journal = b.store.journal(run.id).value();
    for (const auto& row : journal) seen += row.event == "succeeded";
    CHECK(b.store.run(run.id)->state == RunState::running);
    Conclusion out;
    out.nodes = {{"n2", false, "its link is slow"},
                 {"n3", true, "its data is wrong in the light of the others"}};
    out.rows = {ReportRow{run.id, run.ended, "signed", "{}"}};
    out.faulty_parts = {{"n2", "link of n2, sending"}, {"n3", ""}};
    return out;
  };
  b.start();
  for (const char* node : {"n1", "n2", "n3"}) b.hello(node, wire::Mode::installed, "b");
  for (const char* node : {"n1", "n2", "n3"}) b.finish(node);
  b.reactor.advance(1000);
  CHECK(b.row("n2").faulty_part == "link of n2, sending");
  CHECK(b.row("n3").faulty_part.empty());
  CHECK(seen == 3);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::partial);
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.row("n2").state == NodeState::degraded);
  CHECK(b.row("n2").reason == "its link is slow");
  CHECK(b.row("n3").state == NodeState::quarantined);
  CHECK(b.store.report(0)->json == "signed");
  size_t quarantined = 0;
  const auto journal = b.store.journal(1).value();
  for (const auto& row : journal) quarantined += row.event == "quarantined" && row.node == "n3";
  CHECK(quarantined == 1);
}

TEST_CASE(
    "a node that is quarantined when it came through and others did not yet stays quarantined at the run's "
    "end",
    "[run]") {
  Bench b;
  for (const char* node : {"n1", "n2"}) b.add(action(node, "accept", ActionKind::check));
  b.conclude = [&](const RunRow&) {
    Conclusion out;
    out.nodes = {{"n1", false, "its link is slow"}};
    return out;
  };
  b.start();
  for (const char* node : {"n1", "n2"}) b.hello(node, wire::Mode::installed, "b");
  b.finish("n1");
  REQUIRE(b.row("n1").state == NodeState::accepted);
  b.executor->quarantine("n1", "a second machine tried to join as n1");
  b.finish("n2");
  b.reactor.advance(1000);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::partial);
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.row("n2").state == NodeState::accepted);
}

TEST_CASE("a controller killed before the conclusion was written concludes again", "[run]") {
  Bench b;
  b.add(action("n1", "accept", ActionKind::check));
  int concluded = 0;
  b.conclude = [&](const RunRow& run) {
    ++concluded;
    if (concluded == 1) b.store.fail_next(1000000, fail(Code::failed, "disk full"));
    Conclusion out;
    out.nodes = {{"n1", false, "slow"}};
    out.rows = {ReportRow{run.id, run.ended, "signed", "{}"}};
    return out;
  };
  b.start();
  b.hello("n1", wire::Mode::installed, "b");
  b.finish("n1");
  b.reactor.advance(1000);
  REQUIRE(concluded == 1);
  CHECK_FALSE(b.store.report(0).ok());
  b.store.crash(MemStore::Unsynced::lost);
  b.store.fail_next(0, {});
  b.live();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(1000);
  CHECK(concluded == 2);
  CHECK(b.row("n1").state == NodeState::degraded);
  CHECK(b.store.report(0).ok());
  CHECK(b.store.run(1)->state == RunState::done);
}
