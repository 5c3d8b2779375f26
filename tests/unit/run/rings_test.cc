#include "controller/run/rings.h"

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

TEST_CASE("rings: an order is the same whether its rings are in it or beside it", "[run]") {
  TextPool pool;
  const auto params = ActionParams::with_texts(order("10.0.0.2"), pool);
  const Rings rings;
  for (const std::set<std::string>& dead : {std::set<std::string>{}, {"n2"}, {"n2", "n3"}}) {
    const auto gone = [&](const std::string& name) { return dead.count(name) > 0; };
    Json within = params.json(), beside = params.without_shared();
    CHECK_FALSE(beside.contains("ring"));
    CHECK(narrow_order(within, "n1", gone) == narrow_order(beside, rings.of(params), "n1", gone));
    CHECK(within == beside);
  }
}
