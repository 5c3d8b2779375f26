// Tally: counts of the nodes of a run that failed or are finished, updated with each change of a node; and
// Standing, the part of a node's state that matters to other nodes. Thread safety: plain value types.
#pragma once

#include <cstddef>

#include "controller/run/node_run.h"

namespace muster {

// The standing of one node. Other nodes' decisions depend only on it and on which actions have succeeded.
struct Standing {
  bool over = false, works = false, returning = false;
  bool by_hand = false;  // it waits for a person to act
  bool failed = false;   // quarantined, or returning or returned to its old system
  // For the executor only:
  bool pending = false;  // its next action has not begun: it may begin, or must wait
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
  size_t good = 0;  // `works` without the nodes that returned to their old system

  void move(const Standing& before, const Standing& now);
  bool operator==(const Tally&) const = default;
};

}  // namespace muster
