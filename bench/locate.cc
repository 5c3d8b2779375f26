// Counts what the search for bad nodes names, misses and names falsely, with faults planted in a simulated
// network (tests/fakes/planted.h). Closes with one line of JSON. usage: muster-bench-locate [TRIALS [FOLDER
// FOR SVG]]
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <thread>

#include "base/json.h"
#include "base/json_dump.h"
#include "bench/plot.h"
#include "tests/fakes/planted.h"

namespace muster::locate {
namespace {

using Search = std::function<Tally(uint64_t seed)>;

constexpr double kShares[] = {0.01, 0.02, 0.05};

int bad_of(double share, int parts) { return std::max(1, static_cast<int>(std::lround(share * parts))); }

class Bench {
 public:
  Bench(size_t trials, std::string folder) : trials_(trials), folder_(std::move(folder)) {}

  // Trials are independent: on all processors, the same result for any number of them.
  Tally run(size_t trials, const Search& search) const {
    const size_t workers = std::max(1u, std::thread::hardware_concurrency());
    std::vector<Tally> parts(workers);
    std::vector<std::thread> threads;
    for (size_t w = 0; w < workers; ++w)
      threads.emplace_back([&, w] {
        for (size_t i = w; i < trials; i += workers) parts[w].add(search(i + 1));
      });
    for (auto& thread : threads) thread.join();
    Tally tally;
    for (const Tally& part : parts) tally.add(part);
    return tally;
  }

  // One line of the table.
  void line(const std::string& what, int n, double share, int bad, int allowed, const Search& search) {
    const Tally t = run(trials_, search);
    fmt::print("{:<7} {:>4} {:>5.0f} % {:>5} {:>9} {:>9} {:>6} {:>6} {:>7.2f} {:>6} {:>8}", what, n,
               share * 100, bad, t.trials, t.faults, t.missed, t.false_blame, t.rounds_mean(), t.rounds_max(),
               allowed);
    for (const auto& [kind, missed] : t.missed_by_kind)
      fmt::print("   missed {} {}", missed, to_string(kind));
    fmt::print("\n");
    std::fflush(stdout);
    rows_.push_back({{"what", what},
                     {"n", n},
                     {"share", share},
                     {"bad", bad},
                     {"trials", t.trials},
                     {"faults", t.faults},
                     {"missed", t.missed},
                     {"false_blame", t.false_blame},
                     {"rounds_max", t.rounds_max()},
                     {"rounds_mean", t.rounds_mean()}});
    ends_.add(t);
    if (t.rounds_max() > allowed) over_ = true;
  }

  void ends() {
    for (const int n : {8, 64, 512})
      for (const double share : kShares) {
        const Trial nodes{.n = n, .bad = bad_of(share, n)};
        line("nodes", n, share, nodes.bad, log2_up(n) + 2,
             [&](uint64_t seed) { return search_nodes(nodes, seed); });
      }
  }

  // What an intermittent fault needs to be found.
  void firing() {
    bench::Chart chart{"Intermittent faults: missed against how often they fire",
                       "firing probability per reading (16 readings per test)",
                       "missed, share of faults",
                       0.3,
                       1,
                       {}};
    fmt::print(
        "# intermittent (slow 30 %) faults, 2 % of the nodes: share missed by firing probability per "
        "reading\n");
    const size_t trials = std::max<size_t>(1, trials_ / 20);
    for (const int n : {8, 64, 512}) {
      bench::Series series{fmt::format("{} nodes, at most {} rounds", n, log2_up(n) + 2), {}};
      for (const double p : {0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3}) {
        const Trial trial{.n = n, .bad = bad_of(0.02, n), .kind = Kind::flaky_slow, .firing = p};
        const Tally t = run(trials, [&](uint64_t seed) { return search_nodes(trial, seed); });
        series.points.emplace_back(p, static_cast<double>(t.missed) / static_cast<double>(t.faults));
        fmt::print("firing {:>5.3f}  nodes {:>4}  missed {:>6.2f} %  false positives {} in {} trials\n", p, n,
                   100 * series.points.back().second, t.false_blame, t.trials);
      }
      chart.series.push_back(std::move(series));
    }
    write("locate-firing.svg", chart);
  }

  // The adaptive search against schedules that are fixed beforehand, at growing numbers of bad nodes.
  void schedules() {
    constexpr int n = 64;
    bench::Chart chart{"64 nodes: missed against the share of bad nodes",
                       "bad nodes, %",
                       "missed, share of faults",
                       25,
                       1,
                       {}};
    fmt::print("# 64 nodes, all kinds of faults: schedules compared\n");
    const size_t trials = std::max<size_t>(1, trials_ / 20);
    const auto all = circle(n);
    const std::vector<std::pair<std::string, std::function<Tally(const Trial&, uint64_t)>>> kinds = {
        {"search (this code)", [](const Trial& t, uint64_t seed) { return search_nodes(t, seed); }},
        {"3 random matchings",
         [](const Trial& t, uint64_t seed) { return search_fixed(t, matchings(n, 3, seed), seed); }},
        {"circle, 63 rounds", [&](const Trial& t, uint64_t seed) { return search_fixed(t, all, seed); }}};
    for (const auto& [name, search] : kinds) {
      bench::Series series{name, {}};
      for (const int bad : {1, 2, 3, 5, 8, 11, 16}) {
        const Trial trial{.n = n, .bad = bad};
        const Tally t = run(trials, [&](uint64_t seed) { return search(trial, seed); });
        series.points.emplace_back(100.0 * bad / n,
                                   static_cast<double>(t.missed) / static_cast<double>(t.faults));
        fmt::print(
            "{:<20} bad {:>3}  missed {:>6.2f} %  false positives {:>3} in {} trials  rounds at most {}\n",
            name, bad, 100 * series.points.back().second, t.false_blame, t.trials, t.rounds_max());
      }
      chart.series.push_back(std::move(series));
    }
    write("locate-schedules.svg", chart);
  }

  Json summary() const {
    return {{"benchmark", "locate"},
            {"trials", trials_},
            {"noise", kNoise},
            {"readings", kReadings},
            {"firing", kFiring},
            {"rounds_max", ends_.rounds_max()},
            {"rounds_within_log2_plus_2", !over_},
            {"faults", ends_.faults},
            {"missed", ends_.missed},
            {"false_blame", ends_.false_blame},
            {"rows", rows_}};
  }
  bool good() const { return ends_.missed == 0 && ends_.false_blame == 0 && !over_; }

 private:
  void write(const std::string& name, const bench::Chart& chart) const {
    if (!folder_.empty()) std::ofstream(folder_ + "/" + name) << bench::svg(chart);
  }

  size_t trials_;
  std::string folder_;
  Tally ends_;
  Json rows_ = Json::array();
  bool over_ = false;
};

}  // namespace
}  // namespace muster::locate

int main(int argc, char** argv) {
  const long trials = argc > 1 ? std::atol(argv[1]) : 10000;
  if (trials < 1) {
    fmt::print(stderr, "usage: muster-bench-locate [TRIALS [FOLDER FOR SVG]]\n");
    return 2;
  }
  muster::locate::Bench bench(static_cast<size_t>(trials), argc > 2 ? argv[2] : "");
  fmt::print(
      "# 3 % noise, 16 readings per test; faults: slow 30 %, total, and both intermittent, firing in a "
      "reading with p = 0.5\n");
  bench.firing();
  bench.schedules();
  fmt::print("{:<7} {:>4} {:>7} {:>5} {:>9} {:>9} {:>6} {:>6} {:>7} {:>6} {:>8}\n", "what", "N", "bad", "bad",
             "trials", "faults", "missed", "false", "rounds", "max", "allowed");
  bench.ends();
  fmt::print("{}\n", muster::dump_json(bench.summary()));
  return bench.good() ? 0 : 1;
}
