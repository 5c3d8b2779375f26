// Before it blames a node the controller looks at itself: its store, its own link to the nodes.
#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

using testing::action;
using Bench = testing::RunBench;

const ExecutorTiming kTiming;
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
    for (const auto& node : nodes) b.executor->on_contact(NodeName(node), {"boot-" + node, wire::Mode::ram});
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
    CHECK(b.ended[0].state == RunState::done);
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

namespace {

// Three nodes with installed systems, each of which probes the next one.
struct Ring : Bench {
  Ring() {
    Json ring = Json::array();
    for (int i = 1; i <= 3; ++i)
      ring.push_back({{"name", "n" + std::to_string(i)}, {"address", "10.0.0." + std::to_string(i)}});
    for (int i = 1; i <= 3; ++i) {
      const Json step = {{"id", "probe"},
                         {"params", {{"host", "10.0.0." + std::to_string(i % 3 + 1)}, {"next_live", true}}}};
      add(action("n" + std::to_string(i), "probe", ActionKind::steps,
                 {{"steps", Json::array({step})}, {"ring", ring}}));
    }
    live();
    for (const auto& node : kNodes) hello(node, wire::Mode::installed, "boot-" + node);
    executor->start(plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    reactor.advance(100);
  }
  std::string probed_by(const std::string& node) {
    return offers.count(node) ? offers[node].params["steps"][0]["params"].value("host", "") : "";
  }
  void fails(const std::string& node) {
    finish(node, false, "failed", {{"steps", {{{"step", "probe"}, {"status", "failed"}}}}});
  }
  void pass(DurationMs span, const std::vector<std::string>& alive) {
    for (DurationMs at = 0; at < span; at += 10 * kSecond) {
      for (const auto& node : alive) executor->on_contact(NodeName(node));
      reactor.advance(10 * kSecond);
    }
  }
  bool out(const std::string& node) { return row(node).state == NodeState::quarantined; }
};

}  // namespace

TEST_CASE("no node is held responsible for a probe while all agents are silent", "[run]") {
  Ring r;
  r.finish("n3");
  const bool at_work = GENERATE(true, false);  // else n2 did its part already, and waits
  CAPTURE(at_work);
  if (!at_work) r.finish("n2");
  r.fails("n1");
  SECTION("all are heard again") {
    r.pass(14 * kMinute, {});
    CHECK_FALSE(r.out("n2"));
    CHECK(r.offered("n1").empty());
    const Json wait = r.executor->why("n1")["wait"];
    CHECK(wait["awaited"] == "a message from any agent");
    CHECK(wait["until"] > r.reactor.now());
    r.pass(20 * kSecond, {"n1", "n3"});  // n2 has its time to be heard, too
    CHECK_FALSE(r.out("n2"));
    CHECK(r.offered("n1").empty());
    r.pass(20 * kSecond, kNodes);
    CHECK(r.offered("n1") == r.id("n1/probe", 2));
    CHECK(r.probed_by("n1") == "10.0.0.2");
    r.finish("n1");
    if (at_work) r.finish("n2");
    REQUIRE(r.ended.size() == 1);
    CHECK(r.ended[0].state == RunState::done);
  }
  SECTION("all but the one that was probed: its silence is its own") {
    r.pass(14 * kMinute, {});
    r.pass(kTiming.lost_after + 20 * kSecond, {"n1", "n3"});
    CHECK(r.probed_by("n1") == "10.0.0.3");
    CHECK(r.out("n2") == at_work);
  }
  SECTION("not without end") {
    r.pass(kTiming.alone_for + kTiming.lost_after + kMinute, {});
    CHECK(r.offered("n1") == r.id("n1/probe", 2));
    CHECK(r.out("n2") == at_work);
  }
  SECTION("not while another is heard") {
    r.pass(kTiming.lost_after + 20 * kSecond, {"n1", "n3"});
    CHECK(r.probed_by("n1") == "10.0.0.3");
    CHECK(r.out("n2") == at_work);
  }
}

TEST_CASE("a RAM system that cannot be heard by anybody is not given up meanwhile", "[run]") {
  Bench b;
  for (const auto& node : {"n1", "n2"}) {
    Action image = action(node, "image", ActionKind::image);
    image.timeout = 24 * 60 * kMinute;
    b.add(image);
  }
  Action boot = action("n3", "netboot", ActionKind::netboot);
  boot.timeout = 10 * kMinute;
  boot.max_attempts = 2;
  b.add(boot);
  b.start();
  for (const auto& node : {"n1", "n2"}) b.hello(node, wire::Mode::ram, std::string("boot-") + node);
  REQUIRE(b.powered == std::vector<std::string>{"n3"});
  heard_for(b, 6 * kMinute, {"n1", "n2"});
  SECTION("no agent reports by its deadline") {
    b.reactor.advance(10 * kMinute);
    CHECK(b.powered.size() == 1);
    CHECK(b.executor->why("n3")["wait"]["awaited"] == "a message from any agent");
    heard_for(b, 2 * kMinute, {"n1", "n2"});
    CHECK(b.powered.size() == 1);
    SECTION("it comes then") {
      b.hello("n3", wire::Mode::ram, "boot-n3");
      CHECK(b.row("n3").state == NodeState::accepted);
    }
    SECTION("it does not: it is booted again") {
      heard_for(b, 8 * kMinute, {"n1", "n2"});
      CHECK(b.powered.size() == 2);
    }
  }
  SECTION("another agent reports") {
    heard_for(b, 6 * kMinute, {"n1"});
    CHECK(std::count(b.powered.begin(), b.powered.end(), "n3") == 2);
  }
  SECTION("it was seen to be off") {
    b.reactor.advance(kMinute);
    b.power_state = PowerState::off;
    b.reactor.advance(3 * kMinute);
    CHECK(std::count(b.powered.begin(), b.powered.end(), "n3") >= 2);
  }
}

TEST_CASE("a link that comes and goes keeps no node waiting for ever", "[run]") {
  Bench b;
  start_imaging(b);
  DurationMs waited = 0;
  for (; waited < 5 * 60 * kMinute && !std::count(b.powered.begin(), b.powered.end(), "n2");
       waited += 10 * kMinute) {
    b.executor->on_contact("n1", {"boot-n1", wire::Mode::ram});
    b.reactor.advance(10 * kMinute);
  }
  CHECK(waited > 30 * kMinute);
  CHECK(waited <= kTiming.alone_most + 30 * kMinute);
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
  CHECK(b.row("n2").state == NodeState::accepted);
  CHECK(b.row("n1").state == NodeState::installing);
  CHECK(b.ended.empty());
  const Json wait = b.executor->why("n1")["wait"];
  CHECK(wait["awaited"] == "the store");
  CHECK(wait["observed"] == "string or blob too big");
  CHECK_FALSE(b.executor->why("n2").contains("wait"));
  b.store.refuse({}, {});
  b.reactor.advance(10 * kSecond);
  CHECK(b.row("n1").state == NodeState::accepted);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
}

TEST_CASE("a node that is given up while its row is refused says that nothing of it is written", "[run]") {
  Bench b;
  b.conclude = [](const RunRow&) { return Conclusion{}; };
  for (const char* node : {"n1", "n2"}) b.add(action(node, "configure", ActionKind::steps));
  b.start();
  for (const char* node : {"n1", "n2"}) b.hello(node, wire::Mode::installed, std::string("boot-") + node);
  b.store.refuse([](const Write& row) { return is_journal_row(row, "n1", "succeeded"); },
                 fail(Code::failed, "string or blob too big"));
  b.finish("n1");
  b.finish("n2");
  b.executor->quarantine("n1", "no more of it");
  b.reactor.advance(10 * kSecond);
  CHECK(b.ended.empty());
  const Json why = b.executor->why("n1");
  CHECK(why["reason"].get<std::string>().find("no more of it") != std::string::npos);
  CHECK(why["wait"]["awaited"] == "the store");
  CHECK(why["wait"]["observed"] == "string or blob too big");
  CHECK_FALSE(b.executor->why("n2").contains("wait"));
  CHECK(b.executor->unwritten() == "n1: string or blob too big");
  SECTION("the store takes it: the run ends, and nothing is said any more") {
    b.store.refuse({}, {});
    b.reactor.advance(5 * kSecond);
    REQUIRE(b.ended.size() == 1);
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK_FALSE(b.executor->why("n1").contains("wait"));
    CHECK(b.executor->unwritten().empty());
  }
  SECTION("it never does: the run can be cancelled all the same") {
    b.executor->cancel("by an operator");
    b.reactor.advance(5 * kSecond);
    REQUIRE(b.ended.size() == 1);
    CHECK(b.store.run(1)->state == RunState::cancelled);
    CHECK_FALSE(b.executor->active());
    CHECK(b.executor->unwritten() == "n1: string or blob too big");
  }
}

TEST_CASE("a cancelled run ends as soon as anything can be written", "[run]") {
  Bench b;
  b.add(action("n1", "configure", ActionKind::steps));
  b.start();
  b.hello("n1", wire::Mode::installed, "boot-n1");
  b.store.refuse([](const Write&) { return true; }, fail(Code::failed, "disk full"));
  b.executor->cancel("by an operator");
  b.reactor.advance(kMinute);
  CHECK(b.ended.empty());
  CHECK_FALSE(b.executor->unwritten().empty());
  CHECK(b.store.run(1)->state == RunState::running);
  b.store.refuse({}, {});
  b.reactor.advance(5 * kSecond);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.store.run(1)->state == RunState::cancelled);
  CHECK(b.row("n1").reason == "by an operator");
  CHECK(b.executor->unwritten().empty());
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
