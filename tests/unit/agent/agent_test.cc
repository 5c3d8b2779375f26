#include "agent/core/agent.h"

#include <algorithm>
#include <memory>
#include <set>

#include "agent/work/file_journal.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;

namespace {

struct MemJournal : AgentJournal {
  explicit MemJournal(Reactor& r) : reactor(r) {}
  Result<std::vector<OrderRecord>> load() override { return records; }
  void append(const OrderRecord& record, Done done) override {
    reactor.post([this, record, done] {
      records.push_back(record);
      done(Ok{});
    });
  }
  Reactor& reactor;
  std::vector<OrderRecord> records;
};

using Parts = std::vector<std::pair<wire::OrderKind, OrderPart>>;
// What gets ready first, and then goes.
wire::OrderKind departure() { return GENERATE(wire::OrderKind::kexec, wire::OrderKind::boot_slot); }

wire::WorkOrder with_preconditions(const std::string& id) {
  wire::WorkOrder order;
  order.id = OrderId(id);
  order.kind = GENERATE(wire::OrderKind::power_off, wire::OrderKind::reboot, wire::OrderKind::boot_slot);
  order.preconditions = Json::array();
  return order;
}

// A controller end that keeps orders on offer and every event once.
struct FakeLink : ControllerLink {
  explicit FakeLink(Reactor& r) : reactor(r) {}
  void poll(const std::vector<std::string>& have, Orders done) override {
    ++polls;
    wire::PollReply news;
    for (const auto& [id, order] : offered)
      if (std::find(have.begin(), have.end(), id) == have.end()) news.orders.push_back(order);
    for (const auto& id : have)
      if (withdrawn.count(id)) news.withdrawn.push_back(id);
    if (down) return (void)reactor.after(1000, [done] { done(fail(Code::unavailable, "no route")); });
    reactor.after(news.orders.empty() && news.withdrawn.empty() ? 1000 : 5, [done, news] { done(news); });
  }
  void post(const wire::EventBatch& batch, Acked done) override {
    if (down) return (void)reactor.after(1000, [done] { done(fail(Code::timeout, "no answer")); });
    for (const auto& e : batch.events)
      if (e.seq > seen) events.push_back(e), seen = e.seq;
    if (lose_replies) return (void)reactor.after(1000, [done] { done(fail(Code::timeout, "no answer")); });
    reactor.after(5, [this, done] { done(seen); });
  }
  size_t count(const std::string& kind, const std::string& order = "") const {
    size_t n = 0;
    for (const auto& e : events) n += e.kind == kind && (order.empty() || e.order == order);
    return n;
  }
  Reactor& reactor;
  std::map<std::string, wire::WorkOrder> offered;
  std::set<std::string> withdrawn;
  std::vector<wire::Event> events;
  uint64_t seen = 0;
  int polls = 0;
  bool down = false, lose_replies = false;
};

struct FakeRunner : WorkRunner {
  explicit FakeRunner(Reactor& r) : reactor(r) {}
  void run(const wire::WorkOrder& order, OrderPart part, Emit e, Done done) override {
    runs.push_back(order.id);
    parts.push_back({order.kind, part});
    emit = e;
    finish = done;
    if (takes >= 0) reactor.after(takes, [done] { done({Ok{}, {{"answer", 42}}}); });
  }
  void cancel() override {
    ++cancels;
    if (obeys) reactor.post([this] { finish({fail(Code::cancelled, "stopped"), Json::object()}); });
  }
  Reactor& reactor;
  std::vector<std::string> runs;
  Parts parts;
  Emit emit;
  Done finish;
  DurationMs takes = 100;
  int cancels = 0;
  bool obeys = true;
};

struct Bench {
  ManualReactor reactor;
  FakeLink link{reactor};
  MemJournal journal{reactor};
  FakeRunner runner{reactor};
  AgentOptions options;
  std::function<bool()> on_trial;
  std::unique_ptr<Agent> agent;

  void start(const std::string& incarnation = "i1") {
    link.seen = 0;
    AgentIdentity identity;
    identity.boot_id = "b1";
    identity.incarnation = incarnation;
    identity.on_trial = on_trial;
    agent = std::make_unique<Agent>(reactor, link, journal, runner, identity, options);
    REQUIRE(agent->start().ok());
  }
  void offer(const std::string& id, wire::OrderKind kind = wire::OrderKind::steps,
             DurationMs deadline = kMinute) {
    link.offered[id] = {OrderId(id), kind, Json::object(), deadline};
  }
};

}  // namespace

TEST_CASE("hello is acknowledged before the first poll; an order runs once and is reported", "[agent]") {
  Bench b;
  b.link.down = true;
  b.start();
  b.offer("1/a#1");
  b.reactor.advance(20 * kSecond);
  CHECK(b.link.polls == 0);
  b.link.down = false;
  b.reactor.advance(kMinute);
  REQUIRE_FALSE(b.link.events.empty());
  CHECK(b.link.events[0].kind == "hello");
  CHECK(b.runner.runs == std::vector<std::string>{"1/a#1"});
  // Still on offer: the result comes again, the work does not.
  CHECK(b.link.count("finished", "1/a#1") >= 2);
  CHECK(b.link.events.back().data["result"]["answer"] == 42);
}

TEST_CASE("an agent's hello says whether its boot is on trial, as it is then", "[agent][in-place]") {
  Bench b;
  bool trial = true;
  const auto reported = [&b](const std::string& incarnation) {
    b.link.events.clear();
    b.start(incarnation);
    b.reactor.advance(kSecond);
    REQUIRE_FALSE(b.link.events.empty());
    return b.link.events[0].data.at("trial");
  };
  CHECK(reported("i1") == false);  // where it is unknown
  b.on_trial = [&trial] { return trial; };
  CHECK(reported("i2") == true);
  trial = false;  // committed; the agent is started again
  CHECK(reported("i3") == false);
}

TEST_CASE("a lost acknowledgement does not double an event", "[agent]") {
  Bench b;
  b.start();
  b.reactor.advance(kSecond);
  b.link.lose_replies = true;
  b.offer("1/a#1");
  b.reactor.advance(kMinute);
  CHECK(b.runner.runs.size() == 1);
  CHECK(b.link.count("finished") == 1);
  b.link.offered.clear();
  b.link.lose_replies = false;
  b.reactor.advance(2 * kMinute);
  CHECK(b.agent->backlog() == 0);
  CHECK(b.link.count("finished") == 1);
}

TEST_CASE("after a restart a finished order is re-sent and an unfinished one runs again", "[agent]") {
  Bench b;
  b.start();
  b.offer("1/a#1");
  b.reactor.advance(kMinute);
  b.runner.takes = -1;
  b.offer("1/b#1", wire::OrderKind::steps, 3600 * kSecond);
  b.reactor.advance(kMinute);
  REQUIRE(b.runner.runs.size() == 2);
  b.agent.reset();
  b.link.events.clear();
  b.runner.takes = 100;
  b.start("i2");
  b.reactor.advance(kMinute);
  CHECK(b.runner.runs == std::vector<std::string>{"1/a#1", "1/b#1", "1/b#1"});
  CHECK(b.link.count("finished", "1/a#1") >= 1);
  CHECK(b.link.count("finished", "1/b#1") >= 1);
}

TEST_CASE("boot_disk is reported and acknowledged before it is carried out", "[agent]") {
  Bench b;
  b.start();
  b.reactor.advance(kSecond);
  b.link.lose_replies = true;
  b.offer("1/boot#1", wire::OrderKind::boot_disk);
  b.reactor.advance(2 * kMinute);
  CHECK(b.link.count("finished", "1/boot#1") == 1);
  CHECK(b.runner.runs.empty());
  b.link.lose_replies = false;
  b.reactor.advance(2 * kMinute);
  CHECK(b.runner.runs == std::vector<std::string>{"1/boot#1"});
}

TEST_CASE("a deadline ends the work as timeout, also when it does not stop", "[agent]") {
  Bench b;
  b.runner.takes = -1;
  b.runner.obeys = GENERATE(true, false);
  b.start();
  b.offer("1/a#1", wire::OrderKind::steps, 10 * kSecond);
  b.reactor.advance(kMinute);
  CHECK(b.runner.cancels == 1);
  REQUIRE(b.link.count("finished") >= 1);
  CHECK(b.link.events.back().data["code"] == "timeout");
  // The next order starts only once the runner is free.
  b.link.offered.clear();
  b.offer("1/b#1");
  b.reactor.advance(kMinute);
  CHECK(b.runner.runs.size() == (b.runner.obeys ? 2 : 1));
  if (!b.runner.obeys) b.runner.finish({Ok{}, Json::object()});
  b.reactor.advance(kSecond);
  CHECK(b.runner.runs.size() == 2);
}

TEST_CASE(
    "withdrawn work stops, what waits behind it is begun only then, and withdrawn work that waits never",
    "[agent]") {
  Bench b;
  b.runner.takes = -1;
  b.runner.obeys = false;
  b.start();
  b.offer("1/a#1");
  b.reactor.advance(5 * kSecond);
  REQUIRE(b.runner.runs == std::vector<std::string>{"1/a#1"});
  b.offer("1/b#1");
  b.reactor.advance(5 * kSecond);
  b.link.offered.clear();
  b.link.withdrawn = {"1/a#1", "1/b#1"};
  b.reactor.advance(5 * kSecond);
  CHECK(b.runner.cancels == 1);
  b.offer("2/a#1");
  b.reactor.advance(5 * kSecond);
  CHECK(b.runner.runs.size() == 1);  // the first is between two safe points yet
  b.runner.finish({fail(Code::cancelled, "stopped"), Json::object()});
  b.reactor.advance(5 * kSecond);
  CHECK(b.runner.runs == std::vector<std::string>{"1/a#1", "2/a#1"});
  CHECK(b.link.count("finished", "1/a#1") == 1);
  b.runner.finish({Ok{}, Json::object()});
  b.reactor.advance(5 * kSecond);
  CHECK(b.link.count("finished", "2/a#1") >= 1);
  CHECK(b.runner.cancels == 1);
}

TEST_CASE("a departure that the controller heard of is not called off by its order being withdrawn",
          "[agent]") {
  Bench b;
  b.start();
  b.reactor.advance(kSecond);
  b.link.lose_replies = true;
  b.offer("1/boot#1", wire::OrderKind::boot_disk);
  b.reactor.advance(5 * kSecond);
  REQUIRE(b.link.count("finished", "1/boot#1") == 1);
  b.link.offered.clear();
  b.link.withdrawn = {"1/boot#1"};  // as the executor does when it hears that the node goes
  b.reactor.advance(5 * kSecond);
  b.link.lose_replies = false;
  b.reactor.advance(kMinute);
  CHECK(b.runner.runs == std::vector<std::string>{"1/boot#1"});
  CHECK(b.runner.cancels == 0);
}

TEST_CASE("kexec gets ready first, and goes when that was acknowledged", "[agent][kexec]") {
  const wire::OrderKind kind = departure();
  Bench b;
  b.start();
  b.reactor.advance(kSecond);
  b.link.lose_replies = true;
  b.offer("1/n#1-kexec", kind);
  b.reactor.advance(2 * kMinute);
  CHECK(b.runner.parts == Parts{{kind, OrderPart::work}});
  REQUIRE(b.link.count("finished", "1/n#1-kexec") == 1);
  b.link.offered.clear();  // let go, as the executor does when it hears that the node goes
  b.reactor.advance(10 * kSecond);
  b.link.lose_replies = false;
  b.reactor.advance(2 * kMinute);
  CHECK(b.runner.parts == Parts{{kind, OrderPart::work}, {kind, OrderPart::leave}});
  CHECK(b.runner.cancels == 0);
  // The same order after the next boot does nothing but say what it said.
  b.offer("1/n#1-kexec", kind);
  b.runner.parts.clear();
  b.link.events.clear();
  b.start("i2");
  b.reactor.advance(kMinute);
  CHECK(b.runner.parts.empty());
  CHECK(b.link.count("finished", "1/n#1-kexec") >= 1);
}

TEST_CASE("kexec that is withdrawn before it goes is unloaded, whatever it said until then",
          "[agent][kexec]") {
  const std::string id = "1/n#1-kexec";
  const wire::OrderKind kind = departure();
  Bench b;
  b.start();
  b.reactor.advance(kSecond);
  b.runner.obeys = false;
  SECTION("after its last look, and it got ready") {
    b.runner.takes = -1;
    b.offer(id, kind);
    b.reactor.advance(5 * kSecond);
    REQUIRE(b.runner.parts == Parts{{kind, OrderPart::work}});
    b.link.offered.clear();
    b.link.withdrawn = {id};
    b.reactor.advance(5 * kSecond);
    CHECK(b.runner.cancels == 1);
    b.runner.takes = 100;
    const auto finish = b.runner.finish;  // which the unloading replaces
    finish({Ok{}, Json::object()});
    b.reactor.advance(kMinute);
    CHECK(b.link.count("finished", id) == 1);
  }
  SECTION("after it reported, and before that was acknowledged") {
    b.link.lose_replies = true;
    b.offer(id, kind);
    b.reactor.advance(5 * kSecond);
    REQUIRE(b.link.count("finished", id) == 1);
    b.link.offered.clear();
    b.link.withdrawn = {id};
    b.reactor.advance(5 * kSecond);
    b.link.lose_replies = false;
    b.reactor.advance(kMinute);
    CHECK(b.link.count("finished", id) == 2);
  }
  SECTION("after its deadline, and it got ready all the same") {
    b.runner.takes = -1;
    b.offer(id, kind, 10 * kSecond);
    b.reactor.advance(kMinute);
    REQUIRE(b.runner.parts == Parts{{kind, OrderPart::work}});
    REQUIRE(b.link.count("finished", id) >= 1);
    b.runner.takes = 100;
    const auto finish = b.runner.finish;  // which the unloading replaces
    finish({Ok{}, Json::object()});
    b.reactor.advance(kMinute);
  }
  CHECK(b.runner.parts == Parts{{kind, OrderPart::work}, {kind, OrderPart::drop}});
  const auto& said = b.journal.records.back();
  CHECK(said.finish["ok"] == false);
  CHECK((said.finish["code"] == "cancelled" || said.finish["code"] == "timeout"));
  // It works on.
  b.link.offered.clear();
  b.link.withdrawn.clear();
  b.offer("1/a#1");
  b.reactor.advance(kMinute);
  CHECK(b.runner.parts ==
        Parts{{kind, OrderPart::work}, {kind, OrderPart::drop}, {wire::OrderKind::steps, OrderPart::work}});
  CHECK(b.link.count("finished", "1/a#1") >= 1);
}

TEST_CASE("a boot of the other slot that is withdrawn while it goes is stopped at the runner",
          "[agent][in-place]") {
  const std::string id = "1/n#1-boot";
  const wire::OrderKind kind = GENERATE(wire::OrderKind::boot_slot, wire::OrderKind::kexec);
  Bench b;
  b.start();
  b.offer(id, kind);
  b.reactor.advance(50);
  b.runner.takes = -1;  // the restart is only late
  b.reactor.advance(5 * kSecond);
  REQUIRE(b.runner.parts == Parts{{kind, OrderPart::work}, {kind, OrderPart::leave}});
  b.link.offered.clear();
  b.link.withdrawn = {id};
  b.offer("1/a#1");
  b.reactor.advance(5 * kSecond);
  const bool stops = kind == wire::OrderKind::boot_slot;
  CHECK(b.runner.cancels == (stops ? 1 : 0));
  // Nothing is undone twice, and what waited is begun in the system that stayed.
  const Parts gone = {{kind, OrderPart::work}, {kind, OrderPart::leave}};
  if (!stops) {
    CHECK(b.runner.parts == gone);
    return;
  }
  REQUIRE(b.runner.parts.size() == 3);
  CHECK(b.runner.parts.back().first == wire::OrderKind::steps);
  CHECK(b.runner.parts.back().second == OrderPart::work);
  CHECK(b.link.count("finished", id) == 1);
  CHECK(b.agent->running() == "1/a#1");
}

TEST_CASE("kexec that cannot be got ready, or is withdrawn before it is, goes nowhere", "[agent][kexec]") {
  const wire::OrderKind kind = departure();
  Bench b;
  b.runner.takes = -1;
  b.start();
  b.offer("1/n#1-kexec", kind);
  b.reactor.advance(5 * kSecond);
  REQUIRE(b.runner.runs.size() == 1);
  SECTION("refused") { b.runner.finish({fail(Code::denied, "lockdown"), Json::object()}); }
  SECTION("withdrawn") {
    b.link.offered.clear();
    b.link.withdrawn = {"1/n#1-kexec"};
    b.reactor.advance(5 * kSecond);
    CHECK(b.runner.cancels == 1);
  }
  SECTION("too slow") { b.reactor.advance(2 * kMinute); }
  b.reactor.advance(kMinute);
  REQUIRE(b.link.count("finished", "1/n#1-kexec") >= 1);
  CHECK(b.runner.runs.size() == 1);
  // It works on.
  b.link.offered.clear();
  b.link.withdrawn.clear();
  b.runner.takes = 100;
  b.offer("1/a#1");
  b.reactor.advance(kMinute);
  CHECK(b.link.count("finished", "1/a#1") >= 1);
}

TEST_CASE("a full buffer loses log lines, then progress, never steps or results", "[agent]") {
  Bench b;
  b.options.buffer_events = 10;
  b.runner.takes = -1;
  b.start();
  b.offer("1/a#1");
  b.reactor.advance(kSecond);
  b.link.down = true;
  for (int i = 0; i < 30; ++i) b.runner.emit("log", {{"text", "x"}});
  for (int i = 0; i < 30; ++i) b.runner.emit("progress", {{"done", i}});
  for (int i = 0; i < 30; ++i) b.runner.emit("step", {{"step", std::to_string(i)}});
  b.runner.finish({Ok{}, Json::object()});
  b.reactor.advance(kMinute);
  b.link.down = false;
  b.link.offered.clear();
  b.reactor.advance(kMinute);
  CHECK(b.link.count("log") == 0);
  CHECK(b.link.count("progress") == 0);
  CHECK(b.link.count("step") == 30);
  CHECK(b.link.count("finished") == 1);
}

TEST_CASE("the order journal survives in its file, newest record of an order last", "[agent]") {
  ManualReactor reactor;
  const std::string root =
      "/tmp/muster-journal-test-" + std::to_string(reinterpret_cast<uintptr_t>(&reactor));
  const Files files(root);
  Status written = fail(Code::failed, "never called");
  {
    FileJournal journal(reactor, files, "/state/muster/journal");
    REQUIRE(journal.load().ok());
    journal.append({"1/a#1", "steps", false, {}}, [](Status) {});
    journal.append({"1/a#1", "steps", true, {{"ok", true}}}, [&](Status s) { written = s; });
    reactor.advance(1);
    REQUIRE(written.ok());
  }
  FileJournal again(reactor, files, "/state/muster/journal");
  const auto records = again.load();
  REQUIRE(records.ok());
  REQUIRE(records->size() == 1);
  CHECK((*records)[0].finished);
  CHECK((*records)[0].finish["ok"] == true);
  REQUIRE(files.write("/state/muster/journal", "{broken\n").ok());
  CHECK(FileJournal(reactor, files, "/state/muster/journal").load().error().code == Code::corrupt);
  REQUIRE(files.remove("/state/muster/journal").ok());
}

TEST_CASE("a departure with preconditions is prepared first, even where nothing else is to prepare",
          "[agent]") {
  Bench b;
  b.start();
  const std::string id = "1/n#1-stop";
  const wire::WorkOrder order = b.link.offered[id] = with_preconditions(id);
  SECTION("they hold") {
    b.reactor.advance(5 * kSecond);
    CHECK(b.runner.parts == Parts{{order.kind, OrderPart::work}, {order.kind, OrderPart::leave}});
    CHECK(b.link.count("finished", id) >= 1);
    return;
  }
  b.runner.takes = -1;
  b.reactor.advance(2 * kSecond);
  const WorkOutcome refused = {fail(Code::conflict, "it has jobs"), {{"precondition", "a/b"}}};
  SECTION("they do not") { b.runner.finish(refused); }
  SECTION("they did, and do not any more when that is acknowledged") {
    b.runner.finish({Ok{}, Json::object()});
    b.reactor.advance(2 * kSecond);
    REQUIRE(b.runner.parts.back() == std::pair{order.kind, OrderPart::leave});
    REQUIRE(b.link.events.back().data["ok"] == true);
    b.runner.finish(refused);
  }
  b.reactor.advance(2 * kSecond);
  const wire::Event& last = *std::find_if(b.link.events.rbegin(), b.link.events.rend(),
                                          [](const wire::Event& e) { return e.kind == "finished"; });
  CHECK(last.data["ok"] == false);
  CHECK(last.data["code"] == "conflict");
  CHECK(last.data["result"]["precondition"] == "a/b");
  b.link.offered.clear();
  b.offer("2/n#1");
  b.reactor.advance(2 * kSecond);
  CHECK(b.runner.runs.back() == "2/n#1");  // it works on
}
