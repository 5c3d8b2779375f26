#include "controller/rollout/survey.h"

#include <algorithm>

namespace muster::rollout {
namespace {

int group_that_stops(const View& view, const Node& node) {
  for (const size_t g : node.groups)
    if (view.groups[g].can_miss <= 0) return static_cast<int>(g);
  return -1;
}

Reason why_away(const Node& node) {
  if (!is_away(node)) return Reason::none;
  switch (node.state) {
    case NodeState::quarantined:
      return node.held_by == HeldBy::an_operator ? Reason::held : Reason::quarantined;
    case NodeState::draining:
    case NodeState::drained:
      return Reason::maintenance;
    case NodeState::installing:
      return Reason::installing;
    case NodeState::unknown:
    case NodeState::discovered:
    case NodeState::unadmitted:
      return Reason::not_installed;
    case NodeState::accepted:
    case NodeState::degraded:
      break;
  }
  if (node.maintenance) return Reason::maintenance;
  return node.on_trial ? Reason::on_trial : Reason::silent;
}

// Calls `found` for each node that has an entry. One pass is enough: both are sorted by name.
template <typename Entry, typename Found>
void for_each_known(const View& view, const std::map<std::string, Entry>& entries, Found&& found) {
  auto at = view.nodes.begin();
  for (const auto& [name, entry] : entries) {
    at = std::lower_bound(at, view.nodes.end(), name,
                          [](const Node& node, const std::string& wanted) { return node.name < wanted; });
    if (at == view.nodes.end()) return;
    if (at->name == name) found(static_cast<size_t>(at - view.nodes.begin()), entry);
  }
}

int place_of_image(Survey& s, const View& view, const Row& row, const std::string& digest) {
  for (size_t i = 0; i < s.images.size(); ++i)
    if (*s.images[i].digest == digest) return static_cast<int>(i);
  const auto proven = row.proven.find(digest);
  ImageProof image;
  image.digest = &digest;
  image.proven = proven == row.proven.end() ? 0 : proven->second;
  image.wanted = std::max(1, view.policy.canary);
  image.held = row.held.count(digest) > 0;
  s.images.push_back(image);
  return static_cast<int>(s.images.size()) - 1;
}

// Whether a node that needs the update can be taken. `reason` already holds what the row records.
void judge_node(Survey& s, const View& view, size_t at, ImageProof& image) {
  const Node& node = view.nodes[at];
  Reason& reason = s.reason[at];
  image.needed = image.needed || !node.skipped;
  if (reason == Reason::failed) return;
  const Reason of_this_window = reason;
  reason = Reason::none;
  if (node.skipped)
    reason = Reason::skipped;
  else if (node.way == Way::none)
    reason = Reason::no_way;
  else if (const int g = group_that_stops(view, node); g >= 0)
    reason = Reason::needed, s.group[at] = g;
  else if (const Reason away = why_away(node); away != Reason::none)
    reason = away;
  else if (node.image_now.empty())
    reason = Reason::unknown_image;
  else
    reason = image.held ? Reason::canary_failed : of_this_window;
  s.can[at] = reason == Reason::none;
}

// Counts a possible canary. A node that was tried and failed is not counted: it is not tried again.
void count_canary(ImageProof& image, const Node& node, Reason reason) {
  if (!may_be_canary(node) || reason == Reason::failed) return;
  if (node.image_now == node.image_wanted)
    image.running = image.running || !is_away(node);
  else if (reason == Reason::none)
    ++image.now;
  else if (is_of_this_window(reason))
    ++image.next_window;
  else if (is_away(node))
    ++image.away;
}

}  // namespace

bool is_of_this_window(Reason reason) {
  return reason == Reason::jobs || reason == Reason::cancelled || reason == Reason::refused;
}

bool in_scope(const View& view, const Node& node) {
  const auto& roles = view.policy.roles;
  return !node.image_wanted.empty() && std::find(roles.begin(), roles.end(), node.role) != roles.end();
}

bool is_away(const Node& node) {
  const bool works = node.state == NodeState::accepted || node.state == NodeState::degraded;
  return !works || !node.online || node.on_trial || node.maintenance;
}

bool may_fail(const Node& node) {
  return node.has_bmc && node.groups.empty() && node.special == Special::no && node.way != Way::none;
}

bool may_be_canary(const Node& node) {
  return may_fail(node) && !node.skipped && (!node.failed_before || node.named_canary);
}

Survey survey(const View& view, const Row& row) {
  const size_t n = view.nodes.size();
  Survey s;
  s.reason.assign(n, Reason::none);
  s.group.assign(n, -1);
  s.can.assign(n, 0);
  s.under_way.assign(n, 0);
  s.image.assign(n, -1);
  s.missing.assign(view.groups.size(), 0);
  for_each_known(view, row.postponed, [&](size_t at, const Postponed& p) {
    if (p.night >= view.night)
      s.reason[at] = p.cancelled ? Reason::cancelled : p.refused ? Reason::refused : Reason::jobs;
  });
  for_each_known(view, row.failed, [&](size_t at, const Failure&) { s.reason[at] = Reason::failed; });
  if (row.batch)
    for_each_known(view, row.batch->images, [&](size_t at, const std::string&) { s.under_way[at] = 1; });

  int away = 0;
  for (size_t at = 0; at < n; ++at) {
    const Node& node = view.nodes[at];
    const bool gone = s.under_way[at] || is_away(node);
    if (gone)
      for (const size_t g : node.groups) ++s.missing[g];
    if (!in_scope(view, node)) {
      s.reason[at] = Reason::none;
      continue;
    }
    ++s.scope;
    away += gone;
    const int image = place_of_image(s, view, row, node.image_wanted);
    if (s.under_way[at]) {
      s.reason[at] = Reason::none;
      s.images[static_cast<size_t>(image)].under_way += row.batch->canary;
      continue;
    }
    const bool current = node.image_now == node.image_wanted;
    ImageProof& proof = s.images[static_cast<size_t>(image)];
    if (!current) judge_node(s, view, at, proof), s.image[at] = image;
    count_canary(proof, node, s.reason[at]);
    if (current) s.reason[at] = Reason::none;
  }
  s.room = most_unavailable(view.policy.max_unavailable, s.scope) - away;
  return s;
}

}  // namespace muster::rollout
