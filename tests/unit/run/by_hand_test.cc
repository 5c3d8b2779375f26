// Nodes that a person switches: the task has a deadline, and no other node waits for it.
#include "tests/unit/run/bench.h"

using namespace muster;
using testing::action;
using Bench = testing::RunBench;

namespace {

constexpr DurationMs kWithin = 2 * 60 * kMinute;

void add_node(Bench& b, const std::string& node) {
  Action boot = action(node, "netboot", ActionKind::netboot);
  boot.timeout = 20 * kMinute;
  boot.max_attempts = 3;
  b.add(boot);
  b.add(action(node, "image", ActionKind::image), {{node + "/netboot", true}});
  Action disk = action(node, "boot", ActionKind::boot_disk, {{"digest", "sha256:new"}});
  disk.timeout = 15 * kMinute;
  b.add(disk, {{node + "/image", true}});
}

void begin(Bench& b) {
  b.persons["n1"] = {"rack 3", kWithin};
  add_node(b, "n1");
  b.start();
}

std::string waiting(Bench& b, const char* what) {
  return b.executor->why("n1")["wait"][what].get<std::string>();
}

void comes_up(Bench& b, const std::string& node, const std::string& boot) {
  b.hello(node, wire::Mode::ram, boot);
  REQUIRE(b.offered(node) == b.id(node + "/image", 1));
  b.finish(node);
  b.finish(node);
  b.hello(node, wire::Mode::installed, boot + "-new", "sha256:new");
  CHECK(b.row(node).state == NodeState::accepted);
}

}  // namespace

TEST_CASE("the task names the place and the deadline, and the node goes on when it is seen",
          "[run][manual]") {
  Bench b;
  begin(b);
  REQUIRE(b.requested.count("netboot n1") == 1);
  CHECK(b.armed.count("n1") == 1);
  CHECK(waiting(b, "reason").find("(rack 3)") != std::string::npos);
  CHECK(waiting(b, "awaited").find("muster power done n1") != std::string::npos);
  const Json wait = b.executor->why("n1")["wait"];
  CHECK(wait["until"].get<int64_t>() - wait["since"].get<int64_t>() == kWithin);
  CHECK(b.looks == 0);
  b.reactor.advance(kWithin - 5 * kMinute);  // far longer than a netboot takes
  REQUIRE(b.requested.count("netboot n1") == 1);
  CHECK(b.row("n1").state == NodeState::installing);
  SECTION("its request for the RAM system, or the operator's word") {
    b.answer("netboot n1");
    b.reactor.advance(100);
    CHECK(waiting(b, "awaited") == "the RAM system's agent");
    b.reactor.advance(15 * kMinute);  // its time to boot begins there
    CHECK(b.row("n1").state == NodeState::installing);
    comes_up(b, "n1", "ram1");
  }
  SECTION("the RAM system's hello") {
    comes_up(b, "n1", "ram1");
    CHECK(b.requested.empty());
    CHECK(std::count(b.forgotten.begin(), b.forgotten.end(), "n1") >= 1);
  }
  b.reactor.advance(kWithin);  // the deadline that was, is none any more
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.looks == 0);
}

TEST_CASE("no person comes: quarantined at the deadline, once, and the task is closed", "[run][manual]") {
  Bench b;
  begin(b);
  b.reactor.advance(kWithin + kMinute);
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.requested.empty());
  CHECK(b.armed.empty());
  CHECK(b.powered.size() == 1);
  REQUIRE(b.ended.size() == 1);
}

TEST_CASE("it came up from its disk: the same person is waited for, and told", "[run][manual]") {
  Bench b;
  begin(b);
  b.hello("n1", wire::Mode::installed, "old1", "sha256:old");
  CHECK(b.requested.count("netboot n1") == 1);
  CHECK(waiting(b, "observed").find("from its disk") != std::string::npos);
  CHECK(b.row("n1").state == NodeState::installing);
  comes_up(b, "n1", "ram1");
}

TEST_CASE("said to be done, while its old system goes on speaking: asked again within the attempt",
          "[run][manual]") {
  Bench b;
  begin(b);
  b.executor->on_hello({"n1", wire::Mode::installed, "old1", "sha256:old"});
  b.answer("netboot n1");
  for (int i = 0; i < 10 && b.requested.empty(); ++i) {
    b.reactor.advance(10 * kSecond);
    b.executor->on_contact("n1", {"old1", wire::Mode::installed});
    b.reactor.advance(100);
  }
  CHECK(b.requested.count("netboot n1") == 1);
  CHECK(b.store.journal(1).value().back().event != "quarantined");
  comes_up(b, "n1", "ram1");
}

TEST_CASE("a RAM system that does not come gets another task, and is given up after three", "[run][manual]") {
  Bench b;
  begin(b);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    CAPTURE(attempt);
    REQUIRE(b.answer("netboot n1"));
    b.reactor.advance(21 * kMinute);
  }
  CHECK(b.requested.empty());
  CHECK(b.row("n1").state == NodeState::quarantined);
}

TEST_CASE("a restart of the controller goes on waiting, and the time that has passed counts",
          "[run][manual]") {
  Bench b;
  begin(b);
  b.reactor.advance(50 * kMinute);
  b.restart();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(200);
  REQUIRE(b.requested.count("netboot n1") == 1);
  CHECK(b.rearmed == std::vector<std::string>{"n1"});
  SECTION("until the person came") {
    b.answer("netboot n1");
    comes_up(b, "n1", "ram1");
  }
  SECTION("as long as there was") {
    b.reactor.advance(kWithin - 52 * kMinute);
    CHECK(b.row("n1").state == NodeState::installing);
    b.reactor.advance(5 * kMinute);
    CHECK(b.row("n1").state == NodeState::quarantined);
  }
  SECTION("and the RAM system says hello to the new one") { comes_up(b, "n1", "ram1"); }
}

TEST_CASE("what was done before the controller ended is not asked for again", "[run][manual]") {
  Bench b;
  begin(b);
  b.answer("netboot n1");
  b.reactor.advance(100);
  b.restart();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(200);
  CHECK(b.requested.empty());
  CHECK(waiting(b, "awaited") == "the RAM system's agent");
  comes_up(b, "n1", "ram1");
}

TEST_CASE("who waits for a person holds no place, no turn and no barrier", "[run][manual]") {
  Bench b;
  b.persons["n1"] = {"", kWithin};
  b.plan.limits.parallel_netboot = 1;
  b.plan.limits.parallel_imaging = 1;
  b.plan.limits.power_stagger = kMinute;
  add_node(b, "n1");
  add_node(b, "n2");
  b.plan.barriers = {{"n1/boot", "n2/boot"}};
  for (const char* node : {"n1", "n2"}) {
    Action steps = action(node, "steps", ActionKind::steps);
    steps.behind = 0;
    b.add(steps, {{std::string(node) + "/boot", true}});
  }
  b.start();
  CHECK(b.powered == std::vector<std::string>{"n1", "n2"});
  b.hello("n2", wire::Mode::ram, "ram2");
  b.finish("n2");
  b.finish("n2");
  b.hello("n2", wire::Mode::installed, "new2", "sha256:new");
  CHECK(b.offered("n2") == b.id("n2/steps", 1));
  b.finish("n2");
  CHECK(b.row("n2").state == NodeState::accepted);
  CHECK(b.requested.count("netboot n1") == 1);
  CHECK(b.ended.empty());
  // The other one comes late, and does all of its own.
  b.hello("n1", wire::Mode::ram, "ram1");
  b.finish("n1");
  b.finish("n1");
  b.hello("n1", wire::Mode::installed, "new1", "sha256:new");
  b.finish("n1");
  CHECK(b.row("n1").state == NodeState::accepted);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
}

TEST_CASE("a node that needs it waits for a node that waits for a person", "[run][manual]") {
  Bench b;
  b.persons["n1"] = {"", kWithin};
  add_node(b, "n1");
  b.add(action("n2", "steps", ActionKind::steps), {{"n1/boot", true}});
  b.start();
  b.hello("n2", wire::Mode::installed, "boot2", "sha256:new");
  CHECK(b.offered("n2") == "");
  b.answer("netboot n1");
  comes_up(b, "n1", "ram1");
  b.reactor.advance(100);
  CHECK(b.offered("n2") == b.id("n2/steps", 1));
}

TEST_CASE("an image that lost its RAM system gives its place away while a task is open", "[run][manual]") {
  Bench b;
  b.persons["n1"] = {"", kWithin};
  b.plan.limits.parallel_imaging = 1;
  add_node(b, "n1");
  add_node(b, "n2");
  b.start();
  b.hello("n1", wire::Mode::ram, "ram1");
  b.hello("n2", wire::Mode::ram, "ram2");
  REQUIRE(b.offered("n1") == b.id("n1/image", 1));
  CHECK(b.offered("n2") == "");
  b.hello("n1", wire::Mode::installed, "old1", "sha256:old");  // instead of the RAM system
  b.reactor.advance(kMinute);
  CHECK(b.requested.count("netboot n1") == 1);
  CHECK(b.offered("n2") == b.id("n2/image", 1));
}

TEST_CASE("a silent RAM system is not looked for at a BMC; at the deadline a task is opened",
          "[run][manual]") {
  Bench b;
  begin(b);
  b.hello("n1", wire::Mode::ram, "ram1");
  REQUIRE(b.offered("n1") == b.id("n1/image", 1));
  b.reactor.advance(b.plan.actions[1].timeout + 2 * kMinute);
  CHECK(b.requested.count("netboot n1") == 1);
  CHECK(b.looks == 0);
}

TEST_CASE("a cancelled run has no open tasks", "[run][manual]") {
  Bench b;
  begin(b);
  b.executor->cancel("changed my mind");
  b.reactor.advance(100);
  CHECK(b.requested.empty());
  CHECK(b.armed.empty());
}

TEST_CASE("a silent node is woken by a person, and its agent's word ends it", "[run][manual]") {
  Bench b;
  b.plan.kind = PlanKind::wake;
  b.persons["n1"] = {"", kWithin};
  Action wake = action("n1", "wake", ActionKind::wake);
  wake.timeout = 15 * kMinute;
  b.add(wake);
  b.start();
  CHECK(b.requested.count("on n1") == 1);
  CHECK(b.looks == 0);
  b.reactor.advance(kMinute * 60);
  SECTION("it is switched on, and speaks") {
    b.answer("on n1");
    b.reactor.advance(5 * kMinute);
    b.hello("n1", wire::Mode::installed, "boot1", "sha256:new");
    REQUIRE(b.ended.size() == 1);
    CHECK(b.ended[0].state == RunState::done);
  }
  SECTION("it is said to be on, and stays silent") {
    b.answer("on n1");
    b.reactor.advance(16 * kMinute);
    REQUIRE(b.ended.size() == 1);
    CHECK(b.ended[0].state == RunState::failed);
  }
  SECTION("no person comes") {
    b.reactor.advance(kWithin);
    REQUIRE(b.ended.size() == 1);
    CHECK(b.ended[0].state == RunState::failed);
  }
  CHECK(b.switched_on.empty());
}
