// Nodes of which nothing is known: after a restart of the controller, on an older copy of its database, when
// they do not answer, and when what is known of them cannot be read.
#include "base/utf8.h"
#include "tests/unit/run/bench.h"

using namespace muster;
using testing::action;
using Bench = testing::RunBench;

namespace {

const ExecutorTiming kTiming;

void set_row(Bench& b, const std::string& node, const std::function<void(NodeRow&)>& change) {
  b.executor->set_node(NodeName(node), change);
  b.reactor.advance(100);
}

void accepted_row(NodeRow& row) {
  row.state = NodeState::accepted;
  row.accepted_run = 7;
  row.mode = "installed";
  row.boot_id = "boot1";
  row.image_digest = "sha256:x";
  row.config_digest = "sha256:c";
  row.product_uuid = "uuid-n1";
  row.last_seen = 1;
}

bool stop_is_asked(const Bench& b) {
  const auto found = b.offers.find("n1");
  return found != b.offers.end() && found->second.kind == wire::OrderKind::power_off;
}

Presence present(wire::Mode mode, const std::string& boot, const std::string& image = "") {
  return {boot, mode, Digest(image)};
}

}  // namespace

TEST_CASE(
    "a node that said nothing since a restart is stopped in order before its power is cut, whatever its row "
    "says",
    "[run][silent]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.live();
  set_row(b, "n1", [](NodeRow& row) {
    row.mode = "ram";  // what it was long ago
    row.boot_id = "boot0";
    row.last_seen = 1;
  });
  b.bmc_is_silent = true;  // the call is out, its answer never comes
  b.executor->start(b.plan, "test", [](Result<int64_t>) {});
  b.reactor.advance(kTiming.stop_wait + kMinute);
  b.powered.clear();
  b.restart();
  REQUIRE(b.executor->resume(1).ok());
  SECTION("it is silent, and on") {
    b.reactor.advance(10 * kMinute);  // its firmware may be at it: the attempt has its whole time
    CHECK(b.powered.empty());
    CHECK_FALSE(stop_is_asked(b));
    b.reactor.advance(10 * kMinute + 10 * kSecond);
    CHECK(b.powered.empty());
    CHECK(stop_is_asked(b));
    b.reactor.advance(kTiming.stop_wait + 10 * kSecond);
    CHECK(b.powered.size() == 1);
  }
  SECTION("it is off: nothing is lost") {
    b.power_state = PowerState::off;
    b.reactor.advance(20 * kSecond);
    CHECK(b.powered.size() == 1);
  }
  SECTION("its installed system asks for orders: it is stopped in order") {
    b.reactor.advance(10 * kSecond);
    b.executor->on_contact("n1", present(wire::Mode::installed, "boot5", "sha256:x"));
    for (int i = 0; i < 7; ++i) {
      b.reactor.advance(20 * kSecond);
      b.executor->on_contact("n1", present(wire::Mode::installed, "boot5", "sha256:x"));
    }
    CHECK(b.powered.empty());
    b.reactor.advance(15 * kSecond);
    b.executor->on_contact("n1");
    CHECK(b.powered.empty());
    CHECK(stop_is_asked(b));
  }
  SECTION("the RAM system it was booted into asks for orders: that was it") {
    b.executor->on_contact("n1", present(wire::Mode::ram, "boot6"));
    b.reactor.advance(100);
    CHECK(b.powered.empty());
    REQUIRE(b.ended.size() == 1);
    CHECK(b.ended[0].state == RunState::done);
  }
}

TEST_CASE("an agent that asks for orders says what it is to a controller that did not hear its hello",
          "[run][silent]") {
  Bench b;
  b.live();
  set_row(b, "n1", accepted_row);
  set_row(b, "n1", [](NodeRow& row) { row.mode = "ram", row.image_digest = "", row.boot_id = "boot0"; });
  b.restart();
  CHECK(b.executor->mode_of("n1") == wire::Mode::ram);
  SECTION("it says all") {
    b.executor->on_contact("n1", present(wire::Mode::installed, "boot5", "sha256:y"));
    b.reactor.advance(100);
    CHECK(b.executor->mode_of("n1") == wire::Mode::installed);
    CHECK(b.row("n1").mode == "installed");
    CHECK(b.row("n1").image_digest == "sha256:y");
    CHECK(b.row("n1").boot_id == "boot5");
    // A hello counts more than a request that was under way when its system went down.
    b.hello("n1", wire::Mode::ram, "boot6");
    b.executor->on_contact("n1", present(wire::Mode::installed, "boot5", "sha256:y"));
    b.reactor.advance(100);
    CHECK(b.executor->mode_of("n1") == wire::Mode::ram);
    CHECK(b.row("n1").boot_id == "boot6");
  }
  SECTION("one of an older muster names its boot only: another boot may be another system") {
    b.executor->on_contact("n1", {"boot5"});
    CHECK_FALSE(b.executor->mode_of("n1").has_value());
  }
  SECTION("the same boot is the same system") {
    b.executor->on_contact("n1", {"boot0"});
    CHECK(b.executor->mode_of("n1") == wire::Mode::ram);
  }
}

TEST_CASE("on an older copy of the database no row says what a node is until its agent does",
          "[run][silent]") {
  Bench b;
  b.live();
  set_row(b, "n1", accepted_row);
  set_row(b, "n1", [&](NodeRow& row) { row.mode = "ram", row.last_seen = b.reactor.now(); });
  b.store.set_restored(b.reactor.now() + 1);
  b.reactor.advance(kSecond);
  b.restart();
  CHECK(b.executor->outdated("n1"));
  CHECK(b.executor->outdated("n9"));  // of which the copy knows nothing at all
  CHECK_FALSE(b.executor->mode_of("n1").has_value());
  CHECK_FALSE(b.executor->silent_for("n1").has_value());
  b.executor->on_contact("n1");  // says nothing of itself
  CHECK(b.executor->outdated("n1"));
  b.executor->on_contact("n1", present(wire::Mode::installed, "boot5", "sha256:x"));
  b.reactor.advance(100);
  CHECK_FALSE(b.executor->outdated("n1"));
  CHECK(b.executor->mode_of("n1") == wire::Mode::installed);
  b.restart();
  CHECK_FALSE(b.executor->outdated("n1"));  // it is in the row now
  CHECK(b.executor->outdated("n9"));
}

TEST_CASE("a silent node is powered on and waited for, and is what it was when it answers", "[run][silent]") {
  Bench b;
  b.plan.kind = PlanKind::wake;
  Action wake = action("n1", "wake", ActionKind::wake);
  wake.timeout = 8 * kMinute;
  wake.max_attempts = 1;
  b.add(wake);
  b.live();
  set_row(b, "n1", accepted_row);
  const auto begin = [&] {
    b.executor->start(b.plan, "test", [](Result<int64_t>) {});
    b.reactor.advance(100);
  };
  SECTION("it is off") {
    b.power_state = PowerState::off;
    begin();
    CHECK(b.switched_on == std::vector<std::string>{"n1"});
    b.power_state = PowerState::on;
    b.reactor.advance(5 * kMinute);
    CHECK(b.switched_on.size() == 1);
    CHECK(b.row("n1").state == NodeState::accepted);
    b.hello("n1", wire::Mode::installed, "boot2", "sha256:x");
    REQUIRE(b.ended.size() == 1);
    CHECK(b.ended[0].state == RunState::done);
    CHECK(b.row("n1").state == NodeState::accepted);
    CHECK(b.row("n1").accepted_run == 7);
    CHECK(b.row("n1").config_digest == "sha256:c");
  }
  SECTION("it only reboots") {
    begin();
    b.reactor.advance(2 * kMinute);
    b.hello("n1", wire::Mode::installed, "boot2", "sha256:x");
    CHECK(b.ended.size() == 1);
    CHECK(b.switched_on.empty());
  }
  SECTION("it is heard all the time") {
    b.executor->on_contact("n1");
    begin();
    CHECK(b.ended.size() == 1);
    CHECK(b.looks == 0);
  }
  SECTION("it stays silent") {
    begin();
    b.reactor.advance(9 * kMinute);
    REQUIRE(b.ended.size() == 1);
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.row("n1").reason.find("muster reimage n1") != std::string::npos);
    CHECK(b.row("n1").image_digest == "sha256:x");
    CHECK(b.switched_on.empty());
  }
  SECTION("it stays off, whatever its BMC is sent") {
    b.power_state = PowerState::off;
    begin();
    b.reactor.advance(20 * kMinute);
    CHECK(b.switched_on.size() == static_cast<size_t>(kTiming.power_tries));
    CHECK(b.row("n1").state == NodeState::quarantined);
  }
  SECTION("the controller dies meanwhile") {
    begin();
    b.restart();
    REQUIRE(b.executor->resume(1).ok());
    b.reactor.advance(kMinute);
    b.hello("n1", wire::Mode::installed, "boot2", "sha256:x");
    CHECK(b.ended.size() == 1);
    CHECK(b.row("n1").state == NodeState::accepted);
  }
  // Whatever happened: its power was never cut, it was never booted from the network.
  CHECK(b.powered.empty());
  CHECK(b.armed.empty());
}

TEST_CASE("since when a node is silent is said when it is certain", "[run][silent]") {
  Bench b;
  b.live();
  set_row(b, "n1", accepted_row);
  b.restart();
  CHECK(b.executor->silent_since("n1") == 0);  // a controller that just began has no reports yet
  b.reactor.advance(10 * kSecond);
  b.executor->on_contact("n1");
  const TimeMs silent_since = b.reactor.now();
  b.reactor.advance(kTiming.silent_shown - kSecond);
  CHECK(b.executor->silent_since("n1") == 0);
  b.reactor.advance(2 * kSecond);
  CHECK(b.executor->silent_since("n1") == silent_since);
  CHECK(b.executor->why("n1")["silent_since"] == silent_since);
}

TEST_CASE("a node's row that cannot be read is not replaced by a blank one", "[run][silent]") {
  Bench b;
  b.live();
  set_row(b, "n1", accepted_row);
  b.restart();
  b.store.fail_reads(3, fail(Code::failed, "disk I/O error"));
  b.executor->on_hello({"n1", wire::Mode::installed, "boot2", "sha256:x"});
  b.reactor.advance(100);
  CHECK(b.row("n1").product_uuid == "uuid-n1");
  CHECK(b.row("n1").boot_id == "boot1");  // held back
  CHECK_FALSE(b.executor->forget("n1"));
  b.reactor.advance(5 * kSecond);  // the disk can be read again
  CHECK(b.row("n1").boot_id == "boot2");
  CHECK(b.row("n1").product_uuid == "uuid-n1");
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.row("n1").accepted_run == 7);
  CHECK(b.executor->node_row("n1").product_uuid == "uuid-n1");
  CHECK(b.executor->machines()->node_of("uuid-n1") == "n1");
}

TEST_CASE("a reason of any length in a row of an earlier version is cut when it is read", "[run][silent]") {
  Bench b;
  b.live();
  set_row(b, "n1", [](NodeRow& row) {
    accepted_row(row);
    row.reason = std::string(1 << 20, 'x');
  });
  REQUIRE(b.row("n1").reason.size() > kLongestReason);
  b.restart();
  CHECK(b.executor->node_row("n1").reason.size() == kLongestReason);
  CHECK(b.executor->node_row("n1").accepted_run == 7);
}

TEST_CASE("changes of a node that wait for its row keep their order", "[run][silent]") {
  Bench b;
  b.live();
  set_row(b, "n1", accepted_row);
  b.restart();
  b.store.fail_reads(1, fail(Code::failed, "disk I/O error"));
  b.executor->set_node("n1", [](NodeRow& row) { row.state = NodeState::quarantined; });
  b.executor->set_node("n1",
                       [](NodeRow& row) { row.state = NodeState::discovered; });  // by now it can be read
  b.reactor.advance(2 * kSecond);
  CHECK(b.row("n1").state == NodeState::discovered);
  CHECK(b.row("n1").image_digest == "sha256:x");
}

TEST_CASE(
    "on an older copy, an agent of an older muster is what the copy says while it runs the boot that the "
    "copy knows",
    "[run][silent]") {
  Bench b;
  b.live();
  set_row(b, "n1", accepted_row);
  b.store.set_restored(b.reactor.now() + 1);
  b.reactor.advance(kSecond);
  b.restart();
  b.executor->on_contact("n1", {"boot2"});
  CHECK(b.executor->outdated("n1"));
  b.executor->on_contact("n1", {"boot1"});
  b.reactor.advance(100);
  CHECK_FALSE(b.executor->outdated("n1"));
  CHECK(b.executor->mode_of("n1") == wire::Mode::installed);
}

TEST_CASE(
    "the first word of a RAM system whose firmware tested for long is not a word of the system before it",
    "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.live();
  b.hello("n1", wire::Mode::installed, "boot1", "sha256:x");
  b.reactor.advance(
      2 * kMinute);  // it crashed, and is silent when the run begins: there is nothing to be stopped
  b.executor->start(b.plan, "test", [](Result<int64_t>) {});
  b.reactor.advance(12 * kMinute);
  REQUIRE(b.powered.size() == 1);
  REQUIRE(b.armed.count("n1"));
  b.executor->on_contact("n1", {"boot2"});  // a batch is a contact first, and then its hello
  CHECK_FALSE(stop_is_asked(b));
  b.hello("n1", wire::Mode::ram, "boot2");
  CHECK(b.powered.size() == 1);
  CHECK_FALSE(stop_is_asked(b));
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
}

TEST_CASE("a RAM system that comes while its node stops is what the power cycle was for", "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.live();
  b.hello("n1", wire::Mode::installed, "boot1", "sha256:x");
  b.reactor.advance(2 * kMinute);
  b.executor->start(b.plan, "test", [](Result<int64_t>) {});
  b.reactor.advance(10 * kSecond);
  REQUIRE(b.powered.size() == 1);
  for (int i = 0; i < 8; ++i) {  // the BMC said yes, and did nothing: the old system answers again
    b.executor->on_contact("n1", {"boot1"});
    b.reactor.advance(10 * kSecond);
  }
  REQUIRE(stop_is_asked(b));
  b.hello("n1", wire::Mode::ram, "boot2");
  b.reactor.advance(kTiming.stop_wait + kMinute);
  CHECK(b.powered.size() == 1);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
}

TEST_CASE("a node that never ran a system under its name has nothing to be stopped", "[run][silent]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.live();
  set_row(b, "n1", [](NodeRow& row) { row.last_seen = 1; });  // taken over from the undeclared machine
  b.executor->start(b.plan, "test", [](Result<int64_t>) {});
  b.reactor.advance(10 * kSecond);
  CHECK_FALSE(stop_is_asked(b));
  CHECK(b.powered.size() == 1);
}

TEST_CASE("how long agents could report counts from the start, and from the end of a silence of all",
          "[run][silent]") {
  Bench b;
  b.live();
  CHECK(b.executor->reporting_for() < kSecond);
  const auto report = [&](const char* node) {
    b.executor->on_contact(NodeName(node), present(wire::Mode::installed, "boot1", "sha256:x"));
  };
  const DurationMs often = kTiming.silent_after / 3;
  for (int i = 0; i < 5; ++i) b.reactor.advance(often), report("n1");  // one of them is enough
  CHECK(b.executor->reporting_for() >= 5 * often);
  b.reactor.advance(kTiming.silent_after);
  CHECK(b.executor->reporting_for() == 0);
  report("n2");
  CHECK(b.executor->reporting_for() == 0);
  b.reactor.advance(often);
  CHECK(b.executor->reporting_for() == often);
  b.restart();
  CHECK(b.executor->reporting_for() < kSecond);
}
