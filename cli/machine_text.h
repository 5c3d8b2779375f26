// Machines and their inventories as text: `muster node list` and `muster node show`. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace muster::cli {

// "GET /v1/nodes": the nodes, and below them the machines nobody declared.
std::string render_nodes(const Json& nodes);
// "GET /v1/nodes/NODE": who it is, and every part that was found in it.
std::string render_machine(const Json& node);

}  // namespace muster::cli
