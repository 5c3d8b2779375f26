// muster_sim: the whole cluster in one process under a seeded clock.
//   muster_sim --seed N [--nodes N] [--log short] [--plant stale|early|outside|again|blind|hard|unmarked]
//   muster_sim --seeds FROM TO         one line per seed that fails
//   with --in-place: nodes at work that are re-imaged in place
//   muster_sim --fixed [COUNT]         the fixed seeds, each twice, with equal hash; then every planted bug
//                                      must be caught
// The last line is 'N passed, N failed'; exit 1 when one failed.
#include <cstring>
#include <string>

#include "sys/log.h"
#include "tests/sim/simulate.h"

namespace {

using namespace muster::sim;

constexpr uint64_t kFixedSeeds = 20;
constexpr uint64_t kPlantSeeds = 100;

void print(uint64_t seed, const Verdict& v) {
  fmt::print("seed {:<6} {} hash {:016x}  {} events, {} runs, {} simulated\n", seed,
             v.violations.empty() ? "ok    " : "FAILED", v.hash, v.steps, v.runs,
             muster::to_human(v.simulated));
  for (const auto& violation : v.violations) fmt::print("  {}\n", violation);
}

int close(int passed, int failed) {
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed ? 1 : 0;
}

// A checker that cannot fail is no checker: each bug planted on purpose must be found within a few dozen
// seeds.
bool caught(const std::string& plant) {
  for (uint64_t seed = 1; seed <= kPlantSeeds; ++seed) {
    Options options = options_for(seed, 0);
    options.plant = plant;
    const Verdict v = simulate(options);
    if (v.violations.empty()) continue;
    fmt::print("planted '{}' caught by seed {}: {}\n", plant, seed, v.violations.front());
    return true;
  }
  fmt::print("planted '{}' was NOT caught in {} seeds\n", plant, kPlantSeeds);
  return false;
}

int fixed(uint64_t seeds) {
  int passed = 0, failed = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Verdict first = simulate(options_for(seed, 0));
    const Verdict second = simulate(options_for(seed, 0));
    if (first.hash != second.hash)
      first.violations.push_back("determinism: the second run differs from the first");
    print(seed, first);
    ++(first.violations.empty() ? passed : failed);
  }
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Verdict first = simulate(options_in_place(seed, 0));
    if (first.hash != simulate(options_in_place(seed, 0)).hash)
      first.violations.push_back("determinism: the second run differs from the first");
    fmt::print("in place, ");
    print(seed, first);
    ++(first.violations.empty() ? passed : failed);
  }
  for (const char* plant : {"stale", "early", "outside", "again", "blind", "hard", "unmarked"})
    ++(caught(plant) ? passed : failed);
  return close(passed, failed);
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1, last = 0;
  int nodes = 0;
  bool short_log = false, in_place = false;
  std::string plant;
  muster::log::set_level(muster::log::Level::error);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : "0"; };
    if (word == "--fixed") {
      const uint64_t count = i + 1 < argc ? std::strtoull(argv[i + 1], nullptr, 10) : kFixedSeeds;
      if (count == 0)
        return fmt::print(stderr, "muster_sim: --fixed needs a number of seeds, not '{}'\n", argv[i + 1]), 2;
      return fixed(count);
    }
    if (word == "--seed")
      seed = last = std::strtoull(value(), nullptr, 10);
    else if (word == "--seeds")
      seed = std::strtoull(value(), nullptr, 10), last = std::strtoull(value(), nullptr, 10);
    else if (word == "--in-place")
      in_place = true;
    else if (word == "--nodes")
      nodes = std::atoi(value());
    else if (word == "--log")
      short_log = std::strcmp(value(), "short") == 0;
    else if (word == "--plant")
      plant = value();
    else
      return fmt::print(stderr, "muster_sim: unknown argument '{}'\n", word), 2;
  }
  int passed = 0, failed = 0;
  for (; seed <= last; ++seed) {
    Options options = in_place ? options_in_place(seed, nodes) : options_for(seed, nodes);
    options.log = short_log;
    options.plant = plant;
    const Verdict v = simulate(options);
    if (!v.violations.empty() || last == seed) print(seed, v);
    ++(v.violations.empty() ? passed : failed);
  }
  return close(passed, failed);
}
