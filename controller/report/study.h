// The scaling study of a run: what its training-shaped load measured on 1, 2, 4 ... N nodes, and the model
// fitted to it. Thread: pure functions.
#pragma once

#include <string>
#include <vector>

#include "controller/report/report.h"
#include "controller/report/scaling.h"

namespace muster {

// What one step of all nodes of a group consumed. `covers` is empty where nothing was read.
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
  // Of strong and weak with three numbers of nodes or more; `note` says why there is none.
  bool fitted = false;
  ScalingFit fit = {};
  std::string note = {};
};
struct ScalingStudy {
  std::string title = {};  // the step's
  std::string node = {};   // that started it
  std::vector<ScalingCurve> curves = {};
};

// Out of the evidence of the report's checks. What a node wrote is not trusted: points that make no sense are
// left out.
std::vector<ScalingStudy> scaling_studies(const Report& report);

// "weak scaling: 4 nodes do 3.61 times one node's work (0.90 each); half of it is lost beyond 64 nodes (fit,
// worst error 2 %)"
std::string describe(const ScalingCurve& curve);

// What the energy of one step covers, for all points of a study that have it; "" when none has.
std::string energy_covers(const ScalingStudy& study);

}  // namespace muster
