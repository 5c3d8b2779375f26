// The executor's calls to its owner: verdicts on checks, the conclusion of a run, live events. Plain value
// types and functions; the functions that judge are pure: the same input gives the same answer. Thread: the
// reactor's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/event_kind.h"
#include "base/json.h"
#include "base/names.h"
#include "base/result.h"
#include "base/steady.h"
#include "controller/plan/plan.h"
#include "controller/ports/store.h"

namespace muster {

// One event, for live views. kinds: run {state}, action {action, event, attempt, title, phase, message}, wait
// {reason, awaited, until, next}, power {action}, step / progress / log (as the agent sent them, plus
// action), node {state, reason}.
struct RunEvent {
  TimeMs time = 0;
  int64_t run = 0;
  NodeName node;
  EventKind kind;
  Json data = Json::object();
};

// Verdicts that need the results of all nodes, when a run ends.
struct Conclusion {
  struct Node {
    NodeName name;
    bool quarantine = false;  // false: degraded, that is, it works, but a part is slow
    std::string reason;
  };
  std::vector<Node> nodes = {};  // of the nodes that succeeded; those not listed are accepted
  std::vector<Write> rows = {};  // written with the end of the run, all or nothing
  // Of the nodes that are not accepted, also those that failed before: NodeRow::faulty_part.
  std::map<NodeName, std::string> faulty_parts = {};
};

// A further order of a `check` action whose result shows a fault but not where it is.
struct FollowUp {
  Json order;            // params of the next order; null: no more needed
  Json result;           // if `order` is null: the action's result
  std::string why = {};  // the purpose of an order that does not isolate a faulty node
};

struct ExecutorHooks {
  // Verdict on a `check` action from its result {"steps": [...]}. Null: the agent's own result decides.
  std::function<Status(const Action&, const Json& result)> judge = {};
  // Returns why a node that passed this `check` action may not be called accepted before the run is
  // concluded; "" if it may.
  std::function<std::string(const Action&, const Json& result)> reservation = {};
  // Called with the result of the last attempt of a `check` action, and again after each further order, with
  // all results so far, in order. Must return the same for the same input. nullopt, at the first call only:
  // the attempt's own verdict stands.
  std::function<std::optional<FollowUp>(const Action&, const std::vector<Json>& results)> follow_up = {};
  // Called when all events of the run are durable and its row has the final state; not for a cancelled run.
  // Must answer exactly once, immediately or later, on the reactor's thread. If a node is quarantined before
  // the answer, it is called again.
  using Concluded = std::function<void(Conclusion)>;
  std::function<void(const RunRow&, Concluded)> conclude = {};
  // "" if there was none.
  std::function<std::string(const NodeName& node, SteadyMs since)> panic = {};
  std::function<void(const RunEvent&)> observe = {};
  std::function<void(const RunRow&)> ended = {};  // the run's last row is durable
};

}  // namespace muster
