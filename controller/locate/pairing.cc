#include "controller/locate/pairing.h"

#include <numeric>

namespace muster::locate {
namespace {

// Returns round r of the circle method for n ends, with the ends renumbered by `name`.
Round circle_round(int n, int r, const std::vector<int>& name) {
  const int even = n + n % 2;  // if n is odd, a dummy end is added, whose partner is idle
  const auto at = [&](int position) { return position == 0 ? 0 : 1 + (position - 1 + r) % (even - 1); };
  Round out;
  for (int i = 0; i < even / 2; ++i) {
    const int a = at(i), b = at(even - 1 - i);
    if (a < n && b < n) out.emplace_back(name[static_cast<size_t>(a)], name[static_cast<size_t>(b)]);
  }
  return out;
}

std::vector<int> numbered(int n) {
  std::vector<int> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

int circle_rounds(int n) { return n < 2 ? 0 : n - 1 + n % 2; }

}  // namespace

std::vector<Round> circle(int n) {
  std::vector<Round> out;
  for (int r = 0; r < circle_rounds(n); ++r) out.push_back(circle_round(n, r, numbered(n)));
  return out;
}

std::vector<Round> matchings(int n, int rounds, uint64_t seed) {
  if (n < 2) return {};
  Numbers numbers(seed);
  std::vector<int> name = numbered(n), order = numbered(circle_rounds(n));
  numbers.shuffle(name);
  numbers.shuffle(order);
  std::vector<Round> out;
  for (int r = 0; r < rounds && r < circle_rounds(n); ++r)
    out.push_back(circle_round(n, order[static_cast<size_t>(r)], name));
  return out;
}

std::vector<int> partners(int n, int self, uint64_t seed) {
  std::vector<int> out;
  for (const Round& round : n <= kAllPairs ? circle(n) : matchings(n, log2_up(n) + 2, seed))
    for (const auto& [a, b] : round)
      if (a == self || b == self) out.push_back(a == self ? b : a);
  return out;
}

int log2_up(int n) {
  int k = 0;
  while ((int64_t{1} << k) < n) ++k;
  return k;
}

}  // namespace muster::locate
