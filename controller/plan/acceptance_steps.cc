#include "controller/plan/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/locate/pairing.h"
#include "controller/spec/playbook.h"

namespace muster {
namespace {

// Chooses the partners with which a node's links are measured: with many nodes only log2 N + 2 partners per
// node, which are enough to isolate a faulty one (controller/locate/).
class LinkPartners {
 public:
  explicit LinkPartners(const Planning& p) : p_(p) {}

  // Ascending indexes into the set.
  std::vector<int> of(const NodeSpec& node, const NodeSet& set) {
    auto& measured = measured_[&set];
    if (measured.empty())
      measured = measured_of([&](const std::string& name) { return set.place_of(NodeName(name)) >= 0; });
    std::vector<int> out;
    for (const auto& partner : partners(node.name, measured)) out.push_back(set.place_of(NodeName(partner)));
    std::sort(out.begin(), out.end());
    return out;
  }
  // `peers` have a member "name".
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

  // In the order of the plan.
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

namespace {

// The module's defaults (agent/checks/accept_group.cc).
constexpr int64_t kLoadSeconds = 180, kPairSeconds = 60;
// Seconds between two batches of pairs, in which the controller judges the result and sends the next order.
constexpr int64_t kBetweenRounds = 10, kPairsAtOnce = 16;
constexpr int64_t kSpareSeconds = 120;

int64_t number_or(const Json& params, const char* key, int64_t fallback) {
  const auto at = params.find(key);
  return at != params.end() && at->is_number_integer() ? at->get<int64_t>() : fallback;
}

// Returns how long the servers must run: for the load, then for at most log2 N + 2 rounds of N / 2 pairs
// (controller/locate/search.h). This is not enough if every batch uses its whole deadline: the servers then
// end early, and the remaining pairs have no result.
int64_t serving_seconds(const Json& params, size_t hosts) {
  int64_t rounds = 2;
  while ((size_t{1} << (rounds - 2)) < hosts) ++rounds;
  const int64_t batches = static_cast<int64_t>(hosts) / 2 / kPairsAtOnce + 1;
  return number_or(params, "deadline_seconds", kLoadSeconds) + kSpareSeconds +
         rounds * (number_or(params, "pair_deadline_seconds", kPairSeconds) + batches * kBetweenRounds);
}

std::string name_of(const Json& host) {
  const auto name = host.is_object() ? host.find("name") : host.end();
  return host.is_object() && name != host.end() && name->is_string() ? name->get<std::string>() : "";
}

class GroupStep {
 public:
  explicit GroupStep(const PlannedStep& first) : planned_(first) {}

  void add(const Draft& d) { there_[d.spec->name] = d.spec; }

  // The list of hosts is the same on all nodes with the step.
  void choose() {
    for (const Json& host : planned_.step().params.value("hosts", Json::array()))
      if (there_.count(name_of(host))) hosts_.push_back(host);
    for (const Json& host : hosts_) members_.insert(name_of(host));
  }

  // False if the node has no role (lead or serve) in it.
  bool assign(const NodeSpec& node, PlannedStep& mine) const {
    if (hosts_.size() < 2 || !members_.count(node.name)) return false;
    const bool leads = name_of(hosts_.front()) == node.name;
    wire::Step step = planned_.step();
    step.params = leads ? leading(node) : serving(node);
    if (!leads) {
      step.id += " serves";
      step.module = kServes;
      step.expect = nullptr;
      step.verify = nullptr;
      step.mandatory = false;
    }
    mine.on = leads ? "leader" : "all";
    mine.change(std::move(step));
    return true;
  }

 private:
  Json leading(const NodeSpec& node) const {
    Json params = planned_.step().params;
    params["hosts"] = hosts_;
    params["address"] = node.address;
    return params;
  }

  Json serving(const NodeSpec& node) const {
    const Json& from = planned_.step().params;
    Json leader = hosts_.front();
    Json params = {{"peers", {{{"name", leader["name"]}, {"address", leader.value("address", "")}}}},
                   {"peers_live", true},
                   {"address", node.address},
                   {"deadline_seconds", serving_seconds(from, hosts_.size())}};
    for (const char* key : {"load", "port", "libs"})
      if (const auto at = from.find(key); at != from.end()) params[key] = *at;
    return params;
  }

  static constexpr const char* kServes = "accept_group_serve";
  const PlannedStep planned_;
  std::map<std::string, const NodeSpec*> there_ = {};
  Json hosts_ = Json::array();
  std::set<std::string> members_ = {};
};

}  // namespace

void assign_groups(Planning& p) {
  std::map<std::string, GroupStep> groups;  // by id
  for (const auto& d : p.drafts)
    for (const auto& s : d.accept_cluster)
      if (!d.serves && s.step().module == kGroupModule)
        groups.try_emplace(s.step().id, s).first->second.add(d);
  for (auto& [id, group] : groups) group.choose();
  for (auto& d : p.drafts)
    std::erase_if(d.accept_cluster, [&](PlannedStep& s) {
      if (s.step().module != kGroupModule) return false;
      const auto group = groups.find(s.step().id);
      return group == groups.end() || !group->second.assign(*d.spec, s);
    });
}

}  // namespace muster
