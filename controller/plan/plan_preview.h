// What a plan changes on each node, before it is approved: the kind of work, why, and the steps that
// differ from those that the node has now. Pure functions, no I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/record.h"
#include "controller/plan/planner.h"
#include "controller/plan/planner_input.h"

namespace muster {

struct ChangedStep {
  std::string step, module;
  std::string change;  // added, removed, changed
  std::string diff;    // of a changed step's parameters; a text of several lines as in `diff -u`
};
MUSTER_RECORD(ChangedStep, step, module, change, sparse(diff))

struct NodeChange {
  std::string node;
  std::string work;  // discover, wake, install, re-image, configure, serve
  std::string why;
  bool accepted_again = false;
  // False: which steps change is not known, because the node is not planned under the present spec, or
  // because there are too many nodes.
  bool compared = false;
  std::vector<ChangedStep> steps = {};
};
MUSTER_RECORD(NodeChange, node, work, why, accepted_again, compared, steps)

// One entry per node of a plan for `up`, in its order; `in` is what it was made from. `before`: a plan under
// the present spec that includes the nodes that have steps now; null: there is none.
std::vector<NodeChange> node_changes_of(const PlannerInput& in, const PlanOutcome& made, const Plan* before);

// `in`, for a plan of the steps that these nodes have under its spec, whether they are carried out already or
// not. Nodes that its spec does not declare are left out.
PlannerInput input_of_steps(PlannerInput in, const std::vector<std::string>& nodes);

// The steps of each node that agents can check without changing or measuring anything, as in an order.
std::map<std::string, Json> checkable_steps(const Plan& plan);

// The secrets that steps of the plan refer to: name -> the nodes.
std::map<std::string, std::vector<std::string>> secrets_of_steps(const Plan& plan);

}  // namespace muster
