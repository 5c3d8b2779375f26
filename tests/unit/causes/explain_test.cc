// When a value that nodes share explains their problem, and when chance would.
#include "controller/causes/explain.h"

#include <cmath>

#include "tests/catch.h"

using namespace muster;

namespace {

bool explains(BadOf with, BadOf all, size_t values = 8) {
  return Chances(all.all).explains(with, all, values);
}

}  // namespace

TEST_CASE("explaining: the chance is that of drawing blindly", "[causes]") {
  // Of 5 nodes 3 are drawn: all three of one switch in one of 10 ways, at least two of it in 7.
  const Chances chances(5);
  CHECK(std::abs(std::exp(chances.log_of({3, 3}, {3, 5})) - 0.1) < 1e-9);
  CHECK(std::abs(std::exp(chances.log_of({2, 3}, {3, 5})) - 0.7) < 1e-9);
  // So small that it is no double as a number.
  CHECK(Chances(10000).log_of({500, 500}, {500, 10000}) < -1000);
}

TEST_CASE("explaining: all nodes of a switch and none elsewhere", "[causes]") {
  CHECK(explains({31, 31}, {31, 231}));
  CHECK(explains({3, 3}, {3, 5}));
  CHECK(explains({2, 2}, {2, 3}));
  CHECK(explains({31, 31}, {40, 231}));
}

TEST_CASE("explaining: many of them, and hardly any elsewhere", "[causes]") {
  CHECK(explains({10, 31}, {10, 231}));
  CHECK(explains({3, 20}, {3, 400}, 20));
  CHECK(explains({16, 31}, {20, 231}));
}

TEST_CASE("explaining: what healthy nodes share explains nothing", "[causes]") {
  CHECK(!explains({1, 20}, {1, 400}, 20));   // one sick node in a rack
  CHECK(!explains({2, 20}, {2, 400}, 20));   // two
  CHECK(!explains({1, 1}, {1, 400}));        // the only node of its kind
  CHECK(!explains({31, 31}, {31, 31}));      // nothing to compare with
  CHECK(!explains({31, 31}, {150, 231}));    // most others fail, too
  CHECK(!explains({20, 100}, {36, 231}));    // more often, but not clearly
  CHECK(!explains({6, 20}, {60, 400}, 20));  // as 60 scattered nodes hit some rack
  CHECK(!explains({0, 31}, {5, 231}));
}

TEST_CASE("explaining: of several explanations the least likely by chance counts", "[causes]") {
  // 12 nodes: 0-3 behind one switch, in a rack with 4 and 5; all of the switch are bad.
  std::vector<NodeProperty> properties = {
      {"rack", {"r1", "r2"}, {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}},
      {"switch", {"leaf1", "leaf2"}, {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, -1}},
  };
  std::vector<Health> nodes(12, Health::well);
  for (const size_t bad : {0, 1, 2, 3}) nodes[bad] = Health::bad;
  const Chances chances(nodes.size());
  auto best = best_explanation(properties, nodes, chances);
  REQUIRE(best);
  CHECK(properties[best->property].name == "switch");
  CHECK(best->value == 0);
  CHECK(best->of == 4);

  // Equal ones: the first property.
  properties[0].of_node = properties[1].of_node;
  best = best_explanation(properties, nodes, chances);
  REQUIRE(best);
  CHECK(best->property == 0);

  // Nodes that are left out count neither as bad nor as well.
  for (size_t i = 4; i < 12; ++i) nodes[i] = Health::left_out;
  CHECK(!best_explanation(properties, nodes, chances));
  CHECK(!best_explanation({}, nodes, chances));
}
