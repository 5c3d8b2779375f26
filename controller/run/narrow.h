// Adapts an order to the nodes that are reachable when it is sent: the only thing about an order that the
// plan leaves open. Pure functions, no I/O.
//
// A step's params may contain:
//   "peers_live": true   nodes that are not live are removed from its lists: elements that are a node's name,
//                        or objects whose "name" is one
//   "next_live": true    the name and address of the planned next node are replaced by those of the next live
//                        node, in every string of params and verify; if no other node is live, the step is
//                        removed
// Both keys never reach the agent. Nor does the order's "ring", which the planner adds: the nodes that these
// steps are about, in order ("rings", by step id, if they differ). Thread safety: stateless functions.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/names.h"
#include "controller/run/rings.h"

namespace muster {

// Removes the rings of an order from `params` and returns them.
RingsOfOrder take_rings(Json& params);

// Applies the rules above to `params` (as planned, without the order's rings; the same in the functions
// below) and returns the ids of removed steps. `gone`: true for the name of a node that does not take part
// now; false for names that are not nodes.
std::vector<std::string> narrow_order(Json& params, const RingsOfOrder& rings, const NodeName& self,
                                      const std::function<bool(const NodeName&)>& gone);

// The other nodes that a step of the order is about.
struct Involved {
  std::set<NodeName> names;
  // of a "next_live" step: the node it is about, and its replacement (empty: none)
  NodeName next, after_next;
};
// Returns the nodes that may be missing when the order is sent: those of its rings, and the named objects in
// lists of steps with "peers_live". All of them are declared nodes, whether seen or not.
std::set<NodeName> neighbours_in(const Json& params, const RingsOfOrder& rings);
// Returns the involved nodes by step id, for the steps that have one of the two keys.
std::map<std::string, Involved> involved(const Json& params, const RingsOfOrder& rings, const NodeName& self,
                                         const std::function<bool(const NodeName&)>& gone);

}  // namespace muster
