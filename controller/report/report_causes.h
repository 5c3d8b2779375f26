// What nodes of a report that were not accepted have in common (controller/causes): 31 nodes behind one
// switch are one line above the list of nodes, with the command to type next. Pure; thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "controller/causes/cause.h"
#include "controller/report/report.h"

namespace muster {

// The part that acceptance located at this node, or between it and others ("A or B"); "" if none.
std::string located_part(const NodeReport& node);

// Of a settled report, only causes of several nodes: the reason of a single one stands beside it. A part that
// was located between nodes ("GROUP/located", controller/report/link_faults.h) counts as one of both.
std::vector<Cause> causes_in(const Report& report);

}  // namespace muster
