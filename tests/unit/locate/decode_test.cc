// The decoder: two witnesses, no conviction by the bad, none among parts that are never apart.
#include "controller/locate/decode.h"

#include <algorithm>

#include "tests/catch.h"

using namespace muster::locate;

namespace {
std::vector<Part> faulty(const Decoded& decoded) {
  std::vector<Part> out;
  for (const auto& located : decoded.faulty) out.push_back(located.part);
  return out;
}
}  // namespace

TEST_CASE("decode: a part is convicted by two different witnesses, never by one", "[locate]") {
  const Probe pass12{{1, 2}, false}, pass34{{3, 4}, false};
  CHECK(faulty(decode(5, {{{0, 1}, true}, pass12, pass34})).empty());
  CHECK(faulty(decode(5, {{{0, 1}, true}, {{0, 1}, true}, pass12})).empty());  // the same witness twice
  CHECK(faulty(decode(5, {{{0, 1}, true}, {{0, 3}, true}, pass12, pass34})) == std::vector<Part>{0});
  // A witness that never passed is none.
  CHECK(faulty(decode(5, {{{0, 1}, true}, {{0, 3}, true}, pass12})).empty());
}

TEST_CASE("decode: a good part that met two bad ones is not blamed", "[locate]") {
  // 0 and 1 are bad, 2 met both, 3 to 6 are good.
  const std::vector<Probe> probes = {{{0, 2}, true}, {{1, 2}, true}, {{0, 3}, true},  {{1, 4}, true},
                                     {{0, 5}, true}, {{1, 6}, true}, {{3, 4}, false}, {{5, 6}, false}};
  const Decoded decoded = decode(7, probes);
  CHECK(faulty(decoded) == std::vector<Part>{0, 1});
  CHECK(decoded.unexplained.empty());
}

TEST_CASE("decode: a conviction makes witnesses of those it excuses", "[locate]") {
  // 0 is convicted by 2 and 3; only then can 2 and 3 testify against 1.
  const std::vector<Probe> probes = {{{0, 2}, true},  {{0, 3}, true},  {{0, 4}, true},
                                     {{0, 5}, true},  {{1, 4}, true},  {{1, 5}, true},
                                     {{2, 3}, false}, {{4, 5}, false}, {{2, 4}, false}};
  CHECK(faulty(decode(6, probes)) == std::vector<Part>{0, 1});
}

TEST_CASE("decode: in a full matrix the bad ones are those that pass nowhere", "[locate]") {
  for (int n = 4; n <= 9; ++n)
    for (int bad = 1; 2 * bad <= n; ++bad) {
      std::vector<Probe> probes;
      for (Part a = 0; a < n; ++a)
        for (Part b = a + 1; b < n; ++b) probes.push_back({{a, b}, a < bad});
      std::vector<Part> found = faulty(decode(static_cast<size_t>(n), probes));
      std::sort(found.begin(), found.end());
      CAPTURE(n, bad);
      CHECK(static_cast<int>(found.size()) == bad);
      CHECK((found.empty() || found.back() == bad - 1));
    }
}

TEST_CASE("decode: what is not explained stays visible", "[locate]") {
  const Decoded decoded = decode(4, {{{0, 1}, true}, {{2, 3}, false}, {{0, 2}, false}, {{1, 3}, false}});
  CHECK(faulty(decoded).empty());
  CHECK(decoded.unexplained == std::vector<size_t>{0});
}

TEST_CASE("decode: on longer paths the part that two failures share is found", "[locate]") {
  // Hosts 0 to 3, uplinks 4 to 7; uplink 5 is bad.
  const std::vector<Probe> probes = {{{0, 4, 6, 2}, false},
                                     {{1, 5, 6, 3}, true},
                                     {{0, 5, 7, 2}, true},
                                     {{1, 4, 7, 2}, false},
                                     {{3, 6, 4, 0}, false}};
  CHECK(faulty(decode(8, probes)) == std::vector<Part>{5});
}

TEST_CASE("decode: parts that are never apart do not testify against each other", "[locate]") {
  // A NIC 0 and its cable 1 are on the same probes; either may be the bad one.
  const Decoded decoded = decode(6, {{{0, 1, 2}, true}, {{0, 1, 3}, true}, {{2, 4}, false}, {{3, 5}, false}});
  CHECK(faulty(decoded).empty());
  CHECK(decoded.unexplained == std::vector<size_t>{0, 1});
}
