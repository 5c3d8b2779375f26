// Values for one node of a group in `nodes:`, read from the YAML in the same way as the controller reads them
// (SpecReader::value_of): one text with {n} for all names of the range, or a list with one text per name.
// Errors are added to `problems`, with line and column. Thread safety: stateless functions.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

namespace muster::lab {

using Problems = std::vector<std::string>;

std::string at(const YAML::Node& node);      // "line 12, column 5"
std::string scalar(const YAML::Node& node);  // empty if there is none

struct GroupMember {  // one name of a group's range
  size_t index, count;
  int number;
};
// Returns the member's address; empty if none is declared. `key`: the name used in problems.
std::string declared_address(const YAML::Node& value, const char* key, const GroupMember& member,
                             Problems& problems);
// Returns the member's MAC in lower case; empty if the spec leaves it to the lab.
std::string declared_mac(const YAML::Node& macs, const GroupMember& member, Problems& problems);

}  // namespace muster::lab
