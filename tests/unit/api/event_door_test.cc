// What the controller takes of an agent's events: of its own kinds, cleaned, and no more than its share.
#include "controller/link/event_door.h"

#include <functional>
#include <vector>

#include "base/event_kind.h"
#include "base/json_at.h"
#include "controller/link/link_hub.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

const NodeName kNode("login01");

struct Door {
  ManualReactor reactor;
  MemStore store{reactor};
  std::vector<wire::Event> received;
  LinkHub hub{reactor, store, [](const Json& params) -> Result<Json> { return params; }};
  uint64_t seq = 0;

  Door() {
    hub.connect({{}, [this](const NodeName&, const wire::Event& event) { received.push_back(event); }, {}});
  }
  wire::Event event(const std::string& kind, Json data = Json::object(), const std::string& order = "") {
    return {++seq, 0, OrderId(order), kind, std::move(data)};
  }
  // Sends them as one batch, and returns the acknowledged number.
  Result<uint64_t> send(std::vector<wire::Event> events, size_t bytes = 0,
                        const std::string& process = "agent") {
    Result<uint64_t> answered = fail(Code::failed, "no answer");
    hub.take(
        kNode, {"boot", process, std::move(events)}, [&](Result<uint64_t> r) { answered = std::move(r); },
        bytes);
    reactor.advance(100);
    return answered;
  }
  std::vector<EventRow> kept(const std::string& kind) {
    auto rows = store.events(0, 10000, "").value();
    std::erase_if(rows, [&](const EventRow& row) { return row.kind != kind; });
    return rows;
  }
};

void limit(Door& d, const std::function<void(EventLimits&)>& change) {
  EventLimits limits;
  change(limits);
  d.hub.set_limits(limits);
}

}  // namespace

TEST_CASE("an agent sends its own kinds of events, and none of the controller's", "[api]") {
  Door d;
  for (const std::string_view kind : EventKind::kAll) {
    CAPTURE(kind);
    const bool own = kind == "hello" || kind == "started" || kind == "progress" || kind == "step" ||
                     kind == "log" || kind == "finished";
    CHECK(EventKind::is_of_agents(kind) == own);
    const size_t before = d.received.size();
    const auto answered =
        d.send({d.event("log"), d.event(std::string(kind), {{"action", "revoked"}}), d.event("log")});
    // Acknowledged with the others: an agent sends what is not again and again, before all that follows.
    REQUIRE(answered.ok());
    CHECK(*answered == d.seq);
    CHECK(d.received.size() == before + (own ? 3u : 2u));
    if (!own) CHECK(d.kept(std::string(kind)).size() == (kind == "node" ? 1u : 0u));  // the controller's own
  }
  const size_t before = d.received.size();
  for (const char* kind : {"", "audit", "Log", "log\n"}) {
    const auto answered = d.send({d.event(kind)});
    REQUIRE(answered.ok());
    CHECK(*answered == d.seq);
  }
  CHECK(d.received.size() == before);
}

TEST_CASE("refused events are counted, in one event of the controller per hour", "[api]") {
  Door d;
  for (int i = 0; i < 5; ++i) (void)d.send({d.event("join"), d.event("join")});
  REQUIRE(d.kept("node").size() == 1);
  d.reactor.advance(61 * kMinute);
  (void)d.send({d.event("secret")});
  const auto rows = d.kept("node");
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].node == kNode);
  CHECK(rows[1].run == 0);
  CHECK(parse_json(rows[1].json).value()["count"] == 11);
}

TEST_CASE("texts of an agent are cleaned before they are kept or passed on", "[api]") {
  Door d;
  REQUIRE(d.send({d.event("log", {{"text",
                                   "C1 \xc2\x9b"
                                   "31m \xe2\x80\xae"
                                   "edir \x1b[2J\xff"},
                                  {"a\x07", 1}})})
              .ok());
  REQUIRE(d.received.size() == 1);
  const Json clean = {{"text", "C1  31m  edir  [2J "}, {"a ", 1}};
  CHECK(d.received[0].data == clean);
  REQUIRE(d.kept("log").size() == 1);
  CHECK(parse_json(d.kept("log")[0].json).value() == clean);
}

TEST_CASE("an event counts for a run only with an order that the node has or had", "[api]") {
  Door d;
  wire::WorkOrder order;
  order.id = "7-a/login01/steps#1";
  order.kind = wire::OrderKind::steps;
  d.hub.offer(kNode, order);
  REQUIRE(d.send({d.event("log", Json::object(), "7-a/login01/steps#1"),
                  d.event("log", Json::object(), "99-x/login01/y"), d.event("log")})
              .ok());
  d.hub.withdraw(kNode, order.id);
  REQUIRE(d.send({d.event("log", Json::object(), "7-a/login01/steps#1")}).ok());
  std::vector<int64_t> runs;
  for (const EventRow& row : d.kept("log")) runs.push_back(row.run);
  CHECK(runs == std::vector<int64_t>{7, 0, 0, 7});
}

TEST_CASE("an event that is too large ends its order or step with the reason, and fills nothing", "[api]") {
  Door d;
  limit(d, [](EventLimits& limits) { limits.size = 100'000; });
  const std::string large(200'000, 'x');
  REQUIRE(
      d.send({d.event("finished", {{"ok", true}, {"result", large}}, "1-a/login01/s#1"),
              d.event("step", {{"step", "base/a"}, {"name", "a"}, {"status", "measured"}, {"result", large}}),
              d.event("log", {{"text", large}}), d.event("log", {{"text", "small"}})})
          .ok());
  REQUIRE(d.received.size() == 4);
  CHECK(d.received[0].data["ok"] == false);
  CHECK(d.received[0].data["code"] == "invalid");
  CHECK(d.received[0].order == "1-a/login01/s#1");
  CHECK(d.received[1].data["status"] == "failed");
  CHECK(d.received[1].data["step"] == "base/a");
  CHECK(d.received[2].data["level"] == "error");
  CHECK(d.received[3].data["text"] == "small");
  for (const EventRow& row : d.store.events(0, 100, "").value()) CHECK(row.json.size() < 1000);
}

TEST_CASE("a flood of events is held back at the node, and nothing of it is lost", "[api]") {
  Door d;
  limit(d, [](EventLimits& limits) { limits.per_second = 10; });
  uint64_t taken = 0;
  for (int i = 0; i < 20; ++i) {
    d.seq = taken;  // the agent sends again what was not acknowledged
    std::vector<wire::Event> hundred;
    for (int n = 0; n < 100; ++n) hundred.push_back(d.event("log"));
    const auto answered = d.send(std::move(hundred));
    if (answered.ok()) taken = *answered;
    if (!answered.ok()) CHECK(answered.error().code == Code::unavailable);
  }
  CHECK(taken == 619);  // a minute's worth, and 10 a second since
  CHECK(d.kept("log").size() == taken);
  d.reactor.advance(10 * kSecond);
  CHECK(d.send({d.event("log")}).ok());
}

TEST_CASE("what is sent again is charged once", "[api]") {
  Door d;
  limit(d, [](EventLimits& limits) { limits.per_second = 10, limits.bytes_per_day = 1 << 20; });
  std::vector<wire::Event> batch;
  for (int n = 0; n < 500; ++n) batch.push_back(d.event("log", {{"text", std::string(1000, 'x')}}));
  for (int i = 0; i < 20; ++i) CHECK(d.send(batch).value_or(0) == 500);
  CHECK(d.received.size() == 500);
  CHECK(d.send({d.event("log")}).ok());
}

TEST_CASE("events are charged with what is stored of them", "[api]") {
  Door d;
  limit(d, [](EventLimits& limits) { limits.per_second = 10'000, limits.bytes_per_day = 1 << 20; });
  for (int i = 0; i < 40; ++i) {
    std::vector<wire::Event> batch;
    for (int n = 0; n < 250; ++n) batch.push_back(d.event("log", Json::object(), std::string(256, 'o')));
    (void)d.send(std::move(batch));
  }
  size_t stored = 0;
  for (const EventRow& row : d.kept("log"))
    stored += row.json.size() + row.kind.size() + row.node.str().size() + 100;
  CHECK(stored > 700'000);
  CHECK(stored < 1 << 20);
}

TEST_CASE("a node beyond its share is heard when another system speaks for it, and for small words",
          "[api]") {
  Door d;
  limit(d, [](EventLimits& limits) { limits.per_second = 10, limits.bytes_per_day = 1 << 20; });
  const std::string text(300'000, 'x');
  for (int i = 0; i < 20; ++i) (void)d.send({d.event("log", {{"text", text}})}, 300'000);
  CHECK_FALSE(d.send({d.event("log", {{"text", text}})}).ok());
  CHECK(d.hub.held_back().holds(kNode, 8 << 20));
  for (const size_t size : {1000u, 0u}) {  // not a byte is left
    std::vector<wire::Event> batch;
    for (int n = 0; n < 200; ++n) batch.push_back(d.event("log", {{"text", std::string(size, 'x')}}));
    (void)d.send(std::move(batch));
  }

  // A hello and the end of an order; not any number of them, and no large one.
  CHECK(d.send({d.event("hello", {{"mode", "installed"}})}, 0, "next").ok());
  CHECK_FALSE(d.send({d.event("finished", {{"ok", true}, {"result", text}})}, 0, "next").ok());
  int taken = 0;
  for (int i = 0; i < 5000; ++i)
    taken += d.send({d.event("finished", {{"text", std::string(3000, 'x')}})}, 0, "next").ok() ? 1 : 0;
  CHECK(taken < 100);

  (void)d.send({d.event("log", {{"text", text}})}, 300'000);
  CHECK(d.hub.held_back().holds(kNode, 8 << 20));
  d.hub.begin_anew(kNode);  // it was re-imaged
  CHECK_FALSE(d.hub.held_back().holds(kNode, 8 << 20));
  CHECK(d.send({d.event("log", {{"text", text}})}, 300'000, "ram").ok());
}

TEST_CASE("large bodies of a node are not read for a while after one was sent in vain", "[api]") {
  Door d;
  limit(d, [](EventLimits& limits) { limits.per_second = 10; });
  const HeldBack& held = d.hub.held_back();
  std::vector<wire::Event> batch;
  for (int n = 0; n < 600; ++n) batch.push_back(d.event("log"));
  CHECK(d.send(batch, 60'000).ok());
  CHECK_FALSE(held.holds(kNode, 8 << 20));  // it was charged
  batch.clear();
  for (int n = 0; n < 3000; ++n) batch.push_back(d.event("log"));
  SECTION("beyond its share") { (void)d.send(batch, 8 << 20); }
  SECTION("what it had sent before") {
    d.seq = 0;
    CHECK(d.send({d.event("log")}, 8 << 20).ok());
  }
  SECTION("padding") { CHECK(d.send({d.event("log")}, 8 << 20).ok()); }
  CHECK(held.holds(kNode, 8 << 20));
  CHECK_FALSE(held.holds(kNode, 4 << 10));
  CHECK_FALSE(held.holds("login02", 8 << 20));
  d.reactor.advance(55 * kSecond);
  CHECK(held.holds(kNode, 8 << 20));
  d.reactor.advance(6 * kSecond);  // and no longer than a minute
  CHECK_FALSE(held.holds(kNode, 8 << 20));
}

TEST_CASE("a node's bytes of a day are limited, and others are not held back with it", "[api]") {
  Door d;
  limit(d, [](EventLimits& limits) { limits.bytes_per_day = 1 << 20; });
  const std::string text(300'000, 'x');
  int taken = 0;
  for (int i = 0; i < 20; ++i) taken += d.send({d.event("log", {{"text", text}})}).ok() ? 1 : 0;
  CHECK(taken == 3);
  bool other = false;
  wire::Event one;
  one.seq = 1;
  one.kind = "log";
  d.hub.take("login02", {"boot", "agent", {one}}, [&](const Result<uint64_t>& r) { other = r.ok(); });
  d.reactor.advance(100);
  CHECK(other);
  d.reactor.advance(kDay);
  CHECK(d.send({d.event("log", {{"text", text}})}).ok());
}
