#include "controller/plan/acceptance_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "controller/locate/pairing.h"
#include "controller/plan/group_steps.h"
#include "controller/plan/order_programs.h"
#include "controller/plan/stages.h"

namespace muster {
namespace {

// Chooses the partners with which a node's links are measured: with many nodes only log2 N + 2 partners per
// node, which are enough to isolate a faulty one (controller/locate/).
class LinkPartners {
 public:
  explicit LinkPartners(const Planning& p) : p_(p) {}

  // Returns the node's partners in this set, as ascending indexes into the set.
  std::vector<int> of(const NodeSpec& node, const NodeSet& set) {
    auto& measured = measured_[&set];
    if (measured.empty())
      measured = measured_of([&](const std::string& name) { return set.place_of(NodeName(name)) >= 0; });
    std::vector<int> out;
    for (const auto& partner : partners(node.name, measured)) out.push_back(set.place_of(NodeName(partner)));
    std::sort(out.begin(), out.end());
    return out;
  }
  // Returns the node's partners among these peers, which have a member "name".
  Json of(const NodeSpec& node, const Json& peers) {
    std::set<std::string> names = {node.name};
    for (const Json& peer : peers) names.insert(peer.value("name", ""));
    const auto chosen =
        partners(node.name, measured_of([&](const std::string& name) { return names.count(name) > 0; }));
    Json out = Json::array();
    for (const Json& peer : peers)
      if (std::count(chosen.begin(), chosen.end(), peer.value("name", ""))) out.push_back(peer);
    return out;
  }

 private:
  using Names = std::vector<std::string>;

  // Returns the names of the measured nodes that satisfy `is_one`, in the order of the plan.
  Names measured_of(const std::function<bool(const std::string&)>& is_one) const {
    Names out;
    for (const auto& d : p_.drafts)
      if (!d.serves && is_one(d.spec->name)) out.push_back(d.spec->name);
    return out;
  }
  static Names partners(const NodeName& node, const Names& measured) {
    const auto self = std::find(measured.begin(), measured.end(), node) - measured.begin();
    Names out;
    for (const int i : locate::partners(static_cast<int>(measured.size()), static_cast<int>(self)))
      out.push_back(measured[static_cast<size_t>(i)]);
    return out;
  }

  const Planning& p_;
  std::map<const NodeSet*, Names> measured_;
};

// "peers_in_plan": true keeps only the peers in the plan, because both ends of a link test must run at the
// same time. A step without any remaining peer is left out.
class PeersInPlan {
 public:
  explicit PeersInPlan(const Planning& p) : partners_(p) {}

  void keep(Draft& d) {
    std::erase_if(d.accept_cluster, [&](PlannedStep& s) {
      return s.step().params.value("peers_in_plan", false) && !keep(*d.spec, s);
    });
  }

 private:
  // Returns false if the step has no peers left.
  bool keep(const NodeSpec& node, PlannedStep& s) {
    if (s.peers_of) {
      const auto places = partners_.of(node, *s.peers_of);
      s.peers = s.peers_of->text_of(places);
      s.rendered = without_the_word(s.rendered);
      return !places.empty();
    }
    wire::Step step = s.step();
    step.params.erase("peers_in_plan");
    step.params["peers"] = partners_.of(node, step.params.value("peers", Json::array()));
    const bool any = !step.params["peers"].empty();
    s.change(std::move(step));
    return any;
  }
  RenderedStepPtr without_the_word(const RenderedStepPtr& with) {
    RenderedStepPtr& known = without_[with];
    if (known) return known;
    wire::Step step = with->step;
    step.params.erase("peers_in_plan");
    return known = std::make_shared<const RenderedStep>(std::move(step), with->peers);
  }

  LinkPartners partners_;
  std::map<RenderedStepPtr, RenderedStepPtr> without_;
};

// The agent replaces `{folder}` in options. On a node that muster imaged it is always /run, but an agent of
// an earlier version, which does not support `{folder}`, may run there: so the controller inserts /run.
class FolderOfImages {
 public:
  void fill(Draft& d) {
    if (d.spec->adopt.declared()) return;
    for (auto* steps : {&d.accept, &d.accept_cluster})
      for (auto& s : *steps) s.rendered = filled(s.rendered);
  }

 private:
  RenderedStepPtr filled(const RenderedStepPtr& with) {
    RenderedStepPtr& known = filled_[with];
    if (known) return known;
    wire::Step step = with->step;
    bool any = false;
    if (step.params.contains("options") && step.params["options"].is_object())
      for (auto& [name, value] : step.params["options"].items()) any = fill(value) || any;
    return known = any ? std::make_shared<const RenderedStep>(std::move(step), with->peers) : with;
  }
  static bool fill(Json& value) {
    static const std::string kWord = "{folder}";
    if (!value.is_string()) return false;
    std::string text = value.get<std::string>();
    const size_t at = text.find(kWord);
    if (at == std::string::npos) return false;
    value = text.replace(at, kWord.size(), "/run");
    return true;
  }

  std::map<RenderedStepPtr, RenderedStepPtr> filled_;
};

}  // namespace

void write_acceptance(Planning& p) {
  PeersInPlan peers(p);
  for (auto& d : p.drafts) peers.keep(d);
  assign_groups(p);
  FolderOfImages folder;
  for (auto& d : p.drafts) folder.fill(d);
  find_started_programs(p);
  if (p.drafts.size() < p.spec.nodes.size())
    p.plan.notes.push_back(
        "links are measured only between the nodes of this plan; run `muster accept` to measure all links");
  std::set<int> numbers;
  for (auto& d : p.drafts) {
    for (auto& s : d.accept) s.stage = 1;
    for (const auto& s : d.accept_cluster) numbers.insert(s.stage);
  }
  write_stage(
      p, {1, "accept", "accept", "acceptance", ActionKind::check, [](const Draft& d) { return &d.accept; }});
  for (const int n : numbers)
    write_stage(p, {n, fmt::format("accept-{}", n), "accept", fmt::format("joint acceptance, stage {}", n),
                    ActionKind::check, [](const Draft& d) { return &d.accept_cluster; }});
}

}  // namespace muster
