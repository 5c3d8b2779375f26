// Which nodes of a status a screen shows: the selected ones; if there are very many, those that need
// attention first, and the number in each state. Input is the JSON of /v1/status. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster::cli {

// More than this many do not fit on a screen.
constexpr size_t kManyNodes = 40;
// Shown if the height of the screen is unknown.
constexpr size_t kShownNodes = 20;

// Empty lists: any.
struct NodeFilter {
  std::vector<std::string> names, states, roles;  // states: of nodes; also "silent", "returned", "waiting"
  std::string options = {};                       // as given: "--limit gpu[01-04] --state silent"

  bool any() const { return names.empty() && states.empty() && roles.empty(); }
};
// From the values of options, each with commas between; invalid for an impossible range or unknown state.
Result<NodeFilter> node_filter(const std::string& names, const std::string& states, const std::string& roles);
// invalid: names or roles that no node of this status has. A node is in exactly one state.
Status names_nodes(const NodeFilter& filter, const Json& status);
// How many of this number of nodes `muster status` shows; 0: all. With named nodes, or output for a program,
// all are shown.
size_t shown_at_most(size_t nodes, const NodeFilter& filter, bool terminal);
// The status with these nodes only.
Json only(Json status, const NodeFilter& filter);

// How urgently a node needs attention; the first of these that holds.
enum class Urgency { quarantined, returned, silent, by_hand, waits_at_work, degraded, at_work, calm };
Urgency urgency_of(const Json& node);

struct ShownNodes {
  std::vector<const Json*> nodes;  // of the list given, which must live as long
  size_t left_out = 0;
};
// At most this number, the most urgent first and otherwise in their order; all, in their order, if they are
// no more, or `most` is 0.
ShownNodes shown_nodes(const Json& nodes, size_t most);

// "1000 nodes: 980 accepted, 3 quarantined, 17 installing; 2 silent"
std::string node_counts(const Json& nodes);

}  // namespace muster::cli
