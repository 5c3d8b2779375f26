// Names of nodes: host names that are not keywords of a tool whose files muster writes. No I/O.
#pragma once

#include <string>

namespace muster {

// Returns what is wrong with a node's name; "" if it is valid.
std::string wrong_host_name(const std::string& name);

}  // namespace muster
