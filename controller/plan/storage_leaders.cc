#include "controller/plan/storage_leaders.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "controller/engines/engine.h"
#include "controller/engines/sections.h"
#include "controller/plan/node_steps.h"
#include "controller/plan/older_image.h"

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

}  // namespace muster
