#include "controller/plan/storage_needed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/engines/engine.h"
#include "controller/engines/sections.h"

namespace muster {
namespace {

int can_miss(const StorageSpec& s) {
  const auto of_engine = engine_of(s).can_miss;
  return of_engine ? std::max(0, of_engine(s)) : 0;
}

std::vector<const NodeSpec*> members_of(const Planning& p, const StorageSpec& s) {
  std::vector<const NodeSpec*> out;
  for (const auto& node : p.spec.nodes)
    if (is_member(s, node)) out.push_back(&node);
  return out;
}

bool others_use(const Planning& p, const StorageSpec& s, const NodeSpec& but) {
  return std::any_of(p.spec.nodes.begin(), p.spec.nodes.end(),
                     [&](const NodeSpec& n) { return n.name != but.name && mounts(s, n); });
}

// True if the node, for any reason, does not serve its storage now or may restart at any time.
bool is_away(const Planning& p, const NodeName& node) {
  const auto seen = p.in.nodes.find(node);
  return seen == p.in.nodes.end() || !seen->second.online || seen->second.mode == wire::Mode::ram ||
         seen->second.on_trial;
}

// Marks a node on trial in messages: to the operator it looks online.
std::string shown(const Planning& p, const std::string& away) {
  const auto seen = p.in.nodes.find(away);
  const bool on_trial = seen != p.in.nodes.end() && seen->second.on_trial;
  return away + (on_trial ? " (on trial: the node may restart by itself)" : "");
}

// `up` has no --force, so the text also suggests leaving the node out.
std::string way_out(const Planning& p, const NodeName& node) {
  const bool up = p.kind() == RequestKind::up;
  return fmt::format("{}override this with `{}--force {}`, which kills its jobs",
                     up ? "exclude it with --limit, or " : "",
                     up ? fmt::format("muster reimage {} ", node) : "", node);
}

void say(Planning& p, const NodeName& node, const std::string& why) {
  if (p.in.request.force.count(node))
    p.plan.notes.push_back(
        fmt::format("{} is taken out of service because of --force, although {}", node, why));
  else
    p.refuse(node, "storage-needed", fmt::format("{}; {}", why, way_out(p, node)));
}

// `few`: the members to count, for instance the monitors.
void refuse_too_many(Planning& p, const StorageSpec& s, const std::vector<const NodeSpec*>& few, int most,
                     const std::string& what) {
  std::vector<NodeName> taken;
  std::vector<std::string> away;
  for (const NodeSpec* node : few)
    if (p.leaving.count(node->name))
      taken.push_back(node->name);
    else if (is_away(p, node->name))
      away.push_back(shown(p, node->name));
  const auto missing = static_cast<int>(taken.size() + away.size());
  if (taken.empty() || missing <= most) return;
  const std::string now = away.empty() ? ""
                                       : fmt::format("; {} {} already away", fmt::join(away, ", "),
                                                     away.size() == 1 ? "is" : "are");
  for (const auto& node : taken)
    say(p, node,
        fmt::format("storage '{}' can do without at most {} of its {} at a time, but {} would be away{}",
                    s.name, most, what, missing, now));
}

void refuse_of(Planning& p, const StorageSpec& s) {
  const StorageEngine& engine = engine_of(s);
  const auto members = members_of(p, s);
  const NodeSpec* leader = has_quorum(p, s) ? nullptr : storage_leader(p.spec, s);
  if (leader && p.leaving.count(leader->name) && others_use(p, s, *leader))
    say(p, leader->name,
        fmt::format("it is the {} of storage '{}', which other nodes use and which stops without this node",
                    engine.leader_word, s.name));
  if (!std::any_of(members.begin(), members.end(), [&](const NodeSpec* n) { return others_use(p, s, *n); }))
    return;
  if (!engine.one_server) refuse_too_many(p, s, members, can_miss(s), "members");
  if (engine.quorum == 0 || !has_quorum(p, s)) return;
  const std::vector<const NodeSpec*> voters(members.begin(), members.begin() + engine.quorum);
  refuse_too_many(p, s, voters, (engine.quorum - 1) / 2, "monitors");
}

}  // namespace

void refuse_needed(Planning& p) {
  if (p.leaving.empty()) return;
  for (const auto& s : p.spec.storage)
    if (engine_of(s).reach == Reach::shared) refuse_of(p, s);
  if (const NodeSpec* slurm = p.spec.leader_of("scheduler"); slurm && p.leaving.count(slurm->name))
    p.plan.notes.push_back(slurm->name +
                           " runs Slurm's controller: jobs on the other nodes continue, but no new job "
                           "starts until this node is back");
}

}  // namespace muster
