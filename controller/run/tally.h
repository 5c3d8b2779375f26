// Tally: how many nodes of a run failed, are through, and how, kept by what changes of each. And what of a
// node's state is anybody else's business. Pure. Thread: any; values only.
#pragma once

#include <cstddef>

#include "controller/run/node_run.h"

namespace muster {

// Of one node. Others decide by these, and by which of its actions succeeded, and by nothing else of it.
struct Standing {
  bool over = false, works = false, returning = false;
  bool by_hand = false;  // a person is being waited for
  bool failed = false;   // quarantined, or on its way back to its old system, or there
  // For the executor alone:
  bool pending = false;  // its next action may begin, or has to wait
  bool heeded = false;   // its agent should be heard: an order is on offer, or a failure is weighed

  bool operator==(const Standing&) const = default;
  bool same_for_others(const Standing& other) const {
    return over == other.over && works == other.works && returning == other.returning &&
           by_hand == other.by_hand;
  }
};
Standing standing_of(const NodeRun& node);

struct Tally {
  int failed = 0;
  size_t over = 0, works = 0;
  size_t good = 0;  // of those that work: one that went back is not what the run was for

  void move(const Standing& before, const Standing& now);
  bool operator==(const Tally&) const = default;
};

}  // namespace muster
