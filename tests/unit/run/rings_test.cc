#include "controller/run/rings.h"

#include <fmt/format.h>

#include "controller/run/narrow.h"
#include "tests/catch.h"

using namespace muster;

namespace {

Json node(const std::string& name) { return {{"name", name}, {"address", "10.0.0." + name.substr(1)}}; }

Json order(const std::string& host) {
  const Json step = {{"id", "all"}, {"params", {{"next_live", true}, {"host", host}}}};
  return {{"steps", {step}}, {"ring", {node("n1"), node("n2"), node("n3")}}};
}

}  // namespace

TEST_CASE("rings: those of orders that share their text are parsed once", "[run]") {
  TextPool pool;
  const auto first = ActionParams::with_texts(order("10.0.0.2"), pool),
             second = ActionParams::with_texts(order("10.0.0.3"), pool);
  Rings rings;
  const RingsOfOrder one = rings.of(first);
  REQUIRE(one.ring);
  CHECK(*one.ring == order("")["ring"]);
  CHECK_FALSE(one.rings);
  CHECK(rings.of(second).ring == one.ring);
  Json other = order("10.0.0.2");
  other["ring"].push_back(node("n4"));
  CHECK(rings.of(ActionParams::with_texts(other, pool)).ring->size() == 4);
  CHECK(rings.of(ActionParams(order("10.0.0.2"))).ring->size() == 3);  // of no text
  CHECK_FALSE(rings.of(ActionParams()).ring);
  rings.clear();
  CHECK(*rings.of(first).ring == *one.ring);
}

TEST_CASE("rings: of an order with several, whose text is in pieces", "[run]") {
  const auto order_with = [](const std::string& host) {
    ActionParams params = order(host);
    SharedText pieces(std::string("{\"all\":"));
    pieces.add(std::make_shared<const std::string>(R"([{"name":"n1"},{"name":"n2"}]})"));
    params.set("rings", pieces);
    return params;
  };
  Rings rings;
  const auto first = rings.of(order_with("10.0.0.2"));
  REQUIRE(first.rings);
  CHECK((*first.rings)["all"].size() == 2);
  CHECK(rings.of(order_with("10.0.0.3")).rings == first.rings);
}

TEST_CASE("rings: what is kept is bounded, and what was given out stays", "[run]") {
  Rings rings;
  std::vector<RingsOfOrder> given;
  for (size_t i = 0; i <= 2 * Rings::kMostKept; ++i) {
    ActionParams params;
    params.set("ring", SharedText(fmt::format("[{}]", i)));
    given.push_back(rings.of(params));
    CHECK(rings.of(params).ring == given.back().ring);
  }
  for (size_t i = 0; i < given.size(); ++i) CHECK(*given[i].ring == Json::array({i}));
}

TEST_CASE("rings: an order is the same whether its rings are in it or beside it", "[run]") {
  TextPool pool;
  const auto params = ActionParams::with_texts(order("10.0.0.2"), pool);
  const Rings rings;
  for (const std::set<std::string>& dead : {std::set<std::string>{}, {"n2"}, {"n2", "n3"}}) {
    const auto gone = [&](const std::string& name) { return dead.count(name) > 0; };
    Json within = params.json(), beside = params.without_shared();
    CHECK_FALSE(beside.contains("ring"));
    const RingsOfOrder taken = take_rings(within);
    CHECK(narrow_order(within, taken, "n1", gone) == narrow_order(beside, rings.of(params), "n1", gone));
    CHECK(within == beside);
  }
}
