// One simulated bring-up from a seed: faults first (safety), then none (liveness), then the verdict.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace muster::sim {

struct Verdict {
  std::vector<std::string> violations;
  uint64_t hash = 0;
  uint64_t steps = 0;  // events of the reactor
  DurationMs simulated = 0;
  int runs = 0;
};

Verdict simulate(const Options& options);

}  // namespace muster::sim
