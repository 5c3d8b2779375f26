// Which nodes of a status a screen shows: those that were asked for; of very many those that matter first,
// and how many there are in each state. Input is the JSON of /v1/status. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster::cli {

// More than this many are more than a screen.
constexpr size_t kManyNodes = 40;
// So many of them are shown where nothing says how many have room.
constexpr size_t kShownNodes = 20;

// Empty lists: any.
struct NodeFilter {
  std::vector<std::string> names, states, roles;  // states: of nodes; also "silent", "returned", "waiting"
};
// From the values of options, each with commas between; invalid for a range or a state that cannot be.
Result<NodeFilter> node_filter(const std::string& names, const std::string& states, const std::string& roles);
// The status with these nodes only.
Json only(Json status, const NodeFilter& filter);

// How urgently somebody looks at a node; the first of these that holds.
enum class Urgency { quarantined, returned, silent, by_hand, waits_at_work, degraded, at_work, calm };
Urgency urgency_of(const Json& node);

struct ShownNodes {
  std::vector<const Json*> nodes;  // of the list given, which must live as long
  size_t left_out = 0;
};
// At most so many, the most urgent first and else in their order; all, in their order, where they are no more
// than that, or `most` is 0.
ShownNodes shown_nodes(const Json& nodes, size_t most);

// "1000 nodes: 980 accepted, 3 quarantined, 17 installing; 2 silent"
std::string node_counts(const Json& nodes);

}  // namespace muster::cli
