// A node that waits goes on when what it waits for comes: a test for each way in which that happens. A wake
// that is left out makes the node wait for good, which nothing else would show.
#include <fmt/format.h>

#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

using testing::action;

struct Bench : testing::RunBench {
  void steps(const std::string& node, const std::string& name, std::vector<Dependency> after = {}) {
    Action a = action(node, name, ActionKind::steps);
    a.max_attempts = 1;
    add(a, std::move(after));
  }
  void image(const std::string& node) {
    Action a = action(node, "image", ActionKind::image);
    a.max_attempts = 1;
    add(a);
  }
  void behind(const std::string& node, const std::string& name) {
    steps(node, name);
    plan.actions.back().behind = 0;
  }
  void starts(const std::vector<std::string>& nodes) {
    start();
    for (const auto& node : nodes) hello(node, wire::Mode::installed, node + "-boot");
  }
  void ram(const std::string& node) { hello(node, wire::Mode::ram, node + "-ram"); }
  void fails(const std::string& node) { finish(node, false, "denied"); }
  bool does(const std::string& node, const std::string& name) {
    return offered(node) == id(node + "/" + name, 1);
  }
  std::string state(const std::string& node) {
    return executor->why(NodeName(node))["state"].get<std::string>();
  }
  std::string waits(const std::string& node, const char* what) {
    return executor->why(NodeName(node))["wait"][what].get<std::string>();
  }
  // In the order in which they became durable.
  std::vector<std::string> begun() {
    std::vector<std::string> actions;
    for (const auto& row : store.journal(1).value_or({}))
      if (row.event == "intent") actions.push_back(row.action);
    return actions;
  }
};

}  // namespace

TEST_CASE("wake: an action that succeeded, of a node that goes on", "[run][ready]") {
  for (const bool hard : {true, false}) {
    Bench b;
    b.steps("n1", "first");
    b.steps("n1", "more");
    b.steps("n2", "second", {{"n1/first", hard}});
    b.starts({"n1", "n2"});
    CHECK(b.state("n2") == "waiting");
    CHECK(b.offered("n2").empty());
    b.finish("n1");
    CHECK(b.does("n1", "more"));
    CHECK(b.does("n2", "second"));
  }
}

TEST_CASE("wake: the next of several actions that are waited for", "[run][ready]") {
  Bench b;
  for (const char* node : {"n1", "n2"}) {
    b.steps(node, "first");
    b.steps(node, "more");
  }
  b.steps("n3", "second", {{"n1/first"}, {"n2/first"}});
  b.starts({"n1", "n2", "n3"});
  SECTION("in their order") {
    b.finish("n1");
    CHECK(b.waits("n3", "awaited") == "n2: first");
    b.finish("n2");
  }
  SECTION("the other way round") {
    b.finish("n2");
    CHECK(b.waits("n3", "awaited") == "n1: first");
    b.finish("n1");
  }
  CHECK(b.does("n3", "second"));
}

TEST_CASE("wake: a node that is quarantined", "[run][ready]") {
  Bench b;
  b.steps("n1", "first");
  b.steps("n2", "soft", {{"n1/first", false}});
  b.steps("n3", "hard", {{"n1/first", true}});
  b.steps("n4", "first");
  b.starts({"n1", "n2", "n3", "n4"});
  SECTION("it fails") { b.fails("n1"); }
  SECTION("by an operator's word") {
    b.executor->quarantine("n1", "smoke");
    b.reactor.advance(100);
  }
  CHECK(b.state("n1") == "quarantined");
  CHECK(b.does("n2", "soft"));
  CHECK(b.state("n3") == "quarantined");
  CHECK(b.row("n3").reason.find("needs n1/first, which will not happen: n1 ") != std::string::npos);
}

TEST_CASE("wake: a node that is not started any more", "[run][ready]") {
  Bench b;
  b.plan.limits.parallel_imaging = 1;
  b.plan.limits.failure_budget = 0;
  b.steps("n1", "first");  // before the others, so that it is looked at before they stand down
  b.steps("n1", "second", {{"n3/image", false}});
  b.image("n2");
  b.image("n3");
  b.starts({"n1"});
  b.finish("n1");
  b.ram("n2");
  CHECK(b.waits("n1", "awaited") == "n3: image");
  b.fails("n2");
  CHECK(b.state("n3") == "not_started");
  CHECK(b.does("n1", "second"));
}

TEST_CASE("wake: a node that goes back to its old system", "[run][ready]") {
  Bench b;
  b.steps("n1", "pause");
  b.steps("n1", "later");
  b.steps("n1", "resume-old");
  b.plan.actions.back().when_failed = true;
  b.steps("n2", "second", {{"n1/later", false}});
  b.starts({"n1", "n2"});
  CHECK(b.offered("n2").empty());
  b.fails("n1");
  CHECK(b.does("n1", "resume-old"));
  CHECK(b.does("n2", "second"));
}

TEST_CASE("wake: a task for a person", "[run][ready]") {
  Bench b;
  b.persons["n1"] = {"rack 3", 60 * kMinute};
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.steps("n2", "soft", {{"n1/netboot", false}});
  b.steps("n3", "hard", {{"n1/netboot", true}});
  b.starts({"n2", "n3"});
  CHECK(b.does("n2", "soft"));
  CHECK(b.state("n3") == "waiting");
  b.ram("n1");  // they came
  CHECK(b.does("n3", "hard"));
}

TEST_CASE("wake: a place in a lane", "[run][ready]") {
  Bench b;
  b.plan.limits.parallel_imaging = b.plan.limits.parallel_netboot = 1;
  SECTION("for an image, in the plan's order") {
    for (const char* node : {"n1", "n2", "n3"}) b.image(node);
    b.start();
    for (const char* node : {"n1", "n2", "n3"}) b.ram(node);
    CHECK(b.begun() == std::vector<std::string>{"n1/image"});
    CHECK(b.waits("n2", "reason") == "a limit of the plan is reached");
    b.finish("n1");
    CHECK(b.does("n2", "image"));
    CHECK(b.offered("n3").empty());
    b.fails("n2");
    CHECK(b.does("n3", "image"));
  }
  SECTION("for a power cycle") {
    for (const char* node : {"n1", "n2"}) b.add(action(node, "netboot", ActionKind::netboot));
    b.start();
    CHECK(b.powered == std::vector<std::string>{"n1"});
    b.ram("n1");
    CHECK(b.powered == std::vector<std::string>{"n1", "n2"});
  }
  SECTION("a node that waited and is out takes none") {
    for (const char* node : {"n1", "n2", "n3"}) b.image(node);
    b.start();
    for (const char* node : {"n1", "n2", "n3"}) b.ram(node);
    b.executor->quarantine("n2", "smoke");
    b.finish("n1");
    CHECK(b.offered("n2").empty());
    CHECK(b.does("n3", "image"));
  }
}

TEST_CASE("wake: a barrier whose last member settles, for all who wait there, in the plan's order",
          "[run][ready]") {
  Bench b;
  b.plan.barriers = {{"n1/first", "n2/first", "n3/first"}};
  for (const char* node : {"n1", "n2", "n3"}) {
    b.steps(node, "first");
    b.behind(node, "second");
  }
  b.starts({"n1", "n2", "n3"});
  for (const char* node : {"n3", "n1", "n2"}) {
    CHECK(b.begun().size() == 3);
    b.finish(node);
  }
  CHECK(b.begun() ==
        std::vector<std::string>{"n1/first", "n2/first", "n3/first", "n1/second", "n2/second", "n3/second"});
  for (const char* node : {"n1", "n2", "n3"}) CHECK(b.does(node, "second"));
}

TEST_CASE("wake: a barrier whose members have nothing more to do", "[run][ready]") {
  Bench b;
  b.plan.barriers = {{"n1/first", "n2/first"}};
  b.steps("n1", "first");
  b.steps("n2", "first");
  b.behind("n3", "second");
  b.behind("n4", "second");
  b.starts({"n1", "n2", "n3", "n4"});
  SECTION("they come through") {
    b.finish("n1");
    b.finish("n2");
  }
  SECTION("the other way round") {
    b.finish("n2");
    b.finish("n1");
  }
  SECTION("they fail") {
    b.fails("n1");
    CHECK(b.offered("n3").empty());
    b.fails("n2");
  }
  CHECK(b.does("n3", "second"));
  CHECK(b.does("n4", "second"));
}

TEST_CASE("what is waited for at a barrier is shown as it is now", "[run][ready]") {
  Bench b;
  b.plan.barriers = {{"n1/first", "n2/first", "n3/other"}};
  b.steps("n1", "first");
  b.steps("n2", "first");
  b.steps("n3", "other");
  for (Action& a : b.plan.actions) a.title += " (" + a.node + " steps)";  // of each node another number
  b.behind("n4", "second");
  b.starts({"n1", "n2", "n3", "n4"});
  CHECK(b.waits("n4", "awaited") == "all nodes: first");
  CHECK(b.waits("n4", "observed") == "n1/first: intent");
  b.executor->on_event("n1", {1, 0, b.offered("n1"), "started", Json::object()});
  CHECK(b.waits("n4", "observed") == "n1/first: started");
  b.finish("n1");
  CHECK(b.waits("n4", "awaited") == "all nodes: first");
  CHECK(b.waits("n4", "observed") == "n2/first: intent");
  b.finish("n2");
  CHECK(b.waits("n4", "awaited") == "all nodes: other");
  b.finish("n3");
  CHECK(b.does("n4", "second"));
}

TEST_CASE("wake: the failure budget is spent", "[run][ready]") {
  Bench b;
  b.plan.limits.failure_budget = 1;
  for (const char* node : {"n1", "n2", "n3"}) b.steps(node, "first");
  b.steps("n4", "second", {{"n3/first", false}});
  b.starts({"n1", "n2", "n3", "n4"});
  b.fails("n1");
  CHECK(b.state("n4") == "waiting");
  b.fails("n2");
  CHECK(b.state("n4") == "not_started");
  CHECK(b.row("n4").reason == "not started: 2 nodes failed and the failure budget is 1");
  b.finish("n3");
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::partial);
}

TEST_CASE("a node that is taken out behind its success counts as failed", "[run][ready]") {
  Bench b;
  for (const char* node : {"n1", "n2"}) b.steps(node, "first");
  b.starts({"n1", "n2"});
  b.finish("n1");
  b.executor->quarantine("n1", "smoke");
  SECTION("one came through") {
    b.finish("n2");
    CHECK(b.ended.at(0).state == RunState::partial);
  }
  SECTION("none did") {
    b.fails("n2");
    CHECK(b.ended.at(0).state == RunState::failed);
  }
}

TEST_CASE("wake: a controller that comes back", "[run][ready]") {
  Bench b;
  b.plan.limits.parallel_imaging = 1;
  b.plan.barriers = {{"n1/image"}};
  b.image("n1");
  b.image("n2");
  b.steps("n3", "second", {{"n1/image"}});
  b.behind("n4", "second");
  b.steps("n5", "first");
  b.starts({"n3", "n4", "n5"});
  b.ram("n1");
  b.ram("n2");
  b.fails("n5");
  b.restart();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(100);
  for (const char* node : {"n3", "n4"}) b.hello(node, wire::Mode::installed, std::string(node) + "-boot");
  b.ram("n1");
  b.ram("n2");
  CHECK(b.offered("n2").empty());
  b.finish("n1");
  CHECK(b.does("n2", "image"));
  CHECK(b.does("n3", "second"));
  CHECK(b.does("n4", "second"));
  for (const char* node : {"n2", "n3", "n4"}) b.finish(node);
  REQUIRE(b.ended.size() == 1);  // n5, which was out before, counts
  CHECK(b.ended[0].state == RunState::partial);
}

TEST_CASE("a large cluster is looked at in pieces, in order, and what changes meanwhile is not missed",
          "[run][ready]") {
  Bench b;
  std::vector<std::string> nodes, begun;
  for (int i = 0; i < 200; ++i) nodes.push_back(fmt::format("n{:03}", i));
  // It waits for one in the third piece, which is out as soon as it is looked at.
  b.steps(nodes[0], "first", {{"n150/first", false}});
  for (int i = 1; i < 200; ++i)
    if (i == 150)
      b.steps(nodes[150], "first", {{"nobody/first", true}});
    else
      b.steps(nodes[static_cast<size_t>(i)], "first");
  b.start();
  for (size_t i = 1; i < 200; ++i)
    if (i != 150) begun.push_back(nodes[i] + "/first");
  begun.push_back("n000/first");
  CHECK(b.begun() == begun);
  CHECK(b.state("n150") == "quarantined");
  for (const auto& node : nodes) {
    if (node == "n150") continue;
    b.hello(node, wire::Mode::installed, node + "-boot");
    b.finish(node);
  }
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::partial);
}

TEST_CASE("of a large cluster a part begins in one task", "[run][ready]") {
  Bench b;
  for (int i = 0; i < 200; ++i) b.steps(fmt::format("n{:03}", i), "first");
  b.live();
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  size_t most = 0, all = 0;
  for (int i = 0; i < 100 && b.reactor.step(); ++i) {
    const size_t begun = b.executor->log().all().size();
    most = std::max(most, begun - all);
    all = begun;
  }
  CHECK(all == 200);
  CHECK(most > 1);
  CHECK(most <= 100);
}

TEST_CASE("a fault at one node does not end the look at those behind it", "[run][ready]") {
  Bench b;
  b.jammed = "n1";
  b.steps("n1", "first", {{"nobody/first", true}});
  b.steps("n2", "first");
  b.starts({"n2"});
  CHECK(b.state("n1") == "quarantined");
  CHECK(b.does("n2", "first"));
  b.finish("n2");
  CHECK(b.ended.at(0).state == RunState::partial);
}

TEST_CASE("a smaller run begins behind one that was cancelled in the middle of a look", "[run][ready]") {
  Bench b;
  for (int i = 0; i < 200; ++i) b.steps(fmt::format("n{:03}", i), "first");
  b.live();
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  for (int i = 0; i < 100 && b.executor->log().all().empty(); ++i) REQUIRE(b.reactor.step());
  REQUIRE(b.executor->log().all().size() < 200);
  for (const char* node : {"n000", "n001"})
    b.executor->on_hello({NodeName(node), wire::Mode::installed, node, "", "", false});
  b.executor->cancel("enough");
  b.reactor.advance(100);
  REQUIRE(b.ended.size() == 1);
  b.plan = {};
  b.plan.kind = PlanKind::install;
  b.steps("n002", "second");
  b.steps("n001", "second", {{"n002/second", true}});
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  b.reactor.advance(100);
  for (const char* node : {"n002", "n001"}) {
    CHECK(b.executor->kept_wrong(0).empty());
    CHECK(b.executor->kept_wrong(1).empty());
    b.hello(node, wire::Mode::installed, std::string(node) + "-boot");
    REQUIRE(b.offers.count(node) == 1);
    b.finish(node);
  }
  REQUIRE(b.ended.size() == 2);
  CHECK(b.ended[1].state == RunState::done);
}

TEST_CASE("a node that is out takes no place when all are looked at", "[run][ready]") {
  Bench b;
  b.plan.limits.failure_budget = 0;
  b.plan.limits.parallel_imaging = 1;
  for (const char* node : {"n1", "n2"}) {
    b.add(action(node, "netboot", ActionKind::netboot));
    b.image(node);
  }
  b.start();
  b.reactor.advance(kMinute);  // their power is switched one after the other
  b.ram("n1");
  b.ram("n2");
  b.fails("n1");
  REQUIRE(b.state("n1") == "quarantined");
  CHECK(b.does("n2", "image"));
}

TEST_CASE("that a disk is written is in the node's row with the intent", "[run]") {
  Bench b;
  b.image("n1");
  b.steps("n2", "first");
  b.store.refuse(
      [](const Write& row) {
        const auto* entry = std::get_if<JournalRow>(&row);
        return entry && entry->action == "n1/image";
      },
      fail(Code::failed, "no"));
  b.start();
  CHECK(b.row("n1").disk_written.empty());  // all or nothing
  b.store.refuse({}, {});
  b.reactor.advance(2 * kSecond);
  REQUIRE(b.begun().size() == 2);
  CHECK(b.row("n1").disk_written.count("") == 1);
  CHECK(b.row("n2").disk_written.empty());
}

TEST_CASE("that a disk is written is marked by the next controller where rows could not be read", "[run]") {
  Bench b;
  b.steps("n2", "first");
  b.add(action("n1", "image", ActionKind::image), {{"n2/first"}});
  b.starts({"n2"});
  b.restart();
  b.store.fail_reads(1'000'000, fail(Code::failed, "disk I/O error"));
  REQUIRE(b.executor->resume(1).ok());
  b.hello("n2", wire::Mode::installed, "n2-boot");
  b.finish("n2");
  REQUIRE(b.begun() == std::vector<std::string>{"n2/first", "n1/image"});
  b.executor.reset();
  b.store.crash(MemStore::Unsynced::lost);
  b.store.fail_reads(0, fail(Code::failed, ""));
  CHECK(b.row("n1").disk_written.empty());
  b.restart();
  const Status resumed = b.executor->resume(1);
  INFO((resumed.ok() ? "" : resumed.error().message));
  REQUIRE(resumed.ok());
  b.reactor.advance(100);
  CHECK(b.row("n1").disk_written.count("") == 1);
}

TEST_CASE("whose silence counts against the controller itself has an order now", "[run][ready]") {
  Bench b;
  for (const char* node : {"n1", "n2", "n3"}) b.steps(node, "first");
  b.starts({"n1", "n2"});
  b.finish("n1");
  b.finish("n2");
  b.hello("n3", wire::Mode::installed, "n3-boot");
  REQUIRE(b.does("n3", "first"));
  b.reactor.advance(kMinute);  // no agent reports, and only one should
  CHECK(b.looks > 0);
  CHECK(b.waits("n3", "reason").find("the controller itself may be cut off") == std::string::npos);
}
