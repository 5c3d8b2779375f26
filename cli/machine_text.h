// Machines and their inventories as text (`muster node list`, `muster node show`). Pure functions, no I/O.
#pragma once

#include <string>

#include "base/json.h"

namespace muster::cli {

// Renders the result of GET /v1/nodes: the nodes, and below them the undeclared machines.
std::string render_nodes(const Json& nodes);
// Renders the result of GET /v1/nodes/NODE: the node's identity and full inventory.
std::string render_machine(const Json& node);

}  // namespace muster::cli
