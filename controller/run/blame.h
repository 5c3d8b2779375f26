// Whether another node is at fault when a node failed in a step that is about other nodes. Pure:
// judge_probe(what is known) -> what to do.
//
// A probe of a node that lost power, reboots or is cut off says nothing about the prober. So the verdict
// waits until each of the others has reported after the failure, or has been silent for so long that it
// counts as lost. Then:
//   - all nodes were silent for a while: that may be the controller's own fault, and after it each has the
//     full time again to report;
//   - one of them left the run, or was away during the attempt: the failure does not count, and the next try
//     is without it;
//   - the attempt began before the controller was up: it is unknown who was away meanwhile, and the failure
//     does not count either;
//   - one of them stays silent, or was away repeatedly: that one is quarantined;
//   - all are reachable: the failure counts. If it was the last try of a step about one next node, the same
//     step first runs about the node after that one. If it succeeds, the one left out is quarantined.
// Thread: any; values only. Never reads a clock.
#pragma once

#include <string>
#include <vector>

#include "controller/run/node_state.h"

namespace muster {

struct Neighbour {
  std::string name;
  bool gone = false;       // left the run, or not part of the cluster any more
  SteadyMs heard = {};     // last contact
  SteadyMs returned = {};  // when it last came back from silence or from a boot
  int excuses = 0;         // how often it was the excuse for a failure of this action
};

struct FailedProbe {
  SteadyMs started = {}, failed = {}, now = {};  // of the attempt
  SteadyMs watched = {};  // since when absences are known: the controller was down before
  bool tries_left = true;
  std::vector<Neighbour> others;  // the nodes that the failed steps are about
  std::string next;       // the only one of those, if another live node could take its place; else empty
  SteadyMs listens = {};  // since when any node reports again after all were silent; none: they never were
};

struct ProbeVerdict {
  enum class What {
    wait,        // until `until`, for a message from `node`
    excuse,      // the failure does not count because of `node`
    quarantine,  // `node` is lost
    repeat,      // second opinion: try once more without `node`
    stands,      // it counts
  };
  What what = What::stands;
  std::string node, reason;
  SteadyMs until = {};
};

// How often one node that comes and goes may excuse the failures of one action; then it is quarantined
// itself.
inline constexpr int kMostExcuses = 3;

ProbeVerdict judge_probe(const FailedProbe& probe, const ExecutorTiming& timing);

}  // namespace muster
