#include "tests/fakes/planted.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace muster::locate {
namespace {

size_t z(int number) { return static_cast<size_t>(number); }

Fault random_fault(const Trial& trial, Numbers& numbers) {
  return {trial.kind ? *trial.kind : kKinds[numbers.below(4)], trial.firing};
}

// `count` different numbers below n.
std::vector<int> choose(int n, int count, Numbers& numbers) {
  std::set<int> chosen;
  while (static_cast<int>(chosen.size()) < std::min(n, count))
    chosen.insert(static_cast<int>(numbers.below(z(n))));
  return {chosen.begin(), chosen.end()};
}

template <typename Where>
void count_missed(Tally& tally, const std::map<Where, Fault>& planted, const std::set<Where>& named) {
  tally.trials = 1;
  for (const auto& [where, fault] : planted) {
    ++tally.faults;
    ++tally.faults_by_kind[fault.kind];
    if (named.count(where)) continue;
    ++tally.missed;
    ++tally.missed_by_kind[fault.kind];
  }
  for (const auto& where : named) tally.false_blame += !planted.count(where);
}

const Fault* at(const std::map<int, Fault>& faults, int where) {
  const auto it = faults.find(where);
  return it == faults.end() ? nullptr : &it->second;
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::slow:
      return "slow 30 %";
    case Kind::total:
      return "total";
    case Kind::flaky_slow:
      return "intermittent, slow 30 %";
    case Kind::flaky_total:
      return "intermittent, total";
  }
  return "?";
}

// Acklam's rational approximation; relative error below 1.2e-9.
double normal_quantile(double p) {
  static constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                 1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                                 6.680131188771972e+01, -1.328068155288572e+01};
  static constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                 -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                 3.754408661907416e+00};
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

// The lowest of k independent readings has the distribution 1 - (1 - F)^k: drawn from one number instead of
// k.
double Planted::lowest(int readings, double rate) {
  const double u = std::max(numbers_.share(), 0x1.0p-54);
  const double p = -std::expm1(std::log1p(-u) / readings);
  return std::max(0.0, rate * (1 + kNoise * normal_quantile(p)));
}

double Planted::measure(std::initializer_list<const Fault*> faults) {
  int slow = 0;  // readings that a fault slows down; those of two faults are put one beside the other
  for (const Fault* fault : faults) {
    if (!fault) continue;
    int fired = kReadings;
    if (fault->kind == Kind::flaky_slow || fault->kind == Kind::flaky_total) {
      fired = 0;
      for (int i = 0; i < kReadings; ++i) fired += numbers_.share() < fault->firing;
    }
    if (fired > 0 && (fault->kind == Kind::total || fault->kind == Kind::flaky_total)) return 0;
    slow = std::min(kReadings, slow + fired);
  }
  const double healthy = slow < kReadings ? lowest(kReadings - slow, 1) : 2;
  return slow > 0 ? std::min(healthy, lowest(slow, kSlow)) : healthy;
}

double Tally::rounds_mean() const {
  double sum = 0;
  for (const auto& [count, with] : rounds) sum += count * static_cast<double>(with);
  return trials ? sum / static_cast<double>(trials) : 0;
}

void Tally::add(const Tally& other) {
  trials += other.trials;
  faults += other.faults;
  missed += other.missed;
  false_blame += other.false_blame;
  for (const auto& [count, with] : other.rounds) rounds[count] += with;
  for (const auto& [kind, count] : other.missed_by_kind) missed_by_kind[kind] += count;
  for (const auto& [kind, count] : other.faults_by_kind) faults_by_kind[kind] += count;
}

Tally search_nodes(const Trial& trial, uint64_t seed) {
  Planted network(seed);
  std::map<int, Fault> planted;
  for (const int where : choose(trial.n, trial.bad, network.numbers()))
    planted[where] = random_fault(trial, network.numbers());
  SearchOptions options{
      .ends = trial.n, .seed = network.numbers().next(), .least_rounds = trial.least_rounds};
  std::vector<Tested> tested;
  Progress progress = proceed(options, tested);
  int round = 0;
  for (; !progress.next.empty(); progress = proceed(options, tested), ++round)
    for (const auto& [a, b] : progress.next)
      tested.push_back({a, b, round, network.measure({at(planted, a), at(planted, b)})});
  Tally tally;
  std::set<int> named;
  for (const auto& located : progress.faulty) named.insert(located.part);
  count_missed(tally, planted, named);
  tally.false_blame += progress.paths.size();  // no path is bad here
  tally.rounds[round] = 1;
  return tally;
}

Tally search_fixed(const Trial& trial, const std::vector<Round>& schedule, uint64_t seed) {
  Planted network(seed);
  std::map<int, Fault> planted;
  for (const int where : choose(trial.n, trial.bad, network.numbers()))
    planted[where] = random_fault(trial, network.numbers());
  std::vector<Tested> tested;
  for (size_t r = 0; r < schedule.size(); ++r)
    for (const auto& [a, b] : schedule[r])
      tested.push_back({a, b, static_cast<int>(r), network.measure({at(planted, a), at(planted, b)})});
  SearchOptions options{.ends = trial.n, .least_rounds = 1, .most_rounds = 1};
  Tally tally;
  std::set<int> named;
  for (const auto& located : proceed(options, tested).faulty) named.insert(located.part);
  count_missed(tally, planted, named);
  tally.rounds[static_cast<int>(schedule.size())] = 1;
  return tally;
}

}  // namespace muster::locate
