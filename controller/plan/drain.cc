#include "controller/plan/passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/engines/engine.h"

namespace muster {
namespace {

constexpr DurationMs kDrain = kDay;

// Returns false, and adds a refusal, if the node holds data that cannot be moved off it.
bool may_leave(Planning& p, const Draft& d) {
  for (const auto& s : p.spec.storage) {
    const StorageEngine& engine = engine_of(s);
    if (engine.reach == Reach::own) continue;
    if (!engine.drains && holds_data(s, *d.spec)) {
      p.refuse(d.spec->name, "drain-leader",
               fmt::format("muster cannot move the data of storage '{}' (engine {}) off this node", s.name,
                           s.engine));
      return false;
    }
    if (!leads(p, s, *d.spec)) continue;
    if (has_quorum(p, s)) continue;
    p.refuse(d.spec->name, "drain-leader",
             fmt::format("it is the {} of storage '{}' and cannot be drained", engine.leader_word, s.name));
    return false;
  }
  return true;
}

}  // namespace

void write_drain(Planning& p) {
  const bool out = p.kind() == RequestKind::drain;
  p.plan.kind = out ? PlanKind::drain : PlanKind::undrain;
  const std::string phase(to_string(p.plan.kind));
  std::string before;
  for (auto& d : p.drafts) {
    if (!in_installed(d)) {
      p.refuse(d.spec->name, "not-running", "its installed system is not online");
      continue;
    }
    // Otherwise a node that never passed its acceptance could become accepted by a drain and an undrain.
    const NodeState state = d.seen->state;
    if (state != NodeState::drained && state != NodeState::draining &&
        !(out && state == NodeState::accepted)) {
      p.refuse(d.spec->name, out ? "not-accepted" : "not-drained",
               fmt::format("it is {}; `muster up --limit {}` configures and measures it", to_string(state),
                           d.spec->name));
      continue;
    }
    if (out && !may_leave(p, d)) continue;
    if (d.seen->facts)
      d.disks = choose_disks(p.spec, *d.spec, *d.seen->facts,
                             {false, imaged_here(d, *d.seen->facts), "", p.in.authority});
    else if (d.seen->machine)
      d.disks = choose_disks(p.spec, *d.spec, *d.seen->machine,
                             {false, imaged_here(d, *d.seen->machine), "", p.in.authority});
    d.disks.destroys.clear();
    const auto steps = steps_of_phase(p, d, phase, out);
    if (steps.empty())
      p.problems.push_back("none of the playbooks of " + d.spec->name + " has steps of phase " + phase);
    p.plan.nodes.push_back(d.spec->name);
    p.plan.config_digests[d.spec->name] = d.seen->config_digest;
    Action& a = add(p, d,
                    {phase, ActionKind::steps, phase, fmt::format("{} ({} steps)", phase, steps.size()),
                     order_params(steps, false), kDrain});
    if (!before.empty()) a.after.push_back({before, true});
    before = a.id;
  }
  group_by_node(p);
}

}  // namespace muster
