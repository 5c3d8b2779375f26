// What the training load found, before it becomes a measurement: one entry per kind and number of nodes.
// Thread: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/energy.h"
#include "kernels/together/loads.h"

namespace muster::together {

struct Work {  // sequences
  uint64_t strong = 0, weak_per_node = 0, split = 0;
};

struct TrainingEntry {
  std::string kind = {};
  int nodes = 1;
  std::vector<double> seconds = {};                 // of a step, of each group
  std::optional<kernels::GroupEnergy> energy = {};  // of a step
};

struct TrainingStudy {
  training::Shape shape = {};
  Work work = {};
  std::vector<std::string> hosts = {};  // by rank
  bool simulated = false;               // energy
  std::vector<TrainingEntry> entries = {};
};

// 1, 2, 4 ... and all: the numbers of nodes of a scaling study.
std::vector<int> node_counts(int most);
// Adds metrics and details.
void report(kernels::Measurement& out, const TrainingStudy& study);

}  // namespace muster::together
