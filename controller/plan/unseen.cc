#include "controller/plan/unseen.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster {
namespace {

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

bool wake(Planning& p) {
  std::vector<Draft> silent, rest;
  const auto& named = p.in.request.nodes;
  for (auto& d : p.drafts) {
    const std::string& name = d.spec->name;
    if (!asleep(p, d)) {
      rest.push_back(std::move(d));
    } else if (d.seen->state == NodeState::quarantined && !names(named, name)) {
      p.plan.left_out.push_back(name);
      p.plan.notes.push_back(
          fmt::format("{} is left out: its agent is silent; run `muster up --limit {}` to power it on and "
                      "wait for it, or `muster reimage {}` to reinstall it",
                      name, name, name));
    } else if (switched_by(*d.spec) == Switch::person && !names(named, name)) {
      p.plan.left_out.push_back(name);
      p.plan.notes.push_back(fmt::format(
          "{} is left out: its agent is silent, and an operator has to power it on; run `muster up "
          "--limit {}` to include it",
          name, name));
    } else {
      silent.push_back(std::move(d));
    }
  }
  p.drafts = std::move(rest);
  if (silent.empty()) return false;
  p.plan.kind = PlanKind::wake;
  for (auto& d : silent) {
    p.plan.nodes.push_back(d.spec->name);
    p.plan.notes.push_back(fmt::format(
        "{}: {}", d.spec->name,
        d.seen->doubtful
            ? "its agent has not reported since the database was restored: the system that it runs is not "
              "known"
            : "its agent is silent: muster powers the node on if it is off and waits for it; nothing is "
              "written to the node"));
    add(p, d,
        {"wake", ActionKind::wake, "power", "power on if off, wait for its agent", Json::object(),
         p.spec.limits.boot, 1});
  }
  p.drafts.clear();
  return true;
}

void write_discovery(Planning& p, std::vector<Draft> unseen) {
  p.drafts = std::move(unseen);
  p.unreachable_nodes.clear();
  p.plan.kind = PlanKind::discover;
  for (auto& d : p.drafts) {
    p.plan.nodes.push_back(d.spec->name);
    if (!in_ram(d) && !in_installed(d) && !d.spec->adopt.declared()) add_netboot(p, d);
    add(p, d,
        {"inventory", ActionKind::inventory, "discover", "take an inventory of the hardware", Json::object(),
         kInventory});
  }
  const bool provider_writes = std::any_of(p.drafts.begin(), p.drafts.end(), provider_installs);
  p.plan.notes.push_back(std::string(provider_writes ? "apart from what the provider does, " : "") +
                         "nothing is written to any disk; the install plan is based on this inventory");
}

bool discover(Planning& p) {
  std::vector<Draft> seen, unseen, later;
  const bool others = std::any_of(p.drafts.begin(), p.drafts.end(), [](const Draft& d) {
    return d.seen->facts || switched_by(*d.spec) != Switch::person;
  });
  for (auto& d : p.drafts) {
    const bool person = others && switched_by(*d.spec) == Switch::person && !d.seen->online &&
                        !names(p.in.request.nodes, d.spec->name);
    (d.seen->facts && !provider_installs(d) ? seen : person ? later : unseen).push_back(std::move(d));
  }
  const bool all_failed = std::all_of(unseen.begin(), unseen.end(),
                                      [](const Draft& d) { return d.seen->state == NodeState::quarantined; });
  if (!unseen.empty() && p.discovers() && (seen.empty() || !all_failed)) {
    write_discovery(p, std::move(unseen));
    return true;
  }
  p.drafts = std::move(seen);
  p.unreachable_nodes = std::move(unseen);
  std::move(later.begin(), later.end(), std::back_inserter(p.unreachable_nodes));
  return false;
}

}  // namespace muster
