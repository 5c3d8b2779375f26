// Steps that nodes do in turn: stages with barriers, and nodes that wait for a leader. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/plan/planning.h"

namespace muster {

struct StageOf {
  int number = 1;
  std::string name, phase, title;  // of its actions
  ActionKind kind = ActionKind::steps;
  // The steps of a node that it is taken from; null: it has none.
  std::function<const std::vector<PlannedStep>*(const Draft&)> steps_of;
};

// One action per node that has steps in this stage, behind everything all nodes did before.
void write_stage(Planning& p, const StageOf& stage);
// The cluster stages of all playbooks, each in order of number.
void write_stages(Planning& p);

}  // namespace muster
