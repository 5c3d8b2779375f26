// PlannedInputs: a summary of a plan's inputs, sufficient to find out later whether they changed, and how. An
// approval is checked against it instead of against a second plan.
//
// It covers every member of the planner's input; a new member does not compile until it is added. Left out:
// the times of a node's last inventory and last contact. Plain value types, pure functions.
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

// Returns the differences as text, one entry each: "node gpu07: its agent is now silent". Empty: none.
std::vector<std::string> changed_inputs(const PlannedInputs& before, const PlannedInputs& now);
// Joins the differences into one line; if there are many, only the first few.
std::string in_one_line(const std::vector<std::string>& changed);

}  // namespace muster
