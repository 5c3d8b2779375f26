// If all nodes miss a floor, the operator is prompted before a node is quarantined for it: a wrong
// floor is more likely than a fault of every machine.
//
// A floor is a number below which a measurement fails: `min` or `fail_ratio` of a profile. Wrong data,
// counted errors (their limits are ceilings) and missing measurements are not floors: the operator is never
// asked about them, nor about a floor that only one node had to reach, or that another node of the cluster
// has reached before with a part of the same kind. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/history.h"
#include "controller/report/report.h"

namespace muster {

// If all values of at least two nodes for one check and one kind of part (such as a drive model) are below
// the floor, makes these checks degraded and states the reason. Returns the questions to the operator, one
// sentence each, for the report's notes. Must be called before links are judged.
std::vector<std::string> question_floors(std::map<std::string, std::vector<Check>>& checks,
                                         const std::string& profile, const History& history = {});

}  // namespace muster
