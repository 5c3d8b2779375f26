// The steps of a playbook for one node: lists expanded, conditions evaluated, texts rendered. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/wire.h"
#include "controller/plan/context.h"
#include "controller/plan/rendered_steps.h"
#include "controller/spec/playbook.h"

namespace muster {

struct PlannedStep {
  std::string name;  // of the playbook's step: the name of its checks, whatever element it is for
  RenderedStepPtr rendered;
  int stage = 1;
  std::string on = "all";
  const NodeSet* about = nullptr;  // the cluster context's: what "the nodes" of the step meant
  // For RenderedStep::peers: the list and its owner.
  SharedText peers = {};
  const NodeSet* peers_of = nullptr;

  const wire::Step& step() const { return rendered->step; }
  SharedText text() const;
  // It says something else here, and may for others.
  void change(wire::Step to) {
    rendered = std::make_shared<const RenderedStep>(std::move(to), rendered->peers);
  }
};
// The steps of `phase` this node gets from the playbook that was entered, rendered. Problems are appended,
// each naming playbook, step and node.
std::vector<PlannedStep> plan_steps(const Playbook& playbook, const std::string& phase, NodeContext& context,
                                    std::vector<std::string>& problems);

}  // namespace muster
