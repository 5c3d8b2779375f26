// What operators see of a run. Pure functions from the state of its nodes to JSON. Thread safety: stateless.
#pragma once

#include <map>
#include <vector>

#include "base/json.h"
#include "controller/run/node_run.h"

namespace muster {

// {"node","state","reason","index","of","action","phase","title","attempt","since","percent","unit","text",
//  "rate","eta_ms","wait":{reason,awaited,observed,since,until,next},"by_hand"}; unknown fields are left out.
// "returning": true while it returns to its previous system; when it has arrived, "state" is
// `returned`.
// "by_hand": true while a manual task is pending; "wait" describes it.
// `ahead`: the wall clock minus the steady clock.
Json node_progress(const NodeRun& node, DurationMs ahead);

// How long the actions of a run took, by kind.
class Spans {
 public:
  void add(ActionKind kind, DurationMs time) { took_[kind].push_back(time); }
  // Returns the median; nullopt if no such action has ended yet.
  std::optional<DurationMs> median(ActionKind kind) const;

 private:
  std::map<ActionKind, std::vector<DurationMs>> took_;
};

}  // namespace muster
