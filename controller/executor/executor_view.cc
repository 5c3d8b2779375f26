// The executor's read-only functions: for the turns of nodes, and for operators.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "controller/executor/executor.h"

namespace muster {

using Stage = NodeRun::Stage;

KnownAgent Executor::agent_of(const NodeName& node) const { return book_.agent(node); }

bool Executor::gone(const NodeName& name) const {
  if (const auto absent = absent_.find(name); absent != absent_.end()) {
    const KnownAgent* agent = book_.find(name);
    if (!agent || agent->contact <= absent->second) return true;
  }
  if (const Node* node = find(name))
    return node->run.stage == Stage::quarantined || node->run.stage == Stage::not_started ||
           node->run.returning;
  if (on_trial(name)) return true;
  const auto row = book_.rows().find(name);
  return row != book_.rows().end() && row->second.state != NodeState::accepted &&
         row->second.state != NodeState::degraded;
}

bool Executor::gone_since(const NodeName& name, SteadyMs time) const {
  if (!gone(name)) return false;
  const auto absent = absent_.find(name);
  const Node* node = find(name);
  return std::max(absent == absent_.end() ? SteadyMs{} : absent->second,
                  node ? node->run.left_at : SteadyMs{}) >= time;
}

std::string Executor::kept_wrong(size_t turn) const {
  Tally tally;
  std::set<size_t> heeded;
  for (const Node* node : order_) {
    const Standing now = standing_of(node->run);
    tally.move({}, now);
    if (now.heeded) heeded.insert(node->at);
  }
  if (!(tally == tally_)) return "the run's counters do not match the states of its nodes";
  if (heeded != heeded_) return "the set of nodes whose agents should report is wrong";
  if (!active() || !kicked_ || ending_ || look_posted_ || order_.empty()) return "";
  const Node& node = *order_[turn % order_.size()];
  if (node.run.stage != Stage::pending) return "";
  if (ready_.has(node.at)) return node.run.name + " is ready, but no pass over the nodes is scheduled";
  const bool waits = node.run.acts() &&
                     gate_.waits(node.run.action(), [this](const NodeName& name) { return state_of(name); });
  // Freed capacity is passed on only when the row that records the release is durable.
  if (waits || ready_.waits_for_place(node.at)) return "";
  return node.run.name + " could begin, but is not considered";
}

// True if at least two agents should report and none does: it is more likely that the controller is cut off
// than that they all failed at once. Expected to report: nodes at work, nodes whose failure is being judged,
// and the other nodes of that failure.
SteadyMs Executor::alone_since() const {
  const SteadyMs last = book_.last_message();
  if (reactor_.steady() - last < timing_.silent_after) return {};
  std::set<std::string> expected;
  const auto expect = [&](const NodeName& name) {
    const Node* node = find(name);
    if (!gone(name) && !(node && (node->run.attempt.awaiting_ram || node->run.attempt.departed)))
      expected.insert(name);
  };
  for (const size_t at : heeded_) {
    const NodeRun& run = order_[at]->run;
    expect(run.name);
    if (run.attempt.weighing)
      for (const auto& other : run.attempt.weighing->probe.others) expect(other.name);
    if (expected.size() >= 2) return last;
  }
  return {};
}

bool Executor::never_seen(const NodeName& name) const { return !find(name) && book_.never_seen(name); }

bool Executor::known(const NodeName& name) const {
  return find(name) || book_.find(name) || book_.rows().count(name);
}

bool Executor::expects(const NodeName& name, const OrderId& order) const {
  const Node* node = active() ? find(name) : nullptr;
  return node && muster::expects(node->run, run_, order);
}

Json Executor::shown(const Node& node) const {
  Json out = node_progress(node.run, ahead());
  const std::string trouble = journal_.trouble(node.run.name);
  if (node.run.stage == Stage::committing && out.contains("wait")) out["wait"]["observed"] = trouble;
  // Shows the state of the action that the node waits for.
  if (const std::string* action = ready_.awaited(node.at); action && out.contains("wait"))
    out["wait"]["observed"] = fmt::format("{}: {}", *action, to_string(log_.of(*action).state));
  // It has left the run or succeeded, but that is not stored yet, and the end of the run waits for it.
  if (node.run.over() && !trouble.empty())
    out["wait"] = to_json(
        {"the result cannot be recorded", "the store", trouble, "retry every second", {}, {}}, ahead());
  return out;
}

Json Executor::progress() const {
  Json out = {{"run", run_.id},
              {"kind", run_.id ? to_string(plan_->kind) : ""},
              {"state", run_.id ? to_string(run_.state) : "none"},
              {"started", run_.started},
              {"ended", run_.ended},
              {"plan", run_.plan_digest},
              {"nodes", Json::array()}};
  for (const Node* node : order_) out["nodes"].push_back(shown(*node));
  return out;
}

std::vector<AtWork> Executor::at_work() const {
  std::vector<AtWork> out;
  if (!active()) return out;
  std::map<ActionKind, std::optional<DurationMs>> usual;  // a median takes a copy of all times
  for (const Node* node : order_) {
    const NodeRun& run = node->run;
    const Standing now = standing_of(run);
    if (now.over || now.pending || !run.acts()) continue;
    const ActionKind kind = run.action().kind;
    const auto [known, fresh] = usual.try_emplace(kind);
    if (fresh) known->second = took_.median(kind);
    out.push_back({run.name, kind, reactor_.steady() - run.latest.started, known->second, now.by_hand});
  }
  return out;
}

Json Executor::why(const NodeName& name) const {
  const NodeRow row = node_row(name);
  Json out = {{"node", name}, {"state", to_string(row.state)}, {"reason", row.reason}};
  const TimeMs silent = silent_since(name);
  if (silent > 0) out["silent_since"] = silent;
  if (row.state == NodeState::quarantined)
    out.update({{"held_by", to_string(row.held_by)},
                {"held_caller", row.held_caller},
                {"held_since", row.held_since}});
  const Node* node = run_.id ? find(name) : nullptr;
  if (!node) return out;
  const NodeRun& run = node->run;
  out.update(shown(*node));
  out["run"] = run_.id;
  out["run_state"] = out["state"];
  if (run.reason.empty()) out["reason"] = run.shown.wait.reason.empty() ? row.reason : run.shown.wait.reason;
  if (run.acts())
    if (const auto others = took_.median(run.action().kind)) out["others_took_ms"] = *others;
  return out;
}

}  // namespace muster
