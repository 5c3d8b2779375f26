// A floor that all nodes miss is put to the operator before a node is quarantined for it: it is more likely
// that the floor is wrong than that all machines are.
//
// A floor is a number below which a measurement fails: `min` or `fail_ratio` of a profile. Wrong data, errors
// that were counted (which are ceilings), and what was not measured are not floors, and are never put to the
// operator. Neither is a floor that one node alone was held to, or one that another node of the cluster has
// reached before, with a part of the same kind. Thread: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/history.h"
#include "controller/report/report.h"

namespace muster {

// For each check and kind of part (a drive model) for which all values of at least two nodes are below the
// floor: makes every one of them degraded, with the reason. Returns what to ask, one sentence for each, for
// the report's notes. Before links are weighed.
std::vector<std::string> question_floors(std::map<std::string, std::vector<Check>>& checks,
                                         const std::string& profile, const History& history = {});

}  // namespace muster
