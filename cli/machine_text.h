// Machines and their inventories as text: `muster node list` and `muster node show`. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace muster::cli {

// "GET /v1/nodes": the nodes, and below them the undeclared machines.
std::string render_nodes(const Json& nodes);
// "GET /v1/nodes/NODE": its identity and its full inventory.
std::string render_machine(const Json& node);

}  // namespace muster::cli
