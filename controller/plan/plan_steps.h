// The steps that a playbook gives one node: its lists gone through, its conditions asked, its texts rendered.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/wire.h"
#include "controller/plan/context.h"
#include "controller/plan/rendered_steps.h"
#include "controller/spec/playbook.h"

namespace muster {

struct PlannedStep {
  std::string name;  // the playbook step's: what its checks are called by, whatever it is done for
  RenderedStepPtr rendered;
  int stage = 1;
  std::string on = "all";
  const NodeSet* about = nullptr;  // the cluster context's: what "the nodes" of the step meant
  // Of RenderedStep::peers: the list, and whose it is.
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
