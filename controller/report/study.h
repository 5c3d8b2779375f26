// The scaling study of a run: what its training-like load measured on 1, 2, 4 ... N nodes, and the model
// fitted to it. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "controller/report/report.h"
#include "controller/report/scaling.h"

namespace muster {

// The energy that one step of all nodes in a group consumed. `covers` is empty if no energy was read.
struct StepEnergy {
  double joules = 0, gflop_per_joule = 0;
  std::string covers = {};  // "processor packages"
};

// The scaling of one kind of partition: a point per number of nodes.
struct ScalingCurve {
  std::string kind = {};                  // strong, weak, tensor, pipeline
  std::vector<ScalingPoint> points = {};  // median over the groups
  std::vector<double> efficiency = {};    // of each point, measured
  std::vector<StepEnergy> energy = {};    // of each point
  // Strong and weak scaling are fitted from three numbers of nodes or more; `note` says why there is no fit.
  bool fitted = false;
  ScalingFit fit = {};
  std::string note = {};
};
struct ScalingStudy {
  std::string title = {};  // the step's
  std::string node = {};   // that started it
  std::vector<ScalingCurve> curves = {};
};

// Reads the studies from the evidence of the report's checks. What a node wrote is not trusted: implausible
// points are left out.
std::vector<ScalingStudy> scaling_studies(const Report& report);

// "weak: 4 nodes do 3.61 times one node's work, an efficiency of 90 %; not worthwhile beyond 16 nodes
// (fitted: compute 2 s, each doubling of the nodes 0.1 s, transfer 0.05 s; error at most 2.0 %)"
std::string describe(const ScalingCurve& curve);

// Returns what the energy values cover, for all points of a study that have them; "" if none has.
std::string energy_covers(const ScalingStudy& study);

}  // namespace muster
