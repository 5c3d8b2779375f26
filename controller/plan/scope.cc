#include "controller/plan/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster {
namespace {

// The controller's own machine is never installed or switched off, whatever the spec and the request contain.
bool refuse_own(Planning& p, const Draft& d) {
  if (d.spec->adopt.declared() && !p.requests_image()) return false;
  const std::string sign = own_sign(p, *d.spec);
  if (sign.empty()) return false;
  p.refuse(d.spec->name, "own-machine",
           fmt::format("the controller runs on this machine ({}): muster never installs it or powers it "
                       "off. To manage it with its existing system, declare it with 'adopt' and without "
                       "image, mac and power: run `muster node add {} --adopt HOST`",
                       sign, d.spec->name));
  return true;
}

bool may_plan_installed(Planning& p, const NodeName& node) {
  if (p.kind() != RequestKind::adopt) return true;
  p.problems.push_back(fmt::format("{} is declared as a node that muster installs, not with 'adopt'", node));
  return false;
}

bool out_of_reach(Planning& p, const NodeName& name, const std::string& why, bool named) {
  if (named) {
    p.refuse(name, "not-running", why);
    return false;
  }
  p.plan.left_out.push_back(name);
  p.plan.notes.push_back(name + " is left out: " + why);
  return false;
}

// An adopted node is reachable only through its own agent, and only `adopt` can restore that agent.
bool may_plan_adopted(Planning& p, const Draft& d, bool named) {
  const NodeName& name = d.spec->name;
  if (p.kind() == RequestKind::adopt) return true;
  if (p.requests_image()) {
    p.refuse(name, "adopted-node",
             "it was adopted with its existing operating system and is never re-imaged; to have muster "
             "install it, declare image, mac, power and the disk group 'os' instead of 'adopt'");
    return false;
  }
  if (p.rolls_back()) {
    p.refuse(name, "rollback",
             "it was adopted with its existing operating system and has no other root slot");
    return false;
  }
  if (in_installed(d)) return true;
  const bool ever = d.seen->mode.has_value();
  const std::string why = fmt::format("{}; run `muster node add {} --adopt {}`{}",
                                      ever ? "its agent does not answer" : "it was never adopted", name,
                                      d.spec->adopt.host, ever ? " to restart it" : "");
  return out_of_reach(p, name, why, named);
}

// The provider could reinstall a silent rented node, but that would destroy a system that muster installed.
bool may_reach_rented(Planning& p, const Draft& d, bool named) {
  if (p.drains() || asleep(p, d) || provider_installs(d)) return true;
  const NodeName& name = d.spec->name;
  const bool ours = d.seen->doubtful || !d.seen->image_digest.empty();
  return out_of_reach(
      p, name,
      ours ? fmt::format("its agent does not answer, and its provider cannot boot it from the network; "
                         "`muster up` powers it on and waits for it. To have its provider reinstall it, "
                         "which destroys all data on its disks, run `muster node rm {}`, then `muster up`",
                         name)
           : std::string(
                 "it has no agent, and its provider cannot boot it from the network; with power.install in "
                 "the spec the provider reinstalls it, which destroys all data on its disks"),
      named);
}

bool may_reach(Planning& p, const Draft& d, bool named) {
  const Switch by = switched_by(*d.spec);
  if (can_netboot(by) || in_ram(d) || in_installed(d)) return true;
  if (by == Switch::provider) return may_reach_rented(p, d, named);
  const NodeName& name = d.spec->name;
  return out_of_reach(
      p, name,
      d.seen->mode.has_value()
          ? "its agent does not answer, and muster cannot control its power (power driver ssh)"
          : fmt::format("it has no BMC (power driver ssh) and no agent yet; adopt its running system with "
                        "`muster node add {} --adopt HOST`, then declare it with image, mac, power and the "
                        "disk group 'os' instead of 'adopt'",
                        name),
      named);
}

// A rollback requires the node's installed system to run, because only that can boot the other slot.
bool may_roll_back(Planning& p, const Draft& d) {
  if (!p.rolls_back()) return true;
  std::string why;
  if (!d.seen->online || d.seen->mode != wire::Mode::installed)
    why = "its installed system is not online";
  else if (d.seen->doubtful || !d.seen->facts)
    why = "the system that it runs is not known; run `muster up` to find out";
  if (!why.empty()) p.refuse(d.spec->name, "rollback", why);
  return why.empty();
}

void hold(Planning& p, const NodeName& node, const std::string& reason, bool named) {
  if (named)
    return p.refuse(node, "node-held",
                    fmt::format("quarantined {}; to release it, run `muster node quarantine {} --release`",
                                reason, node));
  p.plan.left_out.push_back(node);
  p.plan.notes.push_back(fmt::format("{} is left out: it is quarantined {}", node, reason));
}

// A node on trial is left out, because changes to its system are lost if it rolls back.
void leave_on_trial(Planning& p, const Draft& d, bool named) {
  const NodeName& name = d.spec->name;
  const std::string why = fmt::format(
      "runs {} on trial and rolls back by itself unless the system is committed; run `muster up` after the "
      "trial",
      d.seen->slot.empty() ? "its new system" : "slot " + d.seen->slot);
  if (named) return p.refuse(name, "on-trial", "it " + why);
  p.plan.left_out.push_back(name);
  p.plan.left_out_rules[name] = "on-trial";
  p.plan.notes.push_back(fmt::format("{} is left out: it {}", name, why));
}

std::string suggestion(const Planning& p, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& n : p.spec.nodes) names.push_back(n.name);
  const std::string near = nearest_spelling(name, names);
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

}  // namespace

void choose_nodes(Planning& p) {
  static const NodeObservation kNever;
  const auto& wanted = p.in.request.nodes;
  if (wanted.empty() &&
      (p.requests_image() || p.rolls_back() || p.kind() == RequestKind::adopt || p.drains()))
    p.problems.push_back("this kind of plan requires node names");
  for (const auto& name : wanted)
    if (!p.spec.node(name))
      p.problems.push_back(fmt::format("there is no node '{}' in the spec{}", name, suggestion(p, name)));
  for (const auto& node : p.spec.nodes) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), node.name) == wanted.end()) continue;
    if (p.in.request.skip.count(node.name)) continue;
    const auto seen = p.in.nodes.find(node.name);
    Draft draft;
    draft.spec = &node;
    draft.seen = seen == p.in.nodes.end() ? &kNever : &seen->second;
    if (draft.seen->held_by == HeldBy::an_operator) {
      hold(p, node.name, draft.seen->reason, !wanted.empty());
      continue;
    }
    if (draft.seen->on_trial) {
      leave_on_trial(p, draft, !wanted.empty());
      continue;
    }
    if (refuse_own(p, draft)) continue;
    if (draft.seen->state == NodeState::drained && wanted.empty()) {
      p.plan.left_out.push_back(node.name);
      p.plan.notes.push_back(node.name +
                             " is left out: it is drained; to return it to service, run `muster undrain " +
                             node.name + "`");
      continue;
    }
    if (node.adopt.declared() ? !may_plan_adopted(p, draft, !wanted.empty())
                              : !may_plan_installed(p, node.name) || !may_roll_back(p, draft) ||
                                    !may_reach(p, draft, !wanted.empty()))
      continue;
    p.drafts.push_back(std::move(draft));
  }
}

namespace {

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Why nothing else can be planned for the node before it is discovered.
std::string why_discovered(const Draft& d) {
  if (d.seen->facts) return "its provider installs it again";
  return d.seen->machine ? "the content of its disks is no longer known" : "it was never seen";
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
    p.why[d.spec->name] =
        d.seen->doubtful ? "it has not reported since the database was restored" : "its agent is silent";
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
    p.why[d.spec->name] = why_discovered(d);
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
