// If all nodes miss a floor, the operator is prompted before a node is quarantined for it: a wrong
// floor is more likely than a fault of every machine.
//
// A floor is a number below which a measurement fails: `min` or `fail_ratio` of a profile. Wrong data,
// counted errors (their limits are ceilings) and missing measurements are not floors, so the operator is
// never asked about them. Nor about a floor that only one node had to reach, or that a different node of the
// cluster has reached before with a part of the same kind. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/history.h"
#include "controller/report/report.h"

namespace muster {

// For each check and kind of part (a drive model) for which all values of at least two nodes are below the
// floor: makes these checks degraded, with the reason. Returns the questions to the operator, one sentence
// each, for the report's notes. Must be called before links are judged.
std::vector<std::string> question_floors(std::map<std::string, std::vector<Check>>& checks,
                                         const std::string& profile, const History& history = {});

}  // namespace muster
