// Decides whether another node is at fault when a node failed in a step that involves other nodes. A pure
// function: judge_probe(what is known) -> what to do.
//
// A failed probe of a node that lost power, reboots or is cut off proves nothing about the node that probed.
// So the verdict waits until each of the other nodes has reported after the failure, or has been silent for
// so long that it counts as lost. Then:
//   - all nodes were silent for a while: the controller's own link may be the reason, and after that silence
//     each node has the full time again to report;
//   - one of them left the run, or was away during the attempt: the failure does not count, and the next try
//     is without it;
//   - the attempt began before the controller was up: it is unknown which nodes were away before, and the
//     failure does not count either;
//   - one of them stays silent, or was away repeatedly: that one is quarantined;
//   - all are reachable: the failure counts. If it was the last try of a step about one next node, the same
//     step is first run about the node after that one; if it succeeds, the omitted node is quarantined.
// Thread safety: plain value types; never reads a clock.
#pragma once

#include <string>
#include <vector>

#include "base/names.h"
#include "controller/run/node_state.h"

namespace muster {

struct Neighbour {
  NodeName name;
  bool gone = false;       // left the run, or not part of the cluster any more
  SteadyMs contact = {};   // last contact
  SteadyMs returned = {};  // when it last came back from silence or from a boot
  int excuses = 0;         // how many failures of this action did not count because of it
};

struct FailedProbe {
  SteadyMs started = {}, failed = {}, now = {};  // of the attempt
  SteadyMs watched = {};  // absences are known from then on: the controller was down before
  bool tries_left = true;
  std::vector<Neighbour> others;  // the nodes that the failed steps are about
  NodeName next;          // the only one of `others`, if another live node could replace it; else empty
  SteadyMs listens = {};  // when nodes began to report again after all were silent; none: never
};

struct ProbeVerdict {
  enum class What {
    wait,        // for a message from `node`, until `until`
    excuse,      // the failure does not count because of `node`
    quarantine,  // `node` is lost
    repeat,      // second opinion: one more try, without `node`
    stands,      // the failure counts
  };
  What what = What::stands;
  NodeName node;
  std::string reason;
  SteadyMs until = {};
};

// How many failures of one action may be disregarded because one node comes and goes; after that, that node
// is quarantined itself.
inline constexpr int kMostExcuses = 3;

ProbeVerdict judge_probe(const FailedProbe& probe, const ExecutorTiming& timing);

}  // namespace muster
