// PlannedInputs: a summary of a plan's inputs: enough to find out later whether they are unchanged, and if
// not, what changed. An approval is checked against it instead of against a second plan.
//
// Every member of the planner's input is in it; a new member does not compile until it is added. What a plan
// cannot depend on is left out: the times of a node's last inventory and last contact. Pure; thread: values.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/bringup/planning_snapshot.h"

namespace muster {

// A part's fields by name, each with its value or, for long values, its digest.
using InputFields = std::vector<std::pair<std::string_view, std::string>>;
// By part: "spec", "node gpu07", "image cpu", "playbook base", ...
using PlannedInputs = std::map<std::string, InputFields>;

PlannedInputs inputs_of(const PlanningSnapshot& snapshot);

// The differences in words, one line each: "node gpu07: its agent is now silent". Empty: none.
std::vector<std::string> changed_inputs(const PlannedInputs& before, const PlannedInputs& now);
// In one line; if there are many, the first few.
std::string in_one_line(const std::vector<std::string>& changed);

}  // namespace muster
