// Who is to blame when a node failed in a step that is about other nodes? Pure: judge_probe(what is known)
// -> what to do.
//
// A probe of a node that lost power, reboots or is cut off says nothing about the prober. So the verdict
// waits until each of the others was heard after the failure, or is silent for so long that it counts as
// lost. Then:
//   - nobody at all was heard for a while meanwhile: that may be the controller's own fault, and from then on
//     each has the whole time again to be heard;
//   - one of them was given up, or was away while the attempt went on: the failure does not count, the next
//      try is without whoever is gone;
//   - the attempt began before the controller was there: nobody knows who was away meanwhile, and it does
//      not count either;
//   - one of them stays silent, or was away time after time: that one is accused;
//   - all are there: the failure counts. When it was the last try of a step about one next node, a second
//      opinion is asked for first:
//     the same step about the node after that one. If it holds, the one left out is accused.
// Thread: any; values only. Never reads a clock.
#pragma once

#include <string>
#include <vector>

#include "controller/run/node_state.h"

namespace muster {

struct Neighbour {
  std::string name;
  bool gone = false;       // given up, or not part of the cluster any more
  SteadyMs heard = {};     // last contact
  SteadyMs returned = {};  // when it last came back from silence or from a boot
  int excuses = 0;         // how often it was the excuse for a failure of this action
};

struct FailedProbe {
  SteadyMs started = {}, failed = {}, now = {};  // of the attempt
  SteadyMs watched = {};  // since when it is known who came and went: the controller was not there before
  bool tries_left = true;
  std::vector<Neighbour> others;  // whom the failed steps are about
  std::string next;       // of those the only one, while another live node could take its place; else empty
  SteadyMs listens = {};  // since when anybody is heard again, after nobody at all was; none: all the time
};

struct Blame {
  enum class What {
    wait,    // until `until`, for a sign of life of `node`
    excuse,  // the failure does not count because of `node`
    accuse,  // `node` is lost
    ask,     // second opinion: try once more without `node`
    stands,  // it counts
  };
  What what = What::stands;
  std::string node, reason;
  SteadyMs until = {};
};

// How often one node that comes and goes may excuse the failures of one action; then it is accused itself.
inline constexpr int kMostExcuses = 3;

Blame judge_probe(const FailedProbe& probe, const ExecutorTiming& timing);

}  // namespace muster
