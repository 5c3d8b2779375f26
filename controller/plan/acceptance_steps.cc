#include "controller/plan/acceptance_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/locate/pairing.h"
#include "controller/plan/stages.h"

namespace muster {
namespace {

// Whom of its peers a node's links are measured with: of many nodes not every pair, but log2 N + 2
// partners, from which the bad one can be told (controller/locate/).
std::set<std::string> link_partners(const Planning& p, const std::string& node, const Json& peers) {
  std::set<std::string> measured = {node};
  for (const Json& peer : peers) measured.insert(peer.value("name", ""));
  std::vector<std::string> nodes;
  for (const auto& d : p.drafts)
    if (!d.serves && measured.count(d.spec->name)) nodes.push_back(d.spec->name);
  const auto self = std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
  std::set<std::string> out;
  for (const int i : locate::partners(static_cast<int>(nodes.size()), static_cast<int>(self)))
    out.insert(nodes[static_cast<size_t>(i)]);
  return out;
}

// "peers_in_plan": true keeps only the peers that take part: a link test needs both ends at work at the
// same time. A step that has no peer left is left out.
void keep_peers_in_plan(Planning& p, Draft& d) {
  std::vector<PlannedStep> kept;
  for (auto& s : d.accept_cluster) {
    if (s.step.params.value("peers_in_plan", false)) {
      s.step.params.erase("peers_in_plan");
      const Json declared = s.step.params.value("peers", Json::array());
      const std::set<std::string> partners = link_partners(p, d.spec->name, declared);
      Json peers = Json::array();
      for (const Json& peer : declared)
        if (partners.count(peer.value("name", ""))) peers.push_back(peer);
      if (peers.empty()) continue;
      s.step.params["peers"] = std::move(peers);
    }
    kept.push_back(std::move(s));
  }
  d.accept_cluster = std::move(kept);
}

}  // namespace

void write_acceptance(Planning& p) {
  for (auto& d : p.drafts) keep_peers_in_plan(p, d);
  if (p.drafts.size() < p.spec.nodes.size())
    p.plan.notes.push_back(
        "links are measured between the nodes of this plan only; `muster accept` measures all of them");
  std::set<int> numbers;
  for (auto& d : p.drafts) {
    for (auto& s : d.accept) s.stage = 1;
    for (const auto& s : d.accept_cluster) numbers.insert(s.stage);
  }
  write_stage(
      p, {1, "accept", "accept", "acceptance", ActionKind::check, [](const Draft& d) { return &d.accept; }});
  for (const int n : numbers)
    write_stage(p, {n, fmt::format("accept-{}", n), "accept", fmt::format("acceptance together, stage {}", n),
                    ActionKind::check, [](const Draft& d) { return &d.accept_cluster; }});
}

}  // namespace muster
