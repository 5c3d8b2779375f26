// The scaling study of a run: what its training-like load measured on 1, 2, 4 ... N nodes, and the model
// fitted to it. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/report/report.h"

namespace muster {

// Beyond how many nodes is adding more nodes not worthwhile? A model of computation and communication:
//   strong (the same work on N nodes)   T(N) = C/N + L log2 N + B (N-1)/N
//   weak (the same work per node)       T(N) = C   + L log2 N + B (N-1)/N
// C: computing, L: latency per doubling (tree), B: bytes over the slowest link (a ring moves 2(N-1)/N of
// them). All three are at least zero, because a fit with negative times would only model noise. Fitted by
// least squares of relative errors, so that small times count as well.
enum class Scaling { strong, weak };

struct ScalingPoint {
  int nodes = 1;
  double seconds = 0;  // of one step
};

struct ScalingFit {
  Scaling kind = Scaling::strong;
  double compute = 0, latency = 0, transfer = 0;  // C, L, B in seconds
  double worst_error = 0;                         // largest |fit / measured - 1|
  double seconds(int nodes) const;
  double efficiency(int nodes) const;  // strong: T(1) / (N T(N)); weak: T(1) / T(N)
};

// Code::invalid: fewer than three numbers of nodes, no time for one node, or a time that is not positive.
Result<ScalingFit> fit_scaling(Scaling kind, const std::vector<ScalingPoint>& points);

// Returns the knee: the largest power of two up to `most` at which every node still does at least `least`
// (0.5) of the work that a single node does.
int knee(const ScalingFit& fit, double least = 0.5, int most = 4096);

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

// From the evidence of the report's checks, which is not trusted: implausible points are left out.
std::vector<ScalingStudy> scaling_studies(const Report& report);

// "weak: 4 nodes do 3.61 times one node's work, an efficiency of 90 %; not worthwhile beyond 16 nodes
// (fitted: compute 2 s, each doubling of the nodes 0.1 s, transfer 0.05 s; error at most 2.0 %)"
std::string describe(const ScalingCurve& curve);

// Returns what the energy values cover, for all points of a study that have them; "" if none has.
std::string energy_covers(const ScalingStudy& study);

}  // namespace muster
