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
  std::string options = {};                       // as it was said: "--limit gpu[01-04] --state silent"

  bool any() const { return names.empty() && states.empty() && roles.empty(); }
};
// From the values of options, each with commas between; invalid for a range or a state that cannot be.
Result<NodeFilter> node_filter(const std::string& names, const std::string& states, const std::string& roles);
// invalid: names or roles that no node of this status has. In no state is a node that is in another one.
Status names_nodes(const NodeFilter& filter, const Json& status);
// How many of so many nodes `muster status` shows; 0: all. Who named nodes, or reads it with a program, gets
// all of them.
size_t shown_at_most(size_t nodes, const NodeFilter& filter, bool terminal);
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
