// Naming the bad link from pair bandwidths: few nodes, every kind of fault, and the cases where nothing can
// be said.
#include "controller/locate/links.h"
#include "tests/catch.h"

using namespace muster::locate;
using Kind = LinkSuspect::Kind;

namespace {

// All pairs of n nodes, both ways; `rate(from, to)` in MB/s, negative: not measured.
template <typename RateOf>
std::vector<LinkMeasurement> all_pairs(int n, RateOf rate) {
  std::vector<LinkMeasurement> out;
  for (int a = 1; a <= n; ++a)
    for (int b = 1; b <= n; ++b) {
      if (a == b) continue;
      const double mbps = rate(a, b);
      LinkMeasurement m{"node0" + std::to_string(a), "node0" + std::to_string(b), {}};
      if (mbps >= 0) m.mbps = mbps;
      out.push_back(m);
    }
  return out;
}

}  // namespace

TEST_CASE("links: of three nodes the one with the slow link is named, not its partners", "[locate]") {
  for (int bad = 1; bad <= 3; ++bad) {
    const auto found =
        locate_links(all_pairs(3, [&](int a, int b) { return a == bad || b == bad ? 33.0 : 100.0; }));
    const std::string name = "node0" + std::to_string(bad);
    REQUIRE(found.suspects.size() == 1);
    CHECK(found.suspects[0].kind == Kind::node);
    CHECK(found.suspects[0].nodes == std::vector<std::string>{name});
    CHECK(found.suspects[0].direction == "");
    CHECK(found.suspects[0].share == Approx(0.33));
    CHECK(found.suspects[0].summary.find("33 %") != std::string::npos);
    CHECK(found.suspects[0].evidence.size() == 6);  // four against it, two of its accusers without it
    CHECK(found.reference == Approx(100));
    CHECK(found.faults_on("node01", "node02") ==
          (bad == 3 ? std::vector<std::string>{} : std::vector<std::string>{name}));
  }
}

TEST_CASE("links: a link that is slow one way says which way", "[locate]") {
  const auto sends = locate_links(all_pairs(3, [](int a, int) { return a == 2 ? 30.0 : 100.0; }));
  REQUIRE(sends.suspects.size() == 1);
  CHECK(sends.suspects[0].nodes == std::vector<std::string>{"node02"});
  CHECK(sends.suspects[0].direction == "sends");
  const auto receives = locate_links(all_pairs(4, [](int, int b) { return b == 1 ? 30.0 : 100.0; }));
  REQUIRE(receives.suspects.size() == 1);
  CHECK(receives.suspects[0].nodes == std::vector<std::string>{"node01"});
  CHECK(receives.suspects[0].direction == "receives");
}

TEST_CASE("links: a dead node, two slow nodes, a slow pair", "[locate]") {
  const auto dead = locate_links(all_pairs(4, [](int a, int b) { return a == 4 || b == 4 ? -1.0 : 100.0; }));
  REQUIRE(dead.suspects.size() == 1);
  CHECK(dead.suspects[0].nodes == std::vector<std::string>{"node04"});
  CHECK(dead.suspects[0].share == Approx(0));

  const auto two = locate_links(all_pairs(5, [](int a, int b) { return a < 3 || b < 3 ? 60.0 : 100.0; }));
  REQUIRE(two.suspects.size() == 2);
  CHECK(two.suspects[0].nodes.size() == 1);
  CHECK(two.faults_on("node01", "node02") == std::vector<std::string>{"node01", "node02"});
  CHECK(two.faults_on("node03", "node04").empty());

  const auto pair = locate_links(
      all_pairs(4, [](int a, int b) { return (a == 1 && b == 3) || (a == 3 && b == 1) ? 20.0 : 100.0; }));
  REQUIRE(pair.suspects.size() == 1);
  CHECK(pair.suspects[0].kind == Kind::pair);
  CHECK(pair.suspects[0].nodes == std::vector<std::string>{"node01", "node03"});
}

TEST_CASE("links: what cannot be told is not guessed", "[locate]") {
  // Two nodes: slow against what is expected, and either end may be the reason.
  const auto two = locate_links(all_pairs(2, [](int, int) { return 30.0; }), {0.85, 100.0});
  REQUIRE(two.suspects.size() == 1);
  CHECK(two.suspects[0].kind == Kind::undecided);
  CHECK(two.suspects[0].nodes == std::vector<std::string>{"node01", "node02"});
  // All slow: none is left to compare with.
  const auto all = locate_links(all_pairs(3, [](int, int) { return 30.0; }), {0.85, 100.0});
  REQUIRE(all.suspects.size() == 3);
  for (const auto& suspect : all.suspects) CHECK(suspect.kind == Kind::undecided);
  // Without an expectation equal nodes are healthy nodes.
  CHECK(locate_links(all_pairs(3, [](int, int) { return 30.0; })).suspects.empty());
  CHECK(locate_links({}).suspects.empty());
  CHECK_FALSE(locate_links({}).reference.has_value());
  // Nothing measured at all: every pair failed, none differs from the others.
  for (const auto& suspect : locate_links(all_pairs(3, [](int, int) { return -1.0; })).suspects)
    CHECK(suspect.kind == Kind::undecided);
}

TEST_CASE("links: the healthy rate is that of healthy pairs, also when most pairs touch a bad node",
          "[locate]") {
  std::vector<Rate> rates;
  for (int a = 0; a < 5; ++a)
    for (int b = a + 1; b < 5; ++b) rates.push_back({a, b, a < 2 ? 70.0 : 100.0 + b - a});
  CHECK(healthy_rate(5, rates).value() == Approx(101).margin(1));
  CHECK_FALSE(healthy_rate(3, {}).has_value());
}
