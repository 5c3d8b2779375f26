#include "controller/locate/search.h"

#include <algorithm>
#include <map>

#include "controller/locate/links.h"

namespace muster::locate {
namespace {

// A failed pair is tested again if each end passed, with others, kClearing tests for each test of the pair.
// After kPathTests failures the path is bad: an end with an intermittent fault would have failed with other
// partners, too.
constexpr size_t kClearing = 2, kPathTests = 3;
// An end is tested until it failed this many tests with credible partners: two are not enough, since one of
// the partners may turn out to be bad.
constexpr size_t kConfirming = 3;
constexpr std::ptrdiff_t kLeastTests = 3;  // tests per end with partners that are not bad

size_t z(int number) { return static_cast<size_t>(number); }

class Search {
 public:
  Search(const SearchOptions& options, const std::vector<Tested>& tested)
      : options_(options), tested_(tested), ends_(static_cast<size_t>(options.ends)) {
    std::vector<Rate> rates;
    for (const Tested& t : tested) {
      round_ = std::max(round_, t.round + 1);
      if (t.value > 0) rates.push_back({t.a, t.b, t.value});
    }
    const double floor =
        options.floor ? *options.floor : options.floor_ratio * healthy_rate(ends_.size(), rates).value_or(0);
    for (End& end : ends_) end.met.reserve(z(round_)), end.passed_with.reserve(z(round_));
    std::vector<bool> failed(tested.size()), involved(ends_.size());
    for (size_t i = 0; i < tested.size(); ++i) {
      const Tested& t = tested[i];
      failed[i] = t.value <= 0 || t.value < floor;
      if (failed[i]) involved[z(t.a)] = involved[z(t.b)] = true;
      for (const auto& [end, other] : {Pair{t.a, t.b}, Pair{t.b, t.a}}) {
        at(end).met.push_back(other);
        if (!failed[i]) at(end).passed_with.push_back(other);
      }
    }
    // Tests between ends that never failed give no information about those that did.
    for (size_t i = 0; i < tested.size(); ++i)
      if (involved[z(tested[i].a)] || involved[z(tested[i].b)]) {
        probes_.push_back({{tested[i].a, tested[i].b}, failed[i]});
        number_.push_back(i);
      }
  }

  Progress run() {
    Decoded decoded = decode(ends_.size(), probes_);
    for (const auto& located : decoded.faulty) {
      at(located.part).faulty = true;
      at(located.part).confirmed = located.against.size() >= kConfirming;
    }
    for (auto& located : decoded.faulty)
      for (size_t& i : located.against) i = number_[i];
    for (size_t& i : decoded.unexplained) i = number_[i];
    out_.faulty = std::move(decoded.faulty);
    sort_open_pairs(decoded.unexplained);
    const bool open = !out_.undecided.empty() || anyone_hardly_tested();
    if (round_ < most_rounds(options_) && (open || round_ < least_rounds(options_))) plan();
    return std::move(out_);
  }

 private:
  struct End {
    std::vector<int> met = {}, passed_with = {};
    bool faulty = false, confirmed = false, suspect = false, busy = false;
  };
  End& at(int end) { return ends_[z(end)]; }

  // Returns how many tests the end passed with partners that are not bad, except with the given one.
  size_t passes_without(int end, int partner) {
    size_t passes = 0;
    for (const int other : at(end).passed_with) passes += other != partner && !at(other).faulty;
    return passes;
  }

  void sort_open_pairs(const std::vector<size_t>& unexplained) {
    std::map<Pair, size_t> failures;
    for (const size_t i : unexplained) ++failures[std::minmax(tested_[i].a, tested_[i].b)];
    for (const auto& [pair, failed] : failures) {
      const auto& met = at(pair.first).met;
      const auto tests = static_cast<size_t>(std::count(met.begin(), met.end(), pair.second));
      if (failed == tests && tests >= kPathTests) {
        out_.paths.push_back(pair);
        continue;
      }
      const bool cleared = passes_without(pair.first, pair.second) >= kClearing * tests &&
                           passes_without(pair.second, pair.first) >= kClearing * tests;
      if (cleared && failed < tests) {
        out_.not_repeated.push_back(pair);
        continue;
      }
      out_.undecided.push_back(pair);
      if (cleared) again_.push_back(pair);
      at(pair.first).suspect = at(pair.second).suspect = true;
    }
  }

  // True if the end had too few tests with good partners; a test with a bad partner gives no information.
  bool hardly_tested(const End& end) {
    const auto counts =
        std::count_if(end.met.begin(), end.met.end(), [&](int other) { return !at(other).faulty; });
    return !end.faulty && counts < std::min<std::ptrdiff_t>(round_, kLeastTests);
  }
  bool anyone_hardly_tested() {
    return std::any_of(ends_.begin(), ends_.end(), [&](const End& end) { return hardly_tested(end); });
  }

  void take(int a, int b) {
    at(a).busy = at(b).busy = true;
    out_.next.emplace_back(a, b);
  }
  bool free(int end) { return !at(end).busy && !at(end).faulty; }
  bool met(int a, int b) { return std::find(at(a).met.begin(), at(a).met.end(), b) != at(a).met.end(); }

  void plan() {
    Numbers numbers(options_.seed + 0x10001 * static_cast<uint64_t>(round_));
    for (const auto& [a, b] : again_)
      if (free(a) && free(b)) take(a, b);
    std::vector<int> order(ends_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    numbers.shuffle(order);
    // Credible partners are few. Ends that never passed get one first, then those that were idle or tested
    // with a bad end, last those that are convicted but not confirmed.
    std::vector<int> first = order;
    std::stable_sort(first.begin(), first.end(), [&](int a, int b) {
      return std::pair(at(a).faulty, at(a).passed_with.size()) <
             std::pair(at(b).faulty, at(b).passed_with.size());
    });
    for (const int end : first)
      if (at(end).faulty ? !at(end).confirmed && !at(end).busy
                         : free(end) && (at(end).suspect || hardly_tested(at(end))))
        add_good_partner(end, order);
    // All other ends get new partners.
    const auto rounds = matchings(options_.ends, round_ + 1, options_.seed);
    if (static_cast<size_t>(round_) < rounds.size())
      for (const auto& [a, b] : rounds.back())
        if (free(a) && free(b) && !met(a, b)) take(a, b);
    for (size_t i = 0; i < order.size(); ++i)
      for (size_t j = i + 1; free(order[i]) && j < order.size(); ++j)
        if (free(order[j]) && !met(order[i], order[j])) take(order[i], order[j]);
  }

  // Gives `end` a partner that it has not met: if possible one that is not suspect, and of these the one with
  // the most passes.
  void add_good_partner(int end, const std::vector<int>& order) {
    int best = -1;
    const auto better = [&](int a, int b) {
      if (at(a).suspect != at(b).suspect) return at(b).suspect;
      return at(a).passed_with.size() > at(b).passed_with.size();
    };
    for (const int other : order)
      if (other != end && free(other) && (best < 0 || better(other, best)) && !met(end, other)) best = other;
    if (best >= 0) take(end, best);
  }

  const SearchOptions& options_;
  const std::vector<Tested>& tested_;
  std::vector<End> ends_;
  std::vector<Probe> probes_;
  std::vector<size_t> number_;  // index of each probe into tested_
  std::vector<Pair> again_;
  int round_ = 0;
  Progress out_;
};

}  // namespace

int least_rounds(const SearchOptions& options) {
  return options.least_rounds > 0 ? options.least_rounds : std::max(3, log2_up(options.ends) + 1);
}
int most_rounds(const SearchOptions& options) {
  return options.most_rounds > 0 ? options.most_rounds : log2_up(options.ends) + 2;
}

Progress proceed(const SearchOptions& options, const std::vector<Tested>& tested) {
  return Search(options, tested).run();
}

}  // namespace muster::locate
