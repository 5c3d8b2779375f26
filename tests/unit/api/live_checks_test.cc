// Steps that agents check for a preview: runs get none of their answers, and an agent that does not answer
// ends it in time.
#include "controller/link/live_checks.h"

#include <optional>

#include "controller/link/link_hub.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

struct Looking {
  ManualReactor reactor;
  MemStore store{reactor};
  std::vector<std::string> of_runs;
  LinkHub hub{reactor, store, [](const Json& params) -> Result<Json> {
                if (params.dump().find("secret:none") != std::string::npos)
                  return fail(Code::not_found, "secret 'none' is not set");
                return params;
              }};
  std::optional<LiveChecks::Found> found;
  uint64_t seq = 0;

  Looking() {
    hub.connect({{},
                 [this](const NodeName& node, const wire::Event& event) {
                   of_runs.push_back(node + " " + event.kind);
                 },
                 {}});
  }
  void look(const std::map<std::string, Json>& steps) {
    hub.live_checks().start(steps, kMinute, [this](LiveChecks::Found f) { found = std::move(f); });
  }
  static Json step(const std::string& content = "x") {
    return {{"id", "base/motd"}, {"module", "file"}, {"params", {{"content", content}}}};
  }
  wire::PollReply poll(const std::string& node, const std::set<std::string>& have = {}) {
    wire::PollReply reply;
    hub.poll(NodeName(node), have, [&](const wire::PollReply& r) { reply = r; });
    hub.hang_up(NodeName(node));
    return reply;
  }
  void say(const std::string& node, const OrderId& order, const std::string& kind, const Json& data) {
    wire::Event event;
    event.seq = ++seq;
    event.order = order;
    event.kind = kind;
    event.data = data;
    hub.take(NodeName(node), {"boot", "agent", {event}}, [](Result<uint64_t>) {});
    reactor.advance(100);
  }
};

}  // namespace

TEST_CASE("live checks: agents get an order that changes nothing, and runs get none of the answers",
          "[link][preview]") {
  Looking l;
  l.look({{"node01", Json::array({Looking::step()})}});
  const auto reply = l.poll("node01");
  REQUIRE(reply.orders.size() == 1);
  const wire::WorkOrder& order = reply.orders[0];
  CHECK(order.kind == wire::OrderKind::steps);
  CHECK(order.params["mode"] == "check");
  CHECK(order.params["steps"].size() == 1);
  CHECK(l.poll("node01", {order.id}).withdrawn.empty());
  l.say(
      "node01", order.id, "step",
      {{"step", "base/motd"}, {"status", "failed"}, {"message", "is not as declared"}, {"diff", "-a\n+b\n"}});
  l.say("node01", order.id, "finished", {{"ok", false}, {"message", "base/motd: is not as declared"}});
  REQUIRE(l.found);
  const Json& node = l.found->at("node01");
  CHECK(node["error"] == "");
  REQUIRE(node["steps"].size() == 1);
  CHECK(node["steps"][0]["diff"] == "-a\n+b\n");
  CHECK(l.of_runs.empty());
  CHECK(l.poll("node01").orders.empty());
  // An agent that has it still drops it.
  CHECK(l.poll("node01", {order.id}).withdrawn.size() == 1);
}

TEST_CASE("live checks: silent agents end with a reason, those that answered keep their steps",
          "[link][preview]") {
  Looking l;
  l.look({{"node01", Json::array({Looking::step()})}, {"node02", Json::array({Looking::step()})}});
  const auto order = l.poll("node01").orders.at(0).id;
  l.say("node01", order, "step", {{"step", "base/motd"}, {"status", "already"}});
  l.say("node01", order, "finished", {{"ok", true}});
  CHECK_FALSE(l.found);
  l.reactor.advance(kMinute);
  REQUIRE(l.found);
  CHECK(l.found->at("node01")["error"] == "");
  CHECK(l.found->at("node02")["error"] != "");
  CHECK(l.poll("node02").orders.empty());
}

TEST_CASE("live checks: an order that cannot be carried out names why; none ends at once",
          "[link][preview]") {
  Looking l;
  l.look({{"node01", Json::array({Looking::step("secret:none")})}});
  CHECK(l.poll("node01").orders.empty());
  l.reactor.advance(100);
  REQUIRE(l.found);
  CHECK(l.found->at("node01")["error"].get<std::string>().find("'none'") != std::string::npos);
  Looking none;
  none.look({});
  none.reactor.advance(100);
  REQUIRE(none.found);
  CHECK(none.found->empty());
}

TEST_CASE("live checks: events of other orders and nodes go to the run", "[link][preview]") {
  Looking l;
  l.look({{"node01", Json::array({Looking::step()})}});
  const auto order = l.poll("node01").orders.at(0).id;
  l.say("node02", order, "finished", {{"ok", true}});
  l.say("node01", OrderId("7-ab/node01/configure#1"), "finished", {{"ok", true}});
  CHECK(l.of_runs == std::vector<std::string>{"node02 finished", "node01 finished"});
  CHECK_FALSE(l.found);
}
