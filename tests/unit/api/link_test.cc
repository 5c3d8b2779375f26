#include <algorithm>
#include <optional>
#include <set>

#include "base/json_dump.h"
#include "controller/link/event_log.h"
#include "controller/link/link_hub.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

struct Hub {
  ManualReactor reactor;
  MemStore store{reactor};
  std::vector<std::string> received;
  std::set<std::string> expected;
  LinkHub hub{reactor, store, [](const Json& params) -> Result<Json> {
                if (params.value("key", "") == "secret:none")
                  return fail(Code::not_found, "secret 'none' is not set");
                Json out = params;
                if (params.value("key", "") == "secret:bmc") out["key"] = "opened";
                return out;
              }};
  Hub() {
    hub.connect({[this](const Hello& hello) { received.push_back("hello " + hello.node); },
                 [this](const std::string& node, const wire::Event& event) {
                   received.push_back(node + " " + event.kind + " " + std::to_string(event.seq));
                 },
                 {},
                 [this](const std::string&, const std::string& id) { return expected.count(id) > 0; }});
  }
  static wire::EventBatch batch(const std::string& incarnation, std::vector<uint64_t> numbers) {
    wire::EventBatch b{"boot", incarnation, {}};
    for (const auto n : numbers) {
      wire::Event event;
      event.seq = n;
      event.kind = "log";
      b.events.push_back(event);
    }
    return b;
  }
  // The acknowledgement, once it was given.
  std::optional<uint64_t> take(wire::EventBatch b, const std::string& node = "node01") {
    std::optional<uint64_t> ack;
    hub.take(NodeName(node), std::move(b), [&](Result<uint64_t> r) { ack = *r; });
    reactor.advance(100);
    return ack;
  }
};

wire::WorkOrder order(const std::string& id, const std::string& key = "") {
  wire::WorkOrder o;
  o.id = OrderId(id);
  o.kind = wire::OrderKind::steps;
  o.params = {{"key", key}};
  return o;
}

}  // namespace

TEST_CASE("a poll for a node's order from before another join as that node gets none", "[api]") {
  Hub h;
  std::vector<wire::PollReply> thief, node;
  h.hub.poll("node01", {}, [&](const wire::PollReply& reply) { thief.push_back(reply); });
  h.hub.hang_up("node01");
  REQUIRE(thief.size() == 1);
  h.hub.poll("node01", {}, [&](const wire::PollReply& reply) { node.push_back(reply); });
  h.hub.offer("node01", order("1", "secret:bmc"));
  CHECK(thief.size() == 1);
  CHECK(thief[0].orders.empty());
  REQUIRE(node.size() == 1);
  CHECK(node[0].orders.size() == 1);
  h.hub.hang_up("node02");  // no poll waits
}

TEST_CASE("events are forwarded once and acknowledged when durable", "[api]") {
  Hub h;
  CHECK(h.take(Hub::batch("a", {1, 2})) == 2);
  CHECK(h.take(Hub::batch("a", {1, 2, 3})) == 3);  // the acknowledgement was lost, all is sent again
  CHECK(h.received == std::vector<std::string>{"node01 log 1", "node01 log 2", "node01 log 3"});
  CHECK(h.take(Hub::batch("b", {1})) == 1);  // a new agent process counts from one
  CHECK(h.received.size() == 4);
  CHECK(h.store.events(0, 100, "node01")->size() == 4);
}

TEST_CASE("an agent that reports an unknown mode is not taken for the RAM system", "[api]") {
  Hub h;
  const auto says = [&](const Json& mode) {
    wire::EventBatch batch = Hub::batch(dump_json(mode), {1});
    batch.events[0].kind = "hello";
    batch.events[0].data = {{"mode", mode}};
    h.take(batch);
    return std::count(h.received.begin(), h.received.end(), "hello node01");
  };
  CHECK(says("recovery") == 0);
  CHECK(says("") == 0);
  CHECK(says(7) == 0);
  CHECK(says("installed") == 1);
}

TEST_CASE("of the slot that an agent says it runs from, nothing but a slot's letter is taken", "[api]") {
  Hub h;
  std::string slot;
  h.hub.connect({[&](const Hello& hello) { slot = hello.slot; }, {}, {}});
  int agents = 0;
  const auto says = [&](Json data) {
    wire::EventBatch batch = Hub::batch("agent-" + std::to_string(++agents), {1});
    batch.events[0].kind = "hello";
    data["mode"] = "installed";
    batch.events[0].data = std::move(data);
    slot = "no hello";
    h.take(batch);
    return slot;
  };
  CHECK(says({{"slot", "a"}}) == "a");
  CHECK(says({{"slot", "b"}}) == "b");
  const std::vector<Json> others = {
      "../x", "", "c", "B", "ab", "b ", 7, true, nullptr, Json::array({"b"}), {{"slot", "b"}}};
  for (const Json& other : others) {
    CAPTURE(dump_json(other));
    CHECK(says({{"slot", other}}).empty());
  }
  CHECK(says(Json::object()).empty());  // an older agent, or one that is in neither
}

TEST_CASE("an agent is on trial when its hello says so, and no other word than true is taken", "[api]") {
  Hub h;
  bool trial = false;
  h.hub.connect({[&](const Hello& hello) { trial = hello.trial; }, {}, {}});
  int agents = 0;
  const auto says = [&](Json data) {
    wire::EventBatch batch = Hub::batch("agent-" + std::to_string(++agents), {1});
    batch.events[0].kind = "hello";
    data["mode"] = "installed";
    batch.events[0].data = std::move(data);
    h.take(batch);
    return trial;
  };
  CHECK(says({{"trial", true}}));
  CHECK_FALSE(says({{"trial", false}}));
  for (const Json& other : std::vector<Json>{"true", 1, nullptr, Json::array({true}), Json::object()}) {
    CAPTURE(dump_json(other));
    CHECK(says({{"trial", true}}));
    CHECK_FALSE(says({{"trial", other}}));
  }
  CHECK(says({{"trial", true}}));
  CHECK_FALSE(says(Json::object()));  // an older agent
}

TEST_CASE("an acknowledgement never runs ahead of the disk", "[api]") {
  Hub h;
  std::optional<uint64_t> first, second;
  h.hub.take("node01", Hub::batch("a", {1}), [&](Result<uint64_t> r) { first = *r; });
  h.hub.take("node01", Hub::batch("a", {1}), [&](Result<uint64_t> r) { second = *r; });
  CHECK_FALSE(first.has_value());
  CHECK(second == 0);  // known, but not durable yet: the agent will send it again
  h.reactor.advance(100);
  CHECK(first == 1);
}

TEST_CASE("a failed write is an error, not an acknowledgement", "[api]") {
  Hub h;
  h.store.fail_next(1, fail(Code::unavailable, "disk full"));
  bool failed = false;
  h.hub.take("node01", Hub::batch("a", {1}), [&](Result<uint64_t> r) { failed = !r.ok(); });
  h.reactor.advance(100);
  CHECK(failed);
  CHECK(h.take(Hub::batch("a", {1})) == 1);  // sent again: now it is written, and not heard twice
  CHECK(h.received.size() == 1);
  CHECK(h.store.events(0, 100, "node01")->size() == 1);
  CHECK(h.take(Hub::batch("a", {1, 2})) == 2);
  CHECK(h.store.events(0, 100, "node01")->size() == 2);
}

TEST_CASE("an agent that waits gets an order as soon as it is offered", "[api]") {
  Hub h;
  std::optional<std::vector<wire::WorkOrder>> got;
  h.hub.poll("node01", {}, [&](wire::PollReply reply) { got = std::move(reply.orders); });
  h.reactor.advance(10 * kSecond);
  CHECK_FALSE(got.has_value());
  h.hub.offer("node01", order("1/a#1", "secret:bmc"));
  REQUIRE(got.has_value());
  REQUIRE(got->size() == 1);
  CHECK(got->front().id == "1/a#1");
  CHECK(got->front().params["key"] == "opened");  // secrets are put in on the way out
  CHECK(got->front().secrets == std::vector<std::string>{"opened"});
}

TEST_CASE("an order says what its secrets are, once each, with those of its preconditions", "[api]") {
  Hub h;
  wire::WorkOrder plain = order("1/a#1", "no secret"), both = order("1/b#1", "secret:bmc");
  both.preconditions = {{"key", "secret:bmc"}};
  h.hub.offer("node01", plain);
  h.hub.offer("node02", both);
  std::vector<std::vector<std::string>> secrets;
  for (const char* node : {"node01", "node02"})
    h.hub.poll(NodeName(node), {}, [&](const wire::PollReply& reply) {
      for (const wire::WorkOrder& one : reply.orders) secrets.push_back(one.secrets);
    });
  CHECK(secrets == std::vector<std::vector<std::string>>{{}, {"opened"}});
}

TEST_CASE("a secret that is too short to be kept out of results is not sent", "[api]") {
  ManualReactor reactor;
  MemStore store(reactor);
  LinkHub hub(reactor, store, [](const Json&) -> Result<Json> { return Json{{"key", "abc"}}; });
  std::vector<wire::Event> events;
  hub.connect({{}, [&](const NodeName&, const wire::Event& event) { events.push_back(event); }, {}});
  hub.offer("node01", order("1/a#1", "secret:pin"));
  bool sent = false;
  hub.poll("node01", {}, [&](const wire::PollReply& reply) { sent = !reply.orders.empty(); });
  reactor.advance(30 * kSecond);
  CHECK_FALSE(sent);
  REQUIRE(events.size() == 1);
  CHECK(events[0].data["code"] == "invalid");
  CHECK(events[0].data["message"].get<std::string>().find("muster secret set pin") != std::string::npos);
}

TEST_CASE("a poll for orders reaches the executor before an order is handed out", "[api]") {
  Hub h;
  std::vector<std::string> said;
  h.hub.connect({{}, {}, [&](const std::string& node, const Presence& present) {
                   said.push_back(node + " " + present.boot_id + " " +
                                  (present.mode ? std::string(to_string(*present.mode)) : "?"));
                   h.hub.withdraw("node01", "1/a#1");  // what it is makes the order worthless
                 }});
  h.hub.offer("node01", order("1/a#1"));
  size_t orders = 0;
  h.hub.poll("node01", {}, [&](const wire::PollReply& reply) { orders += reply.orders.size(); },
             {"b5", wire::Mode::installed, "sha256:x"});
  h.reactor.advance(26 * kSecond);
  CHECK(said == std::vector<std::string>{"node01 b5 installed"});
  CHECK(orders == 0);
}

TEST_CASE("a long poll ends empty, and a newer one ends the older", "[api]") {
  Hub h;
  int empty = 0;
  const auto count = [&](const wire::PollReply& reply) {
    empty += reply.orders.empty() && reply.withdrawn.empty();
  };
  h.hub.poll("node01", {}, count);
  h.hub.poll("node01", {}, count);
  CHECK(empty == 1);
  h.reactor.advance(26 * kSecond);
  CHECK(empty == 2);
}

TEST_CASE("orders an agent has, and withdrawn ones, are not handed out", "[api]") {
  Hub h;
  h.hub.offer("node01", order("1/a#1"));
  h.hub.offer("node01", order("1/b#1"));
  std::set<std::string> ids;
  const auto collect = [&](const wire::PollReply& reply) {
    for (const auto& o : reply.orders) ids.insert(o.id);
  };
  h.hub.poll("node01", {"1/a#1"}, collect);
  CHECK(ids == std::set<std::string>{"1/b#1"});
  h.hub.withdraw("node01", "1/b#1");
  ids.clear();
  h.hub.poll("node01", {"1/a#1"}, collect);
  CHECK(ids.empty());
  h.hub.poll("node02", {}, collect);
  CHECK(ids.empty());  // another node's orders are not given out
}

TEST_CASE("an agent gets the withdrawal of an order that it has until it drops it", "[api]") {
  Hub h;
  h.expected = {"2/a#1"};
  h.hub.offer("node01", order("1/a#1"));
  std::vector<std::string> withdrawn;
  int answers = 0;
  const auto request = [&](std::set<std::string> have) {
    withdrawn.clear();
    h.hub.poll("node01", std::move(have), [&](const wire::PollReply& reply) {
      ++answers;
      withdrawn = reply.withdrawn;
    });
  };
  request({"1/a#1", "2/a#1"});
  CHECK(answers == 0);
  h.hub.withdraw("node01", "1/a#1");  // while it waits
  CHECK(withdrawn == std::vector<std::string>{"1/a#1"});
  request({"1/a#1", "2/a#1"});  // the answer was lost
  CHECK(withdrawn == std::vector<std::string>{"1/a#1"});
  CHECK(answers == 2);
  request({"2/a#1"});  // expected, though not on offer now
  CHECK(answers == 2);
  request({"0/x#1"});   // of another life of the controller
  CHECK(answers == 4);  // with it the older call ended
  CHECK(withdrawn == std::vector<std::string>{"0/x#1"});
}

TEST_CASE("an order that is let go is off offer, and its agent is not told to stop", "[api]") {
  Hub h;
  h.expected = {"1/a#1"};
  h.hub.offer("node01", order("1/a#1"));
  std::vector<wire::PollReply> replies;
  const auto request = [&](std::set<std::string> have) {
    h.hub.poll("node01", std::move(have), [&](const wire::PollReply& reply) { replies.push_back(reply); });
  };
  request({"1/a#1"});
  h.hub.let_go("node01", "1/a#1");
  CHECK(replies.empty());
  h.hub.withdraw("node01", "1/a#1");  // too late
  CHECK(replies.empty());
  request({});
  REQUIRE(replies.size() == 1);  // the older call ended
  CHECK(replies[0].withdrawn.empty());
  h.expected.clear();
  request({"1/a#1"});
  REQUIRE(replies.size() == 3);
  CHECK(replies[2].withdrawn == std::vector<std::string>{"1/a#1"});
}

TEST_CASE("an undeclared machine is offered its inventory and nothing else, and cannot fill the log",
          "[api]") {
  Hub h;
  const std::string unknown = "unknown-52:54:00:00:00:09";
  wire::WorkOrder look = order("0/a#1");
  look.kind = wire::OrderKind::inventory;
  h.hub.offer(NodeName(unknown), order("1/a#1"));  // "steps"
  h.hub.offer(NodeName(unknown), look);
  std::vector<std::string> ids;
  h.hub.poll(NodeName(unknown), {}, [&](const wire::PollReply& reply) {
    for (const auto& o : reply.orders) ids.push_back(o.id);
  });
  CHECK(ids == std::vector<std::string>{"0/a#1"});
  CHECK(h.take(Hub::batch("a", {1, 2, 3}), unknown) == 3);
  CHECK(h.received.size() == 3);
  CHECK(h.store.events(0, 100, "")->empty());
}

TEST_CASE("an order whose secret is missing ends as a result, not as silence", "[api]") {
  Hub h;
  h.hub.offer("node01", order("1/a#1", "secret:none"));
  bool empty = false;
  h.hub.poll("node01", {}, [&](const wire::PollReply& reply) { empty = reply.orders.empty(); });
  h.reactor.advance(30 * kSecond);
  CHECK(empty);
  REQUIRE(h.received.size() == 1);
  CHECK(h.received[0].starts_with("node01 finished"));
}
