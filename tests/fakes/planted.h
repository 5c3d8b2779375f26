// Planted faults: a network whose links answer tests with noise and with the faults put into them, and the
// trials that count what a search for those faults names, misses and blames falsely.
//
// A test is kReadings readings of the rate, each with 3 % noise (normal); its value is the lowest of them. An
// intermittent fault fires in each reading with its own probability, independent of all others. Thread:
// values; one Planted per thread.
#pragma once

#include <map>
#include <vector>

#include "controller/locate/search.h"

namespace muster::locate {

constexpr int kReadings = 16;
constexpr double kNoise = 0.03;
constexpr double kSlow = 0.7;    // a slow-down of 30 %
constexpr double kFiring = 0.5;  // of an intermittent fault, per reading, unless a trial says otherwise

enum class Kind { slow, total, flaky_slow, flaky_total };
constexpr Kind kKinds[] = {Kind::slow, Kind::total, Kind::flaky_slow, Kind::flaky_total};
const char* to_string(Kind kind);

struct Fault {
  Kind kind = Kind::slow;
  double firing = kFiring;
};

class Planted {
 public:
  explicit Planted(uint64_t seed) : numbers_(seed) {}
  // The value of one test through these faults (nullptr: a healthy part).
  double measure(std::initializer_list<const Fault*> faults);
  Numbers& numbers() { return numbers_; }

 private:
  double lowest(int readings, double rate);  // exactly distributed, from one random number
  Numbers numbers_;
};
double normal_quantile(double p);  // of the standard normal distribution

// What happened in one or more trials.
struct Tally {
  size_t trials = 0, faults = 0, missed = 0, false_blame = 0;
  std::map<int, size_t> rounds = {};  // trials by the rounds they took
  std::map<Kind, size_t> missed_by_kind = {}, faults_by_kind = {};
  int rounds_max() const { return rounds.empty() ? 0 : rounds.rbegin()->first; }
  double rounds_mean() const;
  void add(const Tally& other);
};

// `bad` faults of random kinds (or of `kind`) in different ends of n; searched by proceed().
struct Trial {
  int n = 8, bad = 1;
  std::optional<Kind> kind = {};
  double firing = kFiring;
  int least_rounds = 0;
};
Tally search_nodes(const Trial& trial, uint64_t seed);
// The same with a schedule fixed beforehand and decode() at its end, for comparison.
Tally search_fixed(const Trial& trial, const std::vector<Round>& schedule, uint64_t seed);

}  // namespace muster::locate
