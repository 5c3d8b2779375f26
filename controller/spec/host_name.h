// Names of nodes: host names that are not keywords of a tool that muster writes files for. Pure.
#pragma once

#include <string>

namespace muster {

// The error in a node's name; "" if it is valid.
std::string wrong_host_name(const std::string& name);

}  // namespace muster
