// Schedules: rounds are disjoint, and each schedule covers what its name says.
#include "controller/locate/pairing.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/catch.h"

using namespace muster::locate;

namespace {

bool disjoint(const Round& round) {
  std::set<int> ends;
  for (const auto& [a, b] : round)
    if (a == b || !ends.insert(a).second || !ends.insert(b).second) return false;
  return true;
}
std::set<Pair> pairs(const std::vector<Round>& rounds) {
  std::set<Pair> out;
  for (const Round& round : rounds)
    for (const auto& [a, b] : round) out.insert(std::minmax(a, b));
  return out;
}
size_t tests(const std::vector<Round>& rounds) {
  size_t out = 0;
  for (const Round& round : rounds) out += round.size();
  return out;
}

}  // namespace

TEST_CASE("pairing: the circle meets every pair exactly once", "[locate]") {
  for (int n = 0; n <= 33; ++n) {
    const auto rounds = circle(n);
    CAPTURE(n);
    CHECK(static_cast<int>(rounds.size()) == (n < 2 ? 0 : n - 1 + n % 2));
    CHECK(std::all_of(rounds.begin(), rounds.end(), disjoint));
    CHECK(pairs(rounds).size() == static_cast<size_t>(n * (n - 1) / 2));
    CHECK(tests(rounds) == static_cast<size_t>(n * (n - 1) / 2));
  }
}

TEST_CASE("pairing: random matchings never repeat a partner, and depend on the seed only", "[locate]") {
  for (const int n : {8, 9, 64}) {
    const auto rounds = matchings(n, 5, 7);
    CHECK(rounds.size() == 5);
    CHECK(std::all_of(rounds.begin(), rounds.end(), disjoint));
    CHECK(pairs(rounds).size() == tests(rounds));
    CHECK(rounds == matchings(n, 5, 7));
    CHECK(rounds != matchings(n, 5, 8));
  }
  CHECK(matchings(4, 10, 1).size() == 3);  // there are no more
  CHECK(matchings(1, 3, 1).empty());
}

TEST_CASE("pairing: fixed partners are mutual; all of a few, log2 N + 2 of many", "[locate]") {
  for (const int n : {1, 2, 3, 8, 9, 64, 100}) {
    CAPTURE(n);
    for (int a = 0; a < n; ++a) {
      const auto mine = partners(n, a);
      CHECK(std::set<int>(mine.begin(), mine.end()).size() == mine.size());
      CHECK_FALSE(std::count(mine.begin(), mine.end(), a));
      if (n <= kAllPairs) CHECK(static_cast<int>(mine.size()) == n - 1);
      if (n > kAllPairs)
        CHECK(static_cast<int>(mine.size()) >= log2_up(n) + 1);  // with an odd number one rests
      if (n > kAllPairs) CHECK(static_cast<int>(mine.size()) <= log2_up(n) + 2);
      for (const int b : mine) {
        const auto theirs = partners(n, b);
        CHECK(std::count(theirs.begin(), theirs.end(), a) == 1);
      }
    }
  }
}

TEST_CASE("pairing: logarithms", "[locate]") {
  CHECK(log2_up(1) == 0);
  CHECK(log2_up(8) == 3);
  CHECK(log2_up(9) == 4);
  CHECK(log2_up(512) == 9);
}
