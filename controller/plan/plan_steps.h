// The steps of a playbook for one node: lists expanded, conditions evaluated, texts rendered. No I/O.
#pragma once

#include <string>
#include <vector>

#include "base/wire.h"
#include "controller/plan/context.h"
#include "controller/plan/rendered_steps.h"
#include "controller/spec/playbook.h"

namespace muster {

struct PlannedStep {
  std::string name;  // name of the playbook's step, and of its checks, for every element of its list
  RenderedStepPtr rendered;
  int stage = 1;
  std::string on = "all";
  const NodeSet* about = nullptr;  // the nodes that take part in the step; owned by the cluster context
  // For RenderedStep::peers: the list, and the node set that it comes from.
  SharedText peers = {};
  const NodeSet* peers_of = nullptr;

  const wire::Step& step() const { return rendered->step; }
  SharedText text() const;
  // Replaces the rendered step for this node only; nodes that shared it keep theirs.
  void change(wire::Step to) {
    rendered = std::make_shared<const RenderedStep>(std::move(to), rendered->peers);
  }
};
// Gets the steps from the playbook entered in `context`. Each problem has the names of playbook, step and
// node.
std::vector<PlannedStep> plan_steps(const Playbook& playbook, const std::string& phase, NodeContext& context,
                                    std::vector<std::string>& problems);

}  // namespace muster
