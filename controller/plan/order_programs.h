// The measuring programs that an order of checks names for a host that muster did not image: they are
// installed no other way (agent/carried_programs.h). Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/plan/planning.h"

namespace muster {

// The file names of the programs that the step runs, on every node that it is about.
std::set<std::string> programs_of(const wire::Step& step);

// Records for each host the programs of loads that a different node starts on it: `started_for` of its draft.
void find_started_programs(Planning& p);

// Adds "programs" and "base_url" to the order of these steps, the host's first order if `first`. A program
// that the controller does not have is not named: the step reports it as missing. Nothing on nodes that
// muster imaged.
void name_programs(const Planning& p, const Draft& d, const std::vector<PlannedStep>& steps, bool first,
                   ActionParams& params);

}  // namespace muster
