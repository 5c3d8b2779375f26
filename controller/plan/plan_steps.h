// The steps that a playbook gives one node: its lists gone through, its conditions asked, its texts rendered.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/wire.h"
#include "controller/plan/context.h"
#include "controller/spec/playbook.h"

namespace muster {

struct PlannedStep {
  std::string name;  // the playbook step's: what its checks are called by, whatever it is done for
  wire::Step step;
  int stage = 1;
  std::string on = "all";
  const NodeSet* about = nullptr;  // the cluster context's: whom "the nodes" of the step meant
};
// The steps of `phase` this node gets from the playbook that was entered, rendered. Problems are appended,
// each naming playbook, step and node. `item` is put into the context and taken out again: it is too large to
// be copied for every step.
std::vector<PlannedStep> plan_steps(const Playbook& playbook, const std::string& phase, NodeContext& context,
                                    std::vector<std::string>& problems);

}  // namespace muster
