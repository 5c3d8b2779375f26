// The simulation of a rollout: thirty nights of one cluster, drawn from a seed, with a controller that is
// killed between any two of its steps.
#pragma once

#include <cstdint>
#include <string>

namespace muster::rollout::sim {

struct Nights {
  std::string bad;  // the first violation; empty: none
  int nodes = 0, steps = 0, restarts = 0, rollouts = 0, batches = 0, canaries = 0, updated = 0,
      prefetched = 0;
  int stopped_by_canary = 0, stopped_by_budget = 0, stopped_by_spec = 0, refused = 0, finished = 0;
};

// Equal seeds give equal nights.
Nights simulate(uint64_t seed);

}  // namespace muster::rollout::sim
