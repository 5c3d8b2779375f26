// The one thing about an order that the plan leaves open: which other nodes are reachable when it is sent.
// Pure.
//
// A step of the order may have in its params:
//   "peers_live": true   elements of its lists that are, or are objects whose "name" is, a node that is not
//                        live are left out
//   "next_live": true    the name and address of the next node (as planned) are replaced by those of the
//                        next live node, in every string of params and verify; without another live node the
//                        step is left out
// Both keys, and the order's "ring" (the nodes in order that these steps are about, put there by the planner;
// where they are about different nodes, "rings" by step id), never reach the agent. Thread: any.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/run/rings.h"

namespace muster {

// Takes the rings of an order out of it.
RingsOfOrder take_rings(Json& params);

// `params`, here and below: as planned, without the order's rings. `gone`: whether a name is that of a node
// that does not take part now (false for names that are not nodes). Returns the ids of steps that were left
// out.
std::vector<std::string> narrow_order(Json& params, const RingsOfOrder& rings, const std::string& self,
                                      const std::function<bool(const std::string&)>& gone);

// The nodes that a step of the order is about, besides the node itself.
struct Involved {
  std::set<std::string> names;
  // of a "next_live" step: the one it is about, and its replacement (empty: none)
  std::string next, after_next;
};
// The nodes that an order's steps may have to do without: those of its rings, and the objects with a name in
// lists of steps with live peers. All of them are declared, seen or not.
std::set<std::string> neighbours_in(const Json& params, const RingsOfOrder& rings);
// By step id; without steps that have neither key.
std::map<std::string, Involved> involved(const Json& params, const RingsOfOrder& rings,
                                         const std::string& self,
                                         const std::function<bool(const std::string&)>& gone);

}  // namespace muster
