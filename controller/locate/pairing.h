// Chooses which ends are tested together. A round is a set of pairs without a common end, so that each end's
// bandwidth is used by one test only. Ends are numbered 0 ... n - 1; if n is odd, one end is idle in each
// round. Thread safety: stateless functions; a seed gives the same rounds on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace muster::locate {

using Pair = std::pair<int, int>;
using Round = std::vector<Pair>;

// Circle method: every pair exactly once, in n - 1 rounds (n if odd). For few ends: tests all paths.
std::vector<Round> circle(int n);
// Random matchings without a repeated pair: rounds of circle() with shuffled end numbers.
std::vector<Round> matchings(int n, int rounds, uint64_t seed);

// Returns the partners of end `self` in each round, for rounds that are fixed beforehand: all other ends if n
// is at most kAllPairs, else log2 n + 2 different ones. Symmetric: if a is a partner of b, b is one of a.
constexpr int kAllPairs = 8;
std::vector<int> partners(int n, int self, uint64_t seed = 1);

int log2_up(int n);  // smallest k with 2^k >= n

// Random numbers for shuffles; the distributions of <random> differ between standard libraries.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }  // n is far below 2^64: no visible bias
  double share() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace muster::locate
