// Names of nodes in the short form that commands take as NODES. Pure function.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Joins numbered names into ranges, "gpu[01-03,07],head".
std::string names_in_ranges(std::vector<std::string> names);

}  // namespace muster
