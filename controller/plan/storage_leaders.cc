#include "controller/plan/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/slurm_release.h"
#include "controller/engines/engine.h"

namespace muster {
namespace {

// True if the node was accepted. A former master that came back also has metadata, but is not the master.
bool was_settled(const NodeObservation& seen) {
  return seen.state == NodeState::accepted || seen.state == NodeState::degraded;
}

bool has_metadata(const StorageSpec& s, const NodeObservation& seen) {
  if (!seen.facts) return false;
  const auto found = seen.facts->storage_metadata.find(s.engine);
  return found != seen.facts->storage_metadata.end() && found->second;
}

std::string data_on(const Planning& p, const StorageSpec& s) {
  std::string out;
  for (const auto& node : p.spec.nodes)
    if (const auto seen = p.machines.find(node.name);
        seen != p.machines.end() && holds_our_data(p.spec, node, s, *seen->second))
      out += (out.empty() ? "" : ", ") + node.name;
  return out.empty() ? out : out + (out.find(',') == std::string::npos ? " holds data" : " hold data");
}

// True only if the node certainly lacks the metadata: if that is unknown, the agent checks it.
bool lacks_metadata(const Planning& p, const StorageSpec& s, const Draft& d) {
  if (!d.disks.refusals.empty() || data_on(p, s).empty()) return false;
  if (d.imaging && !d.disks.os_is_ours) return true;
  // Certain only if one inventory shows the node's data and no metadata: an inventory without data may be
  // older than both. A declared master may take the metadata from a copy, which its agent looks for before
  // the former master is stopped.
  if (engine_of(s).may_name_leader && !s.server.empty()) return false;
  const auto found = d.seen->facts->storage_metadata.find(s.engine);
  return found != d.seen->facts->storage_metadata.end() && !found->second &&
         holds_our_data(p.spec, *d.spec, s, *d.seen->facts);
}

// The former master is stopped so that the declared one takes over. Refuses a plan that would stop it without
// making the declared node the master.
void keep_former_master(Planning& p, const StorageSpec& s) {
  if (!engine_of(s).may_name_leader || s.server.empty()) return;
  const auto declared = p.in.nodes.find(s.server);
  if (declared != p.in.nodes.end() && declared->second.online && has_metadata(s, declared->second) &&
      was_settled(declared->second))
    return;
  for (const Draft& d : p.drafts)
    if (is_member(s, *d.spec) && has_metadata(s, *d.seen))
      p.refuse(
          d.spec->name, "storage-leader",
          fmt::format(
              "it may be the current master of storage '{}'; the spec declares {} as master, but this plan "
              "does not make that node the master, so the storage would have no master. Run `muster up` "
              "without --limit",
              s.name, s.server));
}

// True for the modules of steps that set which nodes may mount a server's storage.
bool lets_in(const std::string& module) {
  const auto& all = storage_engines();
  return std::any_of(all.begin(), all.end(), [&](const StorageEngine* e) {
    return !e->serving_module.empty() && e->serving_module == module;
  });
}

void add_server(Planning& p, const NodeSpec& node, const NodeObservation& seen, const std::string& storage) {
  Draft d;
  d.spec = &node;
  d.seen = &seen;
  d.serves = true;
  const auto& facts = seen.facts ? seen.facts : seen.machine;
  if (!in_installed(d) || !facts || seen.on_trial || seen.held_by == HeldBy::an_operator) {
    p.plan.notes.push_back(fmt::format(
        "{} serves storage '{}' but is not part of this plan: a new node cannot mount the storage until "
        "`muster up` has configured {}",
        node.name, storage, node.name));
    return;
  }
  d.disks = choose_disks(p.spec, node, *facts, {false, imaged_here(d, *facts), "", p.in.authority});
  d.disks.destroys.clear();
  d.older = runs_older_build(p, d);
  render(p, d, image_digest_of(p, d));
  if (d.digest == seen.config_digest) return;
  d.digest = Digest(seen.config_digest);  // other changes to it are left to a plan that includes it
  d.configure.clear();
  d.accept.clear();
  d.accept_cluster.clear();
  const auto other = [](const PlannedStep& s) { return !lets_in(s.step().module); };
  for (auto it = d.cluster.begin(); it != d.cluster.end();) {
    it->second.erase(std::remove_if(it->second.begin(), it->second.end(), other), it->second.end());
    it = it->second.empty() ? d.cluster.erase(it) : std::next(it);
  }
  if (d.cluster.empty()) return;
  p.plan.notes.push_back(fmt::format("{}: the only change is to allow the other nodes to mount storage '{}'",
                                     node.name, storage));
  p.plan.serving.push_back(node.name);
  p.why[node.name] = "other nodes use its storage";
  p.drafts.push_back(std::move(d));
}

}  // namespace

void add_servers(Planning& p) {
  if (p.kind() == RequestKind::accept || p.in.request.nodes.empty() || p.drafts.empty()) return;
  for (const auto& s : p.spec.storage) {
    if (engine_of(s).serving_module.empty()) continue;
    const NodeSpec* server = storage_leader(p.spec, s);
    if (!server) continue;
    if (std::any_of(p.drafts.begin(), p.drafts.end(), [&](const Draft& d) { return d.spec == server; }))
      continue;  // the plan already includes the server
    const auto seen = p.in.nodes.find(server->name);
    if (seen != p.in.nodes.end()) add_server(p, *server, seen->second, s.name);
  }
  const auto by_place = [](const Draft& a, const Draft& b) { return a.spec < b.spec; };  // as in the spec
  std::sort(p.drafts.begin(), p.drafts.end(), by_place);
}

void check_storage_leaders(Planning& p) {
  if (p.kind() == RequestKind::accept) return;
  for (const auto& s : p.spec.storage) {
    // With a quorum, a new leader joins the other members and needs no metadata.
    if (!engine_of(s).keeps_metadata || has_quorum(p, s)) continue;
    const auto leader =
        std::find_if(p.drafts.begin(), p.drafts.end(), [&](const Draft& d) { return leads(p, s, *d.spec); });
    // A leader that was added only to let others mount (add_servers) does not become the master.
    if (leader == p.drafts.end() || leader->serves) keep_former_master(p, s);
    if (leader == p.drafts.end() || !lacks_metadata(p, s, *leader)) continue;
    const NodeName& name = leader->spec->name;
    const std::string what = fmt::format("it leads storage '{}' but has no {}, although {} of this storage",
                                         s.name, engine_of(s).metadata_word, data_on(p, s));
    const auto& named = p.in.request.nodes;
    if (std::find(named.begin(), named.end(), name) != named.end())
      p.plan.notes.push_back(fmt::format(
          "{}: {}; the storage will not start with empty metadata: see docs/storage.md (Losing the metadata)",
          name, what));
    else
      p.refuse(
          name, "storage-leader",
          fmt::format(
              "{}: with empty metadata all files would be lost. If a change to the spec made a different "
              "node the leader, revert it; if {} lost its disk, run `muster up --limit {}` to install it "
              "without creating empty metadata, then restore the metadata (see docs/storage.md)",
              what, name, name));
  }
}

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

// The queue and the database are in /state: the new system uses them, or refuses them and rolls back.
void note_slurm_release(Planning& p, const std::string& leader) {
  for (const auto& d : p.drafts) {
    const PlannerImage* image = d.spec->name == leader && d.imaging ? p.image_of(d) : nullptr;
    if (!image) continue;
    if (std::string note = slurm::unread_note(leader, d.seen->slurm, image->slurm); !note.empty())
      p.plan.notes.push_back(std::move(note));
  }
}

}  // namespace

void refuse_needed(Planning& p) {
  if (p.leaving.empty()) return;
  for (const auto& s : p.spec.storage)
    if (engine_of(s).reach == Reach::shared) refuse_of(p, s);
  const NodeSpec* leader = p.spec.leader_of("scheduler");
  if (!leader || !p.leaving.count(leader->name)) return;
  p.plan.notes.push_back(leader->name +
                         " runs Slurm's controller: jobs on the other nodes continue, but no new job "
                         "starts until this node is back");
  note_slurm_release(p, leader->name);
}

}  // namespace muster
