// Steps that nodes do in stages with barriers, and nodes that wait for a leader. Pure.
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
  // The steps of a node to take it from; null: it has none.
  std::function<const std::vector<PlannedStep>*(const Draft&)> steps_of;
};

// One action per node that has steps in this stage, after everything that all nodes did before.
void write_stage(Planning& p, const StageOf& stage);
// The cluster stages of all playbooks, each in order of number.
void write_stages(Planning& p);

}  // namespace muster
