// Before it blames a node the controller looks at itself: its store, its own link to the nodes.
#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

using testing::action;
using Bench = testing::RunBench;

const std::vector<std::string> kNodes = {"n1", "n2", "n3"};

// Three nodes in the RAM system, each with an order to write its disk.
void start_imaging(Bench& b) {
  for (const auto& node : kNodes) {
    Action image = action(node, "image", ActionKind::image);
    image.timeout = 10 * kMinute;
    b.add(image);
  }
  b.start();
  for (const auto& node : kNodes) b.hello(node, wire::Mode::ram, "boot-" + node);
  for (const auto& node : kNodes) REQUIRE(b.offered(node) == b.id(node + "/image", 1));
}

void heard_for(Bench& b, DurationMs time, const std::vector<std::string>& nodes) {
  for (DurationMs passed = 0; passed < time; passed += 20 * kSecond) {
    for (const auto& node : nodes) b.executor->on_contact(node, {"boot-" + node, wire::Mode::ram});
    b.reactor.advance(20 * kSecond);
  }
}

bool is_journal_row(const Write& row, const std::string& node, const std::string& event) {
  const auto* entry = std::get_if<JournalRow>(&row);
  return entry && entry->node == node && entry->event == event;
}

}  // namespace

TEST_CASE("when all agents fall silent at once the controller suspects itself first", "[run]") {
  Bench b;
  start_imaging(b);
  SECTION("for longer than any of them may be silent, and than their orders may take") {
    b.reactor.advance(14 * kMinute);
    CHECK(b.powered.empty());
    CHECK(b.looks > 0);  // nothing is done to them but to look
    heard_for(b, 2 * kMinute, kNodes);
    for (const auto& node : kNodes) {
      CHECK(b.offered(node) == b.id(node + "/image", 1));
      b.finish(node);
    }
    b.reactor.advance(kMinute);
    CHECK(b.powered.empty());
    REQUIRE(b.ended.size() == 1);
    CHECK(b.ended[0].state == "done");
  }
  SECTION("who is heard last has the time for it") {
    b.reactor.advance(10 * kMinute);
    heard_for(b, 2 * kMinute, {"n1"});
    CHECK(b.powered.empty());
    heard_for(b, 2 * kMinute, {"n1", "n2"});
    CHECK(b.powered == std::vector<std::string>{"n3"});  // this one is silent alone
  }
  SECTION("not without end") {
    b.reactor.advance(20 * kMinute);
    CHECK_FALSE(b.powered.empty());
  }
  SECTION("not where a machine is seen to be off") {
    b.power_state = PowerState::off;
    b.reactor.advance(3 * kMinute);
    CHECK(std::set<std::string>(b.powered.begin(), b.powered.end()).size() == 3);
  }
  SECTION("not while another is heard") {
    heard_for(b, 4 * kMinute, {"n1"});
    CHECK(b.powered == std::vector<std::string>{"n2", "n3"});
  }
}

TEST_CASE("one agent alone that falls silent is looked after as ever", "[run]") {
  Bench b;
  b.add(action("n1", "image", ActionKind::image));
  b.start();
  b.hello("n1", wire::Mode::ram, "boot-n1");
  b.reactor.advance(4 * kMinute);
  CHECK(b.powered == std::vector<std::string>{"n1"});
}

TEST_CASE("a node whose row cannot be written waits for the store, and says so; the others go on", "[run]") {
  Bench b;
  for (const char* node : {"n1", "n2"}) b.add(action(node, "configure", ActionKind::steps));
  b.start();
  for (const char* node : {"n1", "n2"}) b.hello(node, wire::Mode::installed, std::string("boot-") + node);
  b.store.refuse([](const Write& row) { return is_journal_row(row, "n1", "succeeded"); },
                 fail(Code::failed, "string or blob too big"));
  b.finish("n1");
  b.finish("n2");
  b.reactor.advance(10 * kSecond);
  CHECK(b.row("n2").state == "accepted");
  CHECK(b.row("n1").state == "installing");
  CHECK(b.ended.empty());
  const Json wait = b.executor->why("n1")["wait"];
  CHECK(wait["awaited"] == "the store");
  CHECK(wait["observed"] == "string or blob too big");
  CHECK_FALSE(b.executor->why("n2").contains("wait"));
  b.store.refuse({}, {});
  b.reactor.advance(10 * kSecond);
  CHECK(b.row("n1").state == "accepted");
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == "done");
}

TEST_CASE("every wait of a run has a reason, the wait for the disk too", "[run]") {
  Bench b;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.live();
  b.store.refuse([](const Write& row) { return is_journal_row(row, "n1", "intent"); },
                 fail(Code::failed, "disk full"));
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  b.reactor.advance(5 * kSecond);
  CHECK(b.powered.empty());  // no effect before its intent is durable
  const Json wait = b.executor->progress()["nodes"][0]["wait"];
  CHECK(wait["awaited"] == "the store");
  CHECK(wait["observed"] == "disk full");
  b.store.refuse({}, {});
  b.reactor.advance(5 * kSecond);
  CHECK(b.powered == std::vector<std::string>{"n1"});
}
