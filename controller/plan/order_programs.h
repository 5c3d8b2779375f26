// The measuring programs that an order of checks names for a host that muster did not image: nothing else
// brings them there (agent/carried_programs.h). Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/plan/planning.h"

namespace muster {

// By file name: what the step runs, on every node that it is about.
std::set<std::string> programs_of(const wire::Step& step);

// Writes down for each host what the loads run there that another node starts: `started_for` of its draft.
void find_started_programs(Planning& p);

// Adds "programs" and "base_url" to the order of these steps, its host's first one where `first`. A program
// that the controller does not have is not named: the step says that it is missing. Nothing on nodes that
// muster imaged.
void name_programs(const Planning& p, const Draft& d, const std::vector<PlannedStep>& steps, bool first,
                   ActionParams& params);

}  // namespace muster
