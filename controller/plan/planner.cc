#include "controller/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/plan/lint.h"
#include "controller/plan/passes.h"
#include "controller/plan/planning.h"
#include "controller/spec/lab_only.h"

namespace muster {
namespace {

void find_machines(Planning& p) {
  for (const auto& [name, seen] : p.in.nodes)
    if (seen.machine)
      p.machines[name] = &*seen.machine;
    else if (seen.facts)
      p.machines[name] = &*seen.facts;
  for (const auto& [name, seen] : p.in.nodes)
    if (!seen.gpu_driver.empty()) p.with_gpu_driver.insert(name);
  p.cluster.emplace(p.spec, p.machines, p.with_gpu_driver);
}

// A final check: even if the planner has a bug, no plan replaces the system of an adopted node or of the
// controller's own machine, or switches off either of them.
void check_adopted_are_kept(Planning& p) {
  for (const auto& action : p.plan.actions) {
    const NodeSpec* node = p.spec.node(action.node);
    const bool replaces = action.kind == ActionKind::netboot || action.kind == ActionKind::image ||
                          action.kind == ActionKind::boot_disk || action.kind == ActionKind::power_off ||
                          action.kind == ActionKind::write_slot || action.kind == ActionKind::boot_slot ||
                          action.kind == ActionKind::return_slot;
    if (node && node->adopt.declared() && replaces)
      p.problems.push_back(action.id + ": not allowed on an adopted node");
    if (node && (replaces || action.kind == ActionKind::wake) && !own_sign(p, *node).empty())
      p.problems.push_back(action.id + ": not allowed on the controller's own machine");
  }
}

Error all_problems(const std::vector<std::string>& problems) {
  std::string all;
  for (const auto& problem : problems) all += (all.empty() ? "" : "\n") + problem;
  return fail(Code::invalid, all);
}

NodeWay way_of(const Planning& p, const std::string& name) {
  NodeWay out{name, NodeWay::By::none, "it cannot be included in a plan at present"};
  const auto refused = std::find_if(p.refusals.begin(), p.refusals.end(),
                                    [&](const Refusal& refusal) { return refusal.node == name; });
  if (refused != p.refusals.end()) {
    out.why = refused->message;
    return out;
  }
  const auto draft =
      std::find_if(p.drafts.begin(), p.drafts.end(), [&](const Draft& d) { return d.spec->name == name; });
  if (draft == p.drafts.end()) return out;
  if (!draft->unlike.empty())
    out.why = draft->unlike;
  else if (!draft->disks.destroys.empty())
    out.why = "some of its disks would be formatted, which needs a separate approval: run `muster reimage " +
              name + "`";
  else
    out = {name, draft->slot.empty() ? NodeWay::By::through_ram : NodeWay::By::in_place, draft->not_in_place};
  return out;
}

}  // namespace

Result<std::vector<NodeWay>> ways_of(const PlannerInput& input) {
  Planning p(input);
  p.address = p.in.controller_address.empty() ? provisioning_address(p.spec) : p.in.controller_address;
  find_machines(p);
  choose_nodes(p);
  for (const auto& d : p.drafts)
    if (!d.seen->facts)
      p.refuse(d.spec->name, "not-seen", "its hardware is not known: run `muster up` to take an inventory");
  std::erase_if(p.drafts, [](const Draft& d) { return !d.seen->facts; });
  prepare_all(p);
  if (!p.problems.empty()) return all_problems(p.problems);
  std::vector<NodeWay> out;
  for (const auto& name : input.request.nodes) out.push_back(way_of(p, name));
  return out;
}

Result<PlanOutcome> make_plan(const PlannerInput& input) {
  Planning p(input);
  // Needed for specs that an earlier controller, which did not check this, has stored.
  if (!p.in.lab) TRY_(refuse_lab_only(p.spec, p.in.revision, p.profile()));
  p.plan.cluster = p.spec.cluster;
  p.plan.follows = p.in.follows;
  p.plan.spec_revision = p.in.revision;
  p.plan.profile = p.profile();
  p.plan.simulated = is_simulated(p.spec, p.plan.profile);
  p.plan.limits = {
      p.spec.limits.parallel_imaging, p.spec.limits.parallel_netboot, p.spec.limits.power_stagger,
      p.spec.limits.failure_budget < 0 ? PlanLimits{}.failure_budget : p.spec.limits.failure_budget,
      p.spec.limits.netboot};
  p.address = p.in.controller_address.empty() ? provisioning_address(p.spec) : p.in.controller_address;
  find_machines(p);
  choose_nodes(p);
  if (p.drains()) {
    write_drain(p);
  } else if (!wake(p) && !discover(p)) {
    prepare_all(p);
    drop_unlike(p);
    refuse_needed(p);
    refuse_shared_disks(p);
    drop_unchanged(p);
    add_servers(p);
    check_storage_leaders(p);
    const bool fine = p.problems.empty() && p.refusals.empty();
    if (fine && p.drafts.empty() && p.discovers() && !p.unreachable_nodes.empty())
      write_discovery(p, std::move(p.unreachable_nodes));
    else if (fine)
      write_actions(p);
  }
  if (!measures(p.plan.kind)) p.plan.profile.clear();
  if (!p.problems.empty()) return all_problems(p.problems);
  if (p.refusals.empty())
    for (const auto& problem : lint_plan(p.plan)) p.problems.push_back(problem);
  if (p.refusals.empty()) check_adopted_are_kept(p);
  if (!p.problems.empty())
    return fail(Code::failed, "internal error: the plan failed its own check: " + p.problems.front());
  return PlanOutcome{std::move(p.plan), std::move(p.refusals), std::move(p.why)};
}

}  // namespace muster
