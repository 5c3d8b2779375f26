// The raw results of the training load, before they become a measurement: one entry per kind of partition and
// number of nodes. Thread safety: value types and stateless functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/counters/energy.h"
#include "kernels/together/loads.h"

namespace muster::together {

struct SequenceCounts {  // numbers of sequences
  uint64_t strong = 0, weak_per_node = 0, split = 0;
};

struct TrainingEntry {
  std::string kind = {};
  int nodes = 1;
  std::vector<double> seconds = {};                 // per step, for each group
  std::optional<kernels::GroupEnergy> energy = {};  // per step
};

struct TrainingStudy {
  training::Shape shape = {};
  SequenceCounts work = {};
  std::vector<std::string> hosts = {};  // by rank
  bool simulated = false;               // energy comes from a simulated meter
  std::vector<TrainingEntry> entries = {};
};

// Returns the numbers of nodes for a scaling study: 1, 2, 4 ... and `most`.
std::vector<int> node_counts(int most);
// Adds the study's metrics and details to `out`.
void report(kernels::Measurement& out, const TrainingStudy& study);

}  // namespace muster::together
