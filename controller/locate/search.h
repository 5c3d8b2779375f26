// The search for bad nodes (ends), round by round: random matchings in which every end gets new partners, and
// from the first failure on suspects get partners that have passed everything.
//
// A function of what was measured so far, so a restarted controller continues with the same next round. Ends
// with three witnesses against them are left out. A pair that failed although both ends pass with others is
// tested again as a pair: three failures name the path between them; a repetition that passes is only noted.
// It stops when nothing is open, but not before `least_rounds`: an intermittent fault needs several tests to
// appear. Thread: pure functions.
#pragma once

#include <optional>

#include "controller/locate/decode.h"
#include "controller/locate/pairing.h"

namespace muster::locate {

struct Tested {
  int a = 0, b = 0;
  int round = 0;
  double value = 0;  // the lowest reading of the test, both directions; 0 when there is none
};

struct SearchOptions {
  int ends = 0;
  uint64_t seed = 1;
  double floor_ratio = 0.85;         // of healthy_rate(): halfway between healthy and 30 % slow
  std::optional<double> floor = {};  // the floor itself, when it is known
  int least_rounds = 0;              // 0: log2 of the ends + 1, at least 3
  int most_rounds = 0;               // 0: log2 of the ends + 2
};
int least_rounds(const SearchOptions& options);
int most_rounds(const SearchOptions& options);

struct Progress {
  Round next = {};                      // empty: finished
  std::vector<Conviction> guilty = {};  // part = end; against = indexes into the tests
  std::vector<Pair> paths = {};         // failed three times of three; both ends pass with others
  std::vector<Pair> not_repeated = {};  // passed when repeated; both ends pass with others
  std::vector<Pair> undecided = {};     // failed, not explained yet
};
Progress proceed(const SearchOptions& options, const std::vector<Tested>& tested);

}  // namespace muster::locate
