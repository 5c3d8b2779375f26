// Steps that nodes do in turn: stages with barriers, and whoever waits for a leader. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/plan/planning.h"

namespace muster {

// The steps of a node that a stage is taken from; null: it has none.
using StepsOf = std::function<const std::vector<PlannedStep>*(const Draft&)>;

// One action per node that has steps in this stage, behind everything all nodes did before.
void write_stage(Planning& p, int number, const std::string& name, const std::string& phase,
                 ActionKind action, const std::string& title, const StepsOf& steps_of);
// The cluster stages of all playbooks, each in order of number.
void write_stages(Planning& p);

}  // namespace muster
