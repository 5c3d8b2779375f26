// Scaling study: beyond how many nodes is adding more nodes not worthwhile? Fits a model of computation and
// communication to measured times.
//
//   strong (the same work on N nodes)   T(N) = C/N + L log2 N + B (N-1)/N
//   weak (the same work per node)       T(N) = C   + L log2 N + B (N-1)/N
// C: computing, L: latency per doubling (tree), B: bytes over the slowest link (a ring moves 2(N-1)/N of
// them). All three are at least zero, because a fit with negative times would only model noise. Fitted by
// least squares of relative errors, so that small times count as well. Thread safety: stateless
// functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

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

// Code::invalid if there are fewer than three numbers of nodes, no time for one node, or a time that is not
// positive.
Result<ScalingFit> fit_scaling(Scaling kind, const std::vector<ScalingPoint>& points);

// Returns the knee: the largest power of two up to `most` at which every node still does at least `least`
// (0.5) of the work that a single node does.
int knee(const ScalingFit& fit, double least = 0.5, int most = 4096);

}  // namespace muster
