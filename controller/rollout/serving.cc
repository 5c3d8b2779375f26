#include "controller/rollout/serving.h"

#include <algorithm>

#include "controller/engines/engine.h"

namespace muster::rollout {
namespace {

using Names = std::vector<std::string>;

bool others_use(const Spec& spec, const StorageSpec& section, const std::string& but) {
  return std::any_of(spec.nodes.begin(), spec.nodes.end(),
                     [&](const NodeSpec& node) { return node.name != but && mounts(section, node); });
}

void add_group(Serving& out, const StorageSpec& section, Group group, const Names& members) {
  out.sections.push_back(section.name);
  for (const auto& name : members) out.groups_of[name].push_back(out.groups.size());
  out.groups.push_back(std::move(group));
}

void add_special(Serving& out, const std::string& node, Special what) {
  Special& now = out.special[node];
  now = std::max(now, what);
}

void add_leader(Serving& out, const Spec& spec, const StorageSpec& section) {
  const NodeSpec* leader = storage_leader(spec, section);
  if (!leader) return;
  if (others_use(spec, section, leader->name))
    add_group(out, section, {section.name, GroupKind::exported, 0, true}, {leader->name});
  else
    add_special(out, leader->name, engine_of(section).one_server ? Special::single_server : Special::leader);
}

void add_section(Serving& out, const Spec& spec, const StorageSpec& section) {
  const StorageEngine& engine = engine_of(section);
  if (engine.reach != Reach::shared) return;
  Names members;
  for (const auto& node : spec.nodes)
    if (is_member(section, node)) members.push_back(node.name);
  const bool quorum = engine.quorum > 0 && members.size() >= static_cast<size_t>(engine.quorum);
  if (!quorum) add_leader(out, spec, section);
  const bool used = std::any_of(members.begin(), members.end(),
                                [&](const std::string& name) { return others_use(spec, section, name); });
  if (!used) return;
  const int can_miss = engine.can_miss ? std::max(0, engine.can_miss(section)) : 0;
  if (!engine.one_server)
    add_group(out, section, {section.name, GroupKind::storage, can_miss, true}, members);
  if (!quorum) return;
  members.resize(static_cast<size_t>(engine.quorum));
  add_group(out, section, {section.name + " monitors", GroupKind::quorum, (engine.quorum - 1) / 2, true},
            members);
}

}  // namespace

Serving serving_of(const Spec& spec) {
  Serving out;
  for (const auto& section : spec.storage) add_section(out, spec, section);
  for (const auto& [playbook, role] : spec.leads)
    if (const NodeSpec* leader = spec.leader_of(playbook)) add_special(out, leader->name, Special::leader);
  if (const NodeSpec* slurm = spec.leader_of("scheduler")) add_special(out, slurm->name, Special::scheduler);
  return out;
}

}  // namespace muster::rollout
