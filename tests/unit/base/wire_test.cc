#include "base/wire.h"

#include <set>
#include <string>

#include "tests/catch.h"

using namespace muster;

namespace {

Json order_of_kind(const std::string& word) {
  return {{"id", "1-0/n1/a#1"}, {"kind", word}, {"params", Json::object()}, {"deadline_ms", 1000}};
}

}  // namespace

TEST_CASE("every kind of order has one word, which is read back as that kind", "[wire]") {
  std::set<std::string> words;
  for (int i = 1; i <= static_cast<int>(wire::OrderKind::kexec); ++i) {
    const auto kind = static_cast<wire::OrderKind>(i);
    const std::string word(to_string(kind));
    CHECK(!word.empty());
    CHECK(words.insert(word).second);
    CHECK(wire::order_kind_from_string(word) == kind);
    const auto order = wire::work_order_from_json(order_of_kind(word));
    REQUIRE(order.ok());
    CHECK(order->kind == kind);
    CHECK(wire::to_json(*order) == order_of_kind(word));
  }
}

TEST_CASE("an order of an unknown kind is read as that, with its word, and those beside it too", "[wire]") {
  // The last was the word in which an agent told itself to go; no controller ever sent it.
  for (const std::string word : {"", "Steps", "steps ", "format", "kexec-now"}) {
    const Json sent = {{"orders", {order_of_kind(word), order_of_kind("steps")}},
                       {"withdrawn", Json::array()}};
    const auto reply = wire::poll_reply_from_json(sent);
    REQUIRE(reply.ok());
    REQUIRE(reply->orders.size() == 2);
    CHECK(reply->orders[0].kind == wire::OrderKind::unknown);
    CHECK(reply->orders[0].kind_word() == word);
    CHECK(reply->orders[1].kind == wire::OrderKind::steps);
    CHECK(wire::to_json(*reply) == sent);
  }
}

TEST_CASE("an order carries the values of its secrets, and none where it has none", "[wire]") {
  auto order = wire::work_order_from_json(order_of_kind("steps"));
  REQUIRE(order.ok());
  CHECK_FALSE(wire::to_json(*order).contains("secrets"));
  order->secrets = {"hunter2!"};
  const auto read = wire::work_order_from_json(wire::to_json(*order));
  REQUIRE(read.ok());
  CHECK(read->secrets == order->secrets);
}

TEST_CASE("what a step needs travels where agents of an older version do not look", "[wire]") {
  wire::Step step;
  step.id = "acceptance/drives";
  step.module = "accept";
  const Json plain = wire::to_json(step);
  step.needs = {"root"};
  const Json sent = wire::to_json(step);
  CHECK(sent["expect"] == Json({{"needs", {"root"}}}));
  CHECK(sent.size() == plain.size() + 1);  // and no key beside it
  auto read = wire::step_from_json(sent);
  REQUIRE(read.ok());
  CHECK(read->needs == std::vector<std::string>{"root"});
  CHECK(read->expect.is_null());
  step.expect = {{"read_mbps", {{"min", 50}}}, {"blocks", {"data"}}};
  read = wire::step_from_json(wire::to_json(step));
  REQUIRE(read.ok());
  CHECK(read->expect == step.expect);
  CHECK(wire::to_json(*read) == wire::to_json(step));
  CHECK_FALSE(wire::step_from_json({{"id", "a"}, {"module", "b"}, {"expect", {{"needs", "root"}}}}).ok());
}
