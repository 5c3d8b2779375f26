// The measuring programs that an order of checks lists for a host that muster did not image: such a host gets
// them no other way (agent/work/carried_programs.h). Pure functions, no I/O.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/plan/planning.h"

namespace muster {

// Returns the file names of the programs that the step runs, on any of the nodes that take part in it.
std::set<std::string> programs_of(const wire::Step& step);

// Records in each host's draft (`started_for`) the programs that other nodes' loads start on it.
void find_started_programs(Planning& p);

// Adds "programs" and "base_url" to the order with these steps; `first`: it is the host's first order. A
// program that the controller does not have is omitted, and the step reports it as missing. Does nothing for
// nodes that muster imaged.
void name_programs(const Planning& p, const Draft& d, const std::vector<PlannedStep>& steps, bool first,
                   ActionParams& params);

}  // namespace muster
