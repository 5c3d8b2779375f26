#include "controller/nodes/next_step.h"

#include <fmt/format.h>

namespace muster {
namespace {

std::string of_undeclared(const NodeStanding& node) {
  if (node.state == NodeState::unadmitted)
    return fmt::format(
        "`muster node admit NAME --like NODE --machine {0}` declares it, `muster node rm {0}` "
        "removes it",
        node.name.str());
  return fmt::format(
      "the spec does not declare it: `muster node rm {}`, or add it to the spec and run "
      "`muster up SPEC`",
      node.name.str());
}

std::string of_uninstalled(const NodeStanding& node) {
  const std::string& name = node.name.str();
  if (node.adopted)
    return fmt::format(
        "its agent has not joined: run the `muster node add {} --adopt ...` that declared it again", name);
  const std::string first = node.image_built ? "" : fmt::format("builds image {} first, ", node.image);
  if (node.state == NodeState::unknown)
    return fmt::format(
        "`muster up --limit {}` {}boots it from the network, reads its inventory, and then "
        "plans the installation",
        name, first);
  return fmt::format("`muster up --limit {}` {}plans the installation", name, first);
}

std::string of_quarantined(const NodeStanding& node) {
  const std::string& name = node.name.str();
  if (node.held_by == HeldBy::an_operator)
    return fmt::format("`muster node quarantine {} --release` when the work on it is done", name);
  return fmt::format(
      "correct what the reason names, then `muster up --limit {0}`; `muster logs {0}` shows what "
      "was done",
      name);
}

std::string of_silent(const NodeStanding& node) {
  return fmt::format(
      "`muster power state {0}`: if it is on, look at its console, or `muster power cycle {0}`; "
      "`muster up --limit {0}` powers it on and waits for it",
      node.name.str());
}

// While no run is active.
std::string at_rest(const NodeStanding& node) {
  const std::string& name = node.name.str();
  if (!node.declared) return of_undeclared(node);
  if (node.state == NodeState::quarantined) return of_quarantined(node);
  if (node.in_run == NodeRunState::returned)
    return fmt::format(
        "`muster logs {0} --run {1}` shows why it returned to its previous system; then `muster "
        "reimage {0}`",
        name, node.run);
  if (node.silent) return of_silent(node);
  switch (node.state) {
    case NodeState::unknown:
    case NodeState::discovered:
    case NodeState::unadmitted:
      return of_uninstalled(node);
    case NodeState::installing:
      return fmt::format("the run that installed it is over: `muster up --limit {}` continues", name);
    case NodeState::accepted:
      return node.cause_next.empty() ? "nothing: it is in service"
                                     : fmt::format("it is in service, with a problem: `{}`", node.cause_next);
    case NodeState::degraded:
      return fmt::format(
          "it is in service, below a floor: `muster report` shows which; after a repair, "
          "`muster accept {}`",
          name);
    case NodeState::draining:
      return fmt::format("`muster drain {0}` continues the drain, `muster undrain {0}` ends it", name);
    case NodeState::drained:
      return fmt::format("`muster undrain {0}` returns it to service; `muster power off {0}` switches it off",
                         name);
    case NodeState::quarantined:
      break;
  }
  return of_quarantined(node);
}

}  // namespace

std::string next_step(const NodeStanding& node) {
  if (node.active_run == 0) return at_rest(node);
  if (node.run == node.active_run && node.by_hand)
    return fmt::format("carry out the task; if muster does not notice it, `muster power done {}`",
                       node.name.str());
  if (node.run == node.active_run && node.in_run == NodeRunState::waiting)
    return fmt::format("nothing: it has its turn in run {}, which `muster watch` follows", node.run);
  if (node.run == node.active_run && node.in_run == NodeRunState::running)
    return fmt::format("nothing: run {} works on it; `muster watch` follows the run, `muster cancel` ends it",
                       node.run);
  const std::string then = at_rest(node);
  if (then.starts_with("nothing")) return then;
  return fmt::format("when run {} is over (`muster watch`): {}", node.active_run, then);
}

}  // namespace muster
