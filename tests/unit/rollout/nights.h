// The simulation of rollouts: thirty-six nights of one cluster, drawn from a seed, with a controller that is
// killed between any two of its steps.
#pragma once

#include <cstdint>
#include <string>

#include "tests/unit/rollout/checker.h"

namespace muster::rollout::sim {

struct Nights {
  std::string bad;  // the first violation; empty: none
  int nodes = 0, steps = 0, restarts = 0, rollouts = 0;
  int built = 0, unbuilt = 0;  // images, by windows
  int stopped_by_canary = 0, stopped_by_budget = 0, stopped_by_target = 0, finished = 0;
  Counts counts;
};

// Equal seeds give equal nights.
Nights simulate(uint64_t seed);

}  // namespace muster::rollout::sim
