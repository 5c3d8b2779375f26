// PlannedInputs: what a plan was made from, in short: enough to see later that all of it is still the same,
// and else what is not. An approval is held against it instead of against a second plan.
//
// Every member of the planner's input is in it, and a new one does not compile until it is. What a plan
// cannot depend on is not in it: when a node was looked at, when it was last heard. Pure; thread: values.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/bringup/planning_snapshot.h"

namespace muster {

// A part's fields by name, each with its value or, of what is long, its digest.
using InputFields = std::vector<std::pair<std::string_view, std::string>>;
// By part: "spec", "node gpu07", "image cpu", "playbook base", ...
using PlannedInputs = std::map<std::string, InputFields>;

PlannedInputs inputs_of(const PlanningSnapshot& snapshot);

// What is different, a line for each of it, in words: "node gpu07: its agent is silent now". Empty: nothing.
std::vector<std::string> changed_inputs(const PlannedInputs& before, const PlannedInputs& now);
// In one line; of many the first few.
std::string in_one_line(const std::vector<std::string>& changed);

}  // namespace muster
