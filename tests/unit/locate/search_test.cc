// The search against planted faults. A fixed, small number of trials; `bench/run.sh locate` runs 10,000 of
// each.
#include "controller/locate/search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/catch.h"
#include "tests/fakes/planted.h"

using namespace muster::locate;

namespace {
template <typename Search>
Tally run(size_t trials, Search search) {
  Tally tally;
  for (size_t i = 0; i < trials; ++i) tally.add(search(i + 1));
  return tally;
}
}  // namespace

TEST_CASE("search: every planted node is named in log2 N + 2 rounds, and no other", "[locate]") {
  for (const auto& [n, trials] : {std::pair{8, 300}, {64, 100}, {512, 8}})
    for (const double share : {0.01, 0.02, 0.05}) {
      const Trial trial{.n = n, .bad = std::max(1, static_cast<int>(std::lround(share * n)))};
      const Tally t =
          run(static_cast<size_t>(trials), [&](uint64_t seed) { return search_nodes(trial, seed); });
      CAPTURE(n, share);
      CHECK(t.faults >= t.trials);
      CHECK(t.missed == 0);
      CHECK(t.false_blame == 0);
      CHECK(t.rounds_max() <= log2_up(n) + 2);
    }
}

TEST_CASE("search: the fault that fires rarely is missed, and the count says so", "[locate]") {
  const Trial rare{.n = 8, .bad = 1, .kind = Kind::flaky_slow, .firing = 0.005};
  const Tally t = run(100, [&](uint64_t seed) { return search_nodes(rare, seed); });
  CHECK(t.missed > 50);
  CHECK(t.missed_by_kind.at(Kind::flaky_slow) == t.missed);
  const Trial healthy{.n = 64, .bad = 0};
  const Tally none = run(50, [&](uint64_t seed) { return search_nodes(healthy, seed); });
  CHECK(none.faults == 0);
  CHECK(none.false_blame == 0);
}

TEST_CASE("search: a bad path is found as such, a failure that does not repeat is only noted", "[locate]") {
  const auto search = [](int failures) {
    SearchOptions options{.ends = 16, .most_rounds = 14};
    std::vector<Tested> tested;
    Progress progress = proceed(options, tested);
    const Pair bad = std::minmax(progress.next.front().first, progress.next.front().second);
    int failed = 0;
    for (int round = 0; !progress.next.empty(); ++round, progress = proceed(options, tested)) {
      for (const auto& [a, b] : progress.next) {
        const bool fails = Pair(std::minmax(a, b)) == bad && failed < failures;
        failed += fails;
        tested.push_back({a, b, round, fails ? 0.5 : 1.0});
      }
    }
    CHECK(progress.faulty.empty());
    CHECK(progress.undecided.empty());
    return std::pair(progress.paths.size(), progress.not_repeated.size());
  };
  CHECK(search(100) == std::pair<size_t, size_t>{1, 0});
  CHECK(search(1) == std::pair<size_t, size_t>{0, 1});
}

TEST_CASE("search: each round follows from what was measured, and is disjoint", "[locate]") {
  const SearchOptions options{.ends = 9, .seed = 3};
  const std::vector<Tested> one = {{0, 1, 0, 0.2}, {2, 3, 0, 1}, {4, 5, 0, 1}, {6, 7, 0, 1}};
  const Progress progress = proceed(options, one);
  CHECK(progress.next == proceed(options, one).next);
  CHECK(progress.undecided == std::vector<Pair>{{0, 1}});
  std::set<int> ends;
  for (const auto& [a, b] : progress.next) {
    CHECK(ends.insert(a).second);
    CHECK(ends.insert(b).second);
    CHECK_FALSE((a + b == 1 && a * b == 0));  // suspects meet others
  }
  CHECK((ends.count(0) && ends.count(1)));
  CHECK(proceed({.ends = 0}, {}).next.empty());
  CHECK(proceed({.ends = 1}, {}).next.empty());
}

TEST_CASE("planted: the noise is what it says", "[locate]") {
  CHECK(normal_quantile(0.5) == Approx(0).margin(1e-9));
  CHECK(normal_quantile(0.975) == Approx(1.959964).epsilon(1e-5));
  CHECK(normal_quantile(0.001) == Approx(-3.090232).epsilon(1e-5));
  // The lowest of 16 readings of a healthy part: mean 1 - 0.03 x 1.766.
  Planted network(5);
  double sum = 0;
  for (int i = 0; i < 4000; ++i) sum += network.measure({nullptr, nullptr});
  CHECK(sum / 4000 == Approx(1 - kNoise * 1.766).margin(0.002));
  const Fault dead{Kind::total};
  CHECK(network.measure({&dead, nullptr}) == 0);
}
