// Names of nodes: host names, none of which is a word of a tool that muster writes files for. Pure.
#pragma once

#include <string>

namespace muster {

// What is wrong with a node's name; "" when nothing is.
std::string wrong_host_name(const std::string& name);

}  // namespace muster
