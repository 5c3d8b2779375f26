// Tally: how many nodes of a run failed or are through, and how, updated with each node's changes. And the
// part of a node's state that matters to others. Pure. Thread: any; values only.
#pragma once

#include <cstddef>

#include "controller/run/node_run.h"

namespace muster {

// Of one node. Others decide only by these and by which of its actions succeeded.
struct Standing {
  bool over = false, works = false, returning = false;
  bool by_hand = false;  // it waits for a person
  bool failed = false;   // quarantined, or returning to its old system, or there
  // For the executor alone:
  bool pending = false;  // its next action may begin, or must wait
  bool heeded = false;   // its agent should report: an order is on offer, or a failure is being judged

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
  size_t good = 0;  // of those that work: one that returned did not reach the run's goal

  void move(const Standing& before, const Standing& now);
  bool operator==(const Tally&) const = default;
};

}  // namespace muster
