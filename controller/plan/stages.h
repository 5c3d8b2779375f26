// Steps that nodes do in stages with barriers between them, and dependencies on leaders. No I/O.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/plan/planning.h"

namespace muster {

struct StageOf {
  int number = 1;
  std::string name, phase, title;  // of the stage's actions
  ActionKind kind = ActionKind::steps;
  // Returns the steps from which a node's share of this stage is taken; null: the node has none.
  std::function<const std::vector<PlannedStep>*(const Draft&)> steps_of;
};

// Writes one action per node that has steps in this stage, after all earlier actions of all nodes.
void write_stage(Planning& p, const StageOf& stage);
// Writes the cluster stages of all playbooks, those of each playbook in order of number.
void write_stages(Planning& p);

}  // namespace muster
