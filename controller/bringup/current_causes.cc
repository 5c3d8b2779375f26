#include "controller/bringup/current_causes.h"

#include <set>
#include <utility>

#include "base/facts.h"
#include "base/json_at.h"
#include "controller/causes/cause_text.h"
#include "controller/engines/engine.h"
#include "controller/rollout/window_result.h"
#include "controller/spec/spec.h"

namespace muster {
namespace {

constexpr int kReadAtOnce = 20;  // inventories, each of which takes up to a millisecond

void add_row(NodeNow& node, const NodeRow& row) {
  node.state = row.state;
  node.held_by = row.held_by;
  node.held_since = row.held_since;
  node.reason = row.reason;
  node.faulty_part = row.faulty_part;
  node.image_digest = row.image_digest;
  node.boot_id = row.boot_id;
}

void add_run(NodeNow& node, const Json& progress) {
  node.in_run = node_run_state_from_string(text_at(progress, "state"));
  node.returning = is_true_at(progress, "returning");
  node.run_reason = text_at(progress, "reason");
  node.at_work = !text_at(progress, "phase").empty();
  const Json wait = progress.value("wait", Json::object());
  if (!is_true_at(progress, "by_hand")) return;
  node.by_hand = text_at(wait, "reason");
  node.by_hand_since = integer_at(wait, "since");
}

// The storage sections of which a run has taken a member from its work. `nodes`: in the spec's order.
std::set<std::string> taken_sections(const Spec& spec, const std::vector<NodeNow>& nodes) {
  std::set<std::string> out;
  for (size_t at = 0; at < nodes.size(); ++at)
    if (nodes[at].in_run && nodes[at].state == NodeState::installing)
      for (const StorageSpec& section : spec.storage)
        if (is_member(section, spec.nodes[at])) out.insert(section.name);
  return out;
}

}  // namespace

ClusterNow CurrentCauses::cluster_now() {
  const NodesView view(parts_);
  const Executor& executor = parts_.executor;
  ClusterNow out;
  out.rollout = rollout_();
  out.controller = view.problems();
  if (authority_.replacing_ca())
    out.controller[kReplacedCa] = "it is being replaced, and agents still trust the old one";
  out.time = parts_.reactor.now();
  out.certificates = authority_.certificate_ends();
  const auto spec = parts_.spec.get();
  if (!spec.ok()) return out;
  out.storage = parts_.storage.status(
      (*spec)->spec, [&](const std::string& node) { return executor.silent_since(NodeName(node)) > 0; });
  if (out.rollout)
    for (const auto& [image, unbuilt] : rollout::unbuilt_images(*out.rollout))
      if ((*spec)->spec.images.count(image)) out.built_at[image] = images_.built_at(image);
  const Json progress = executor.active() ? executor.progress() : Json{{"nodes", Json::array()}};
  const auto& rows = executor.node_rows();
  std::map<std::string, const Json*> of_node;
  for (const Json& one : list_at(progress, "nodes")) of_node[text_at(one, "node")] = &one;
  for (const NodeSpec& declared : (*spec)->spec.nodes) {
    NodeNow& node = out.nodes.emplace_back();
    node.name = declared.name;
    if (const auto row = rows.find(declared.name); row != rows.end()) {
      add_row(node, row->second);
      node.silent_since = view.silent_since(row->second);
    }
    if (const auto p = of_node.find(declared.name); p != of_node.end()) add_run(node, *p->second);
  }
  const SteadyMs now = parts_.reactor.steady();
  boots_ = boots_seen(std::move(boots_), out.nodes, now);
  for (NodeNow& node : out.nodes) {
    node.starting = is_starting(boots_[node.name], now);
    node.switched = is_expected(node.name, node.boot_id);
  }
  lasting_ = lasting_problems(out.storage, lasting_, out.nodes);
  healing_ = healing_sections(healing_, taken_sections((*spec)->spec, out.nodes), out.storage, now);
  out.healing = healing_;
  return out;
}

bool CurrentCauses::is_expected(const NodeName& node, const std::string& boot_id) const {
  const auto from = switched_.find(node);
  if (from == switched_.end()) return false;
  const auto spec = parts_.spec.get();
  return spec.ok() &&
         is_expected_away(from->second, boot_id, parts_.reactor.steady(), (*spec)->spec.limits.boot);
}

void CurrentCauses::switched(const NodeName& node, bool goes_away) {
  const NodeRow row = parts_.executor.node_row(node);
  // Of one that is silent for another reason it would seem that this is over.
  const bool can_begin = goes_away && NodesView(parts_).silent_since(row) == 0;
  if (!can_begin && !is_expected(node, row.boot_id)) return;
  switched_[node] = {row.boot_id, parts_.reactor.steady()};
}

bool CurrentCauses::read_inventories() {
  const auto spec = parts_.spec.get();
  if (!spec.ok()) return false;
  const auto& rows = parts_.executor.node_rows();
  int read = 0;
  bool unread = false;
  for (const NodeSpec& declared : (*spec)->spec.nodes) {
    const auto found = rows.find(declared.name);
    if (found == rows.end()) {
      machines_.erase(declared.name);
      continue;
    }
    const NodeRow& row = found->second;
    Machine& known = machines_[declared.name];
    if (known.facts_time == row.facts_time) continue;
    if (read == kReadAtOnce) {
      unread = unread || known.facts_time == 0;  // what was read of the others counts until then
      continue;
    }
    ++read;
    known = {row.facts_time, "", ""};
    const auto facts = row.facts.facts();
    if (!facts) continue;
    known.model = model_value(facts->system.vendor, facts->system.product);
    known.firmware = facts->firmware;
  }
  return unread;
}

std::map<NodeName, NodePlace> CurrentCauses::places_of(const ClusterNow& now, bool unread) {
  std::map<NodeName, NodePlace> out;
  const auto spec = parts_.spec.get();
  if (!spec.ok()) return out;
  for (const NodeNow& node : now.nodes) {
    const NodeSpec* declared = (*spec)->spec.node(node.name);
    if (!counts(node) || !declared) continue;
    const Machine machine = unread ? Machine{} : machines_[node.name];
    out[node.name] = {declared->rack, declared->network_switch, machine.model, machine.firmware,
                      image_value(declared->image, node.image_digest)};
  }
  return out;
}

const std::vector<Cause>& CurrentCauses::look() {
  return found_.get([this](const std::vector<Cause>& last) {
    const bool unread = read_inventories();
    const ClusterNow cluster = cluster_now();
    Wrong now{current_problems(cluster), {}};
    if (!now.problems.empty()) now.places = places_of(cluster, unread);
    std::vector<Cause> before = recalled_();
    if (before.empty() && now == wrong_) return last;
    before.insert(before.end(), last.begin(), last.end());
    auto found = find_causes(now.problems, now.places, before);
    for (Cause& cause : found)
      if (cause.since == 0) cause.since = parts_.reactor.now();
    wrong_ = std::move(now);
    return found;
  });
}

}  // namespace muster
