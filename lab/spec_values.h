// Values of one node of a group of `nodes:`, read from the YAML itself as the controller reads them
// (SpecReader::value_of): a text for all names of the range, with {n} in it, or a list with one text per
// name. Errors go into `problems`, with line and column. Thread: pure.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

namespace muster::lab {

using Problems = std::vector<std::string>;

std::string at(const YAML::Node& node);      // "line 12, column 5"
std::string scalar(const YAML::Node& node);  // empty where there is none

struct GroupMember {  // one name of a group's range
  size_t index, count;
  int number;
};
// Empty if it is not declared. `key`: its name in problems.
std::string declared_address(const YAML::Node& value, const char* key, const GroupMember& member,
                             Problems& problems);
// In lower case; empty if the spec leaves it to the lab.
std::string declared_mac(const YAML::Node& macs, const GroupMember& member, Problems& problems);

}  // namespace muster::lab
