#include "controller/plan/group_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/spec/playbook.h"

namespace muster {
namespace {

// The module's defaults (agent/checks/accept_group.cc).
constexpr int64_t kLoadSeconds = 180, kPairSeconds = 60;
// Seconds between two batches of pairs, in which the controller judges the leader's result and sends the next
// order.
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

// One group step, and the nodes of this plan that have it.
class GroupStep {
 public:
  explicit GroupStep(const PlannedStep& first) : planned_(first) {}

  void add(const Draft& d) { there_[d.spec->name] = d.spec; }

  // Selects the hosts that are in the plan. The list of hosts is the same on all nodes with the step.
  void choose() {
    for (const Json& host : planned_.step().params.value("hosts", Json::array()))
      if (there_.count(name_of(host))) hosts_.push_back(host);
    for (const Json& host : hosts_) members_.insert(name_of(host));
  }

  // Changes the step to this node's role in it (lead or serve). Returns false if the node has no role.
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
