#include "controller/run/gate.h"

#include <fmt/format.h>

namespace muster {

Gate::Gate(const Plan& plan) : barriers_(&plan.barriers), passed_(plan.barriers.size(), 0) {
  for (const auto& action : plan.actions) actions_[action.id] = &action;
}

const Action* Gate::find(const std::string& action) const {
  const auto found = actions_.find(action);
  return found == actions_.end() ? nullptr : found->second;
}

// True if no node needs to wait for this action any more. `never`: why it will not happen, for actions that
// need it. While its node waits for a person, only nodes that need the action wait.
bool Gate::settled_for(const std::string& id, bool hard, const StateOf& state_of, std::string& never) const {
  if (succeeded_.count(id)) return true;
  const Action* action = find(id);
  const NodeRun* other = action ? state_of(action->node) : nullptr;
  if (!hard && other && other->control.by == Switch::person && other->stage == NodeRun::Stage::powering)
    return true;
  // A node that returns to its old system does nothing more that other nodes could need.
  const bool comes =
      other &&
      (action->when_failed ? !other->over()
                           : !other->returning && (!other->over() || other->stage == NodeRun::Stage::done));
  if (comes) return false;
  if (hard)
    never = fmt::format("needs {}, which will not happen{}", id,
                        other ? ": " + other->name + " " + other->reason : "");
  return !hard;
}

Gate::Answer Gate::check(const Action& mine, const StepLog& log, const StateOf& state_of) {
  const auto wait_for = [&](const std::string& reason, const std::string& awaited, const Action& other) {
    const std::string observed = other.id + ": " + std::string(to_string(log.of(other.id).state));
    return Answer{false, "", {reason, awaited, observed, mine.title}, &other};
  };
  // The actions of the way back wait neither for other nodes nor for the actions that they replace.
  if (mine.when_failed) return {true};
  for (const auto& dependency : mine.after) {
    std::string never;
    if (settled_for(dependency.action, dependency.hard, state_of, never)) continue;
    if (!never.empty()) return {false, never};
    const Action& other = *actions_.at(dependency.action);
    return wait_for("waiting for " + other.node, other.node + ": " + other.title, other);
  }
  if (mine.behind < 0 || static_cast<size_t>(mine.behind) >= passed_.size()) return {true};
  const auto barrier = static_cast<size_t>(mine.behind);
  const Action* open = first_open(barrier, state_of);
  if (!open) return {true};
  // Names no node and no step count: else thousands of waiting nodes would each report every single change.
  Answer answer = wait_for("waiting for the other nodes", "all nodes: " + open->phase, *open);
  answer.barrier = barrier;
  return answer;
}

bool Gate::waits(const Action& mine, const StateOf& state_of) const {
  if (mine.when_failed) return false;
  std::string never;
  for (const auto& dependency : mine.after)
    if (!settled_for(dependency.action, dependency.hard, state_of, never)) return never.empty();
  if (mine.behind < 0 || static_cast<size_t>(mine.behind) >= passed_.size()) return false;
  for (const auto& member : (*barriers_)[static_cast<size_t>(mine.behind)])
    if (!settled_for(member, false, state_of, never)) return true;
  return false;
}

// A settled member stays settled, so each search continues where the previous one stopped.
const Action* Gate::first_open(size_t barrier, const StateOf& state_of) {
  const auto& members = (*barriers_)[barrier];
  size_t& passed = passed_[barrier];
  std::string never;
  while (passed < members.size() && settled_for(members[passed], false, state_of, never)) ++passed;
  return passed == members.size() ? nullptr : find(members[passed]);
}

}  // namespace muster
