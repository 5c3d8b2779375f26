// The search for bad nodes (ends), round by round: random matchings in which every end gets new partners;
// after the first failure, suspects get partners that have passed all their tests.
//
// The next round depends only on the measurements so far, so a restarted controller continues with the same
// round. Ends that failed three tests with credible partners are left out. A pair that failed although both
// ends pass with others is tested again: after three failures the path between them is reported; a repetition
// that passes is only noted. The search ends when no failure is open, but not before `least_rounds`: an
// intermittent fault takes several tests to appear. Thread safety: stateless functions.
#pragma once

#include <optional>

#include "controller/locate/decode.h"
#include "controller/locate/pairing.h"

namespace muster::locate {

struct Tested {
  int a = 0, b = 0;
  int round = 0;
  double value = 0;  // the lowest reading in either direction; 0: no reading
};

struct SearchOptions {
  int ends = 0;
  uint64_t seed = 1;
  double floor_ratio = 0.85;         // relative to healthy_rate(); halfway between healthy and 30 % slow
  std::optional<double> floor = {};  // the floor itself, if known
  int least_rounds = 0;              // 0: log2 of the ends + 1, at least 3
  int most_rounds = 0;               // 0: log2 of the ends + 2
};
int least_rounds(const SearchOptions& options);
int most_rounds(const SearchOptions& options);

struct Progress {
  Round next = {};                        // empty: finished
  std::vector<LocatedFault> faulty = {};  // part = end; against = indexes into `tested`
  std::vector<Pair> paths = {};           // failed all three tests; both ends pass with others
  std::vector<Pair> not_repeated = {};    // passed when repeated; both ends pass with others
  std::vector<Pair> undecided = {};       // failed, not explained yet
};
Progress proceed(const SearchOptions& options, const std::vector<Tested>& tested);

}  // namespace muster::locate
