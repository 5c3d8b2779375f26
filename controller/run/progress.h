// What operators see of a run. Pure functions from the state of its nodes to JSON. Thread safety: stateless.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "base/json.h"
#include "controller/run/node_run.h"

namespace muster {

// {"node","state","reason","index","of","action","phase","title","attempt","since","percent","unit","text",
// "rate","eta_ms","wait":{reason,awaited,observed,since,until,next},"by_hand"}; unknown fields are left out.
// "returning": true while it returns to its previous system; then "state" is `returned`.
// "by_hand": true while a manual task is pending; "wait" describes it.
// `ahead`: the wall clock minus the steady clock.
Json node_progress(const NodeRun& node, DurationMs ahead);

// How long the actions of a run took, by kind.
class Spans {
 public:
  void add(ActionKind kind, DurationMs time) { took_[kind].push_back(time); }
  // nullopt: no such action has ended yet.
  std::optional<DurationMs> median(ActionKind kind) const;

 private:
  std::map<ActionKind, std::vector<DurationMs>> took_;
};

// A node at an action of a run that has begun there.
struct AtWork {
  NodeName node;
  ActionKind kind = ActionKind::steps;
  DurationMs age = 0;                    // since its latest attempt began
  std::optional<DurationMs> usual = {};  // Spans::median()
  bool by_hand = false;                  // it waits for a person to act
};

// Tally: counts of the nodes of a run that failed or are finished, updated with each change of a node; and
// Standing, the part of a node's state that matters to other nodes. Thread safety: plain value types.

struct Standing {
  bool over = false, works = false, returning = false;
  bool by_hand = false;  // it waits for a person to act
  bool failed = false;   // quarantined, or returning or returned to its old system, unless kept_by_jobs()
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
