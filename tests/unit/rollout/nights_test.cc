// A rollout over thirty-six nights, with faults, jobs, operators and restarts drawn by a seed: clusters of
// 3 to 200 nodes, and every two hundredth has 1,000. Ten thousand seeds:
//   MUSTER_ROLLOUT_SEEDS=10000 build/muster_tests "rollout nights: *"
#include "tests/unit/rollout/nights.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace muster::rollout::sim;

namespace {

uint64_t seeds() {
  const char* requested = std::getenv("MUSTER_ROLLOUT_SEEDS");
  return requested ? std::strtoull(requested, nullptr, 10) : 150;
}

// Of seeds 1 to `count`, on all processors.
std::vector<Nights> simulate_all(uint64_t count) {
  std::vector<Nights> out(count);
  std::atomic<uint64_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (uint64_t at = next++; at < count; at = next++) out[at] = simulate(at + 1);
    });
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace

TEST_CASE("rollout nights: no promise is broken, whatever happens", "[rollout]") {
  Nights all;
  Counts& counts = all.counts;
  const std::vector<Nights> every = simulate_all(seeds());
  for (size_t at = 0; at < every.size(); ++at) {
    const Nights& n = every[at];
    CAPTURE(at + 1, n.nodes);
    REQUIRE(n.bad == "");
    all.steps += n.steps;
    all.restarts += n.restarts;
    all.rollouts += n.rollouts;
    all.built += n.built;
    all.unbuilt += n.unbuilt;
    all.stopped_by_canary += n.stopped_by_canary;
    all.stopped_by_budget += n.stopped_by_budget;
    all.stopped_by_target += n.stopped_by_target;
    all.finished += n.finished;
    counts.add(n.counts);
  }
  if (std::getenv("MUSTER_ROLLOUT_SEEDS"))
    WARN("steps " << all.steps << ", restarts " << all.restarts << ", rollouts " << all.rollouts
                  << ", images built " << all.built << ", not built " << all.unbuilt << ", batches "
                  << counts.batches << ", canaries " << counts.canaries << ", nodes updated "
                  << counts.updated << ", prefetched " << counts.prefetched << ", images held " << counts.held
                  << ", canaries named " << counts.named << ", left without a canary " << counts.no_canary
                  << ", skipped " << counts.skipped << ", left to others " << counts.left
                  << ", starts refused " << counts.refused << ", done " << all.finished
                  << ", stopped by canary " << all.stopped_by_canary << ", budget " << all.stopped_by_budget
                  << ", another target " << all.stopped_by_target);
  // A simulation in which something never happens checks nothing of it.
  for (const int count :
       {all.restarts, all.built, all.unbuilt, counts.canaries, counts.prefetched, counts.held, counts.named,
        counts.no_canary, counts.skipped, counts.left, counts.refused, all.stopped_by_canary,
        all.stopped_by_budget, all.stopped_by_target, all.finished})
    CHECK(count > 0);
}

TEST_CASE("rollout nights: the same seed is the same nights", "[rollout]") {
  for (const uint64_t seed : {1, 3, 5}) {
    const Nights one = simulate(seed), two = simulate(seed);
    CHECK(one.steps == two.steps);
    CHECK(one.restarts == two.restarts);
    CHECK(one.counts.updated == two.counts.updated);
  }
}
