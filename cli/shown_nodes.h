// Selects the nodes of a status that are shown: the requested ones; if there are very many, those that need
// attention first, and the number in each state. Input is the JSON of /v1/status. Pure functions, no I/O.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster::cli {

// More than this many do not fit on a screen.
constexpr size_t kManyNodes = 40;
// If the height of the screen is unknown.
constexpr size_t kShownNodes = 20;

// Words for a node: its state, and what is shown beside it: "silent", "returned", "by-hand" (a manual task is
// pending), "waiting".
std::vector<std::string> words_of_node(const Json& node);
std::vector<std::string> node_words();  // all that there are

// Empty lists: any.
struct NodeFilter {
  std::vector<std::string> names, states, roles;  // states: node_words()
  std::string options = {};                       // as typed: "--limit gpu[01-04] --state silent"

  bool any() const { return names.empty() && states.empty() && roles.empty(); }
};
// Parses the option values (comma-separated lists). invalid: an impossible range or an unknown word.
Result<NodeFilter> node_filter(const std::string& names, const std::string& states, const std::string& roles);
// Checks that the filter's names and roles exist in this status; else invalid. States are not checked.
Status names_nodes(const NodeFilter& filter, const Json& status);
// A cause of so many nodes is shown in their place (folded_nodes()).
constexpr size_t kFoldedFrom = 3;
// How many of `nodes` `muster status` shows; 0: all, also if nodes are named or there is no terminal.
size_t shown_at_most(size_t nodes, const NodeFilter& filter, bool terminal);
// The status with the filter's nodes, and with the causes that concern one of them or the cluster as a whole;
// all if any() node fits.
Json only(Json status, const NodeFilter& filter);

// How urgently a node needs attention: the first of these that applies.
enum class Urgency { quarantined, returned, silent, by_hand, waits_at_work, degraded, at_work, calm };
Urgency urgency_of(const Json& node);

// The causes of several nodes, most nodes first: a single node's cause is its row.
std::vector<const Json*> shown_causes(const Json& status);
// The names of nodes that a cause of at least kFoldedFrom nodes stands for.
std::set<std::string> folded_nodes(const Json& status);

struct ShownNodes {
  std::vector<const Json*> nodes;  // pointers into the given list, which must outlive this
  size_t left_out = 0;
};
// The most urgent, otherwise in their order; all of them, in their order, if no more than `most` or it is 0.
// Without those that are `folded`.
ShownNodes shown_nodes(const Json& nodes, size_t most, const std::set<std::string>& folded = {});

// "1000 nodes: 980 accepted, 3 quarantined, 17 installing; 2 silent"
std::string node_counts(const Json& nodes);

}  // namespace muster::cli
