// How attempts end: NodeTurn's functions about success, failure, loss, and a node that is quarantined.
#include <fmt/format.h>

#include <iterator>

#include "base/utf8.h"
#include "controller/run/node_turn.h"

namespace muster {

using Lane = Limits::Lane;

// Clears the attempt. Lanes are held until the action is over; only the lane of the power cycle is released.
void NodeTurn::end_attempt() {
  ++s.epoch;
  add(effect::StopTimer{});
  if (s.acts()) {
    withdraw();
    withdraw_stop();
    withdraw_leave();
  }
  if (s.stage == Stage::powering) add(effect::Call::forget);
  if (a.slot.cutting) add(effect::Call::restore);
  if (a.awaiting_ram) add(effect::Call::disarm);
  if (s.acts() && s.action().kind != ActionKind::netboot) add(effect::Leave{Lane::netboot});
  a = {};
}

void NodeTurn::succeed(Json result, std::vector<effect::Draft> extra) {
  const Action& action = s.action();
  add(effect::Took{action.kind, w.now - s.latest.started});
  end_attempt();
  add(effect::Leave{Lane::netboot});
  add(effect::Leave{Limits::lane_of(action.kind)});
  if (action.phase == kCommitPhase) {
    agent.trial = false;  // as its next request for orders will report
    add(effect::Committed{});
  }
  if (s.index + 1 == s.way().size()) {
    auto rows = settled(result);
    std::move(rows.begin(), rows.end(), std::back_inserter(extra));
  }
  transition_then(after_row::Advance{}, ActionState::succeeded, {{"result", std::move(result)}},
                  std::move(extra));
}

void NodeTurn::advance_to_next() {
  const Action& action = s.action();
  add(effect::Succeeded{action.id});
  for (const auto& [other, why] : std::exchange(s.verdicts.without, {}))
    add(effect::Quarantine{NodeName(other),
                           fmt::format("{} failed on {} with this node, and succeeded without it: {}",
                                       action.title, s.name, why)});
  s.verdicts.excused.clear();
  s.verdicts.results.clear();
  s.verdicts.follow = nullptr;
  set_wait({});
  ++s.index;
  // If the last action is skipped, the node's own row must still be written.
  const bool passed = pass_needless(s, w.log);
  s.stage = s.acts() || passed ? Stage::pending : Stage::done;
  add(effect::Kick{});
}

// "" if the node can be accepted before all nodes are compared. `last`: its last result, not in the log yet.
std::string NodeTurn::reservation(const Json& last) const {
  for (size_t i = 0; w.hooks.reservation && i < s.actions.size(); ++i) {
    const Action& action = *s.actions[i];
    if (action.kind != ActionKind::check) continue;
    const Json& logged = w.log.of(action.id).result;
    const Json& result =
        i == s.index || !logged.is_object() || !logged.contains("result") ? last : logged["result"];
    if (std::string why = w.hooks.reservation(action, result); !why.empty()) return short_reason(why);
  }
  return "";
}

std::vector<effect::Draft> NodeTurn::settled(const Json& last) {
  if (s.returning) return returned();
  // The row is unchanged, except for a node that was given up because it did not respond.
  if (w.plan.kind == PlanKind::wake)
    return {effect::Change{[](NodeRow& changed) {
      if (changed.state != NodeState::quarantined) return;
      changed.state = NodeState::discovered;
      changed.reason.clear();
    }}};
  if (s.only_serves) return {};  // its state does not change
  // As happens right after the controller starts: the plan was made before the node's agent had reported.
  // What was done is lost when the system rolls back.
  const bool on_trial = agent.trial && !committed();
  const std::string doubt = on_trial ? "it runs a system on trial, which is not committed and rolls back by "
                                       "itself: run `muster up` after the rollback"
                                     : reservation(last);
  const NodeState goal = end_state(w.plan.kind);
  const NodeState state = goal == NodeState::accepted && !doubt.empty() ? NodeState::degraded : goal;
  const bool measured = measures(w.plan.kind) && !on_trial;
  const auto digest = w.plan.config_digests.find(s.name);
  std::optional<std::string> config;
  if (digest != w.plan.config_digests.end()) config = digest->second;
  publish("node", {{"state", to_string(state)}, {"reason", doubt}});
  return {effect::Change{[state, doubt, measured, run = w.run.id, config](NodeRow& changed) {
    changed.state = state;
    changed.reason = doubt;
    if (!measured) return;
    changed.accepted_run = run;
    if (config) changed.config_digest = *config;
  }}};
}

bool NodeTurn::tries_left() const {
  if (s.action().kind == ActionKind::boot_slot) return false;  // its agent must never get this order twice
  int counted = s.latest.number;
  for (const auto& [name, times] : s.verdicts.excused) counted -= times;
  return counted < s.action().max_attempts;
}

void NodeTurn::end_failed(const Error& error, Json result, const ProbeVerdict& verdict) {
  const std::string& excuse = verdict.reason;
  if (!excuse.empty()) ++s.verdicts.excused[verdict.node];
  const bool retry = may_pass(error.code) && (!excuse.empty() || tries_left());
  if (!retry && follow_up(result)) return;
  // The order was carried out; only the answer is missing.
  if (!retry && !s.returning && s.action().phase == kCommitPhase && committed())
    return succeed({{"reported", "later, by its agent"}});
  Json data = {{"code", std::string(to_string(error.code))},
               {"message", error.message},
               {"result", std::move(result)},
               {"retry", retry}};
  if (!excuse.empty()) data["excused"] = excuse, data["excused_by"] = verdict.node;
  if (!s.verdicts.without.empty()) data["without"] = s.verdicts.without;
  end_attempt();
  AfterRow next = after_row::GiveUp{error.message};
  if (retry) next = after_row::Retry{error.message};
  transition_then(std::move(next), ActionState::failed, std::move(data));
}

void NodeTurn::pause_and_retry(const std::string& reason) {
  pause(5 * kSecond,
        {"a short pause after a failure", "the next attempt", reason, "retry", w.now, w.now + 5 * kSecond},
        AfterPause::begin);
}

// The outcome cannot be determined: the action is repeated (every action that gets here is repeatable).
void NodeTurn::lose_attempt(const std::string& reason, bool with_netboot) {
  const Action& action = s.action();
  const bool retry = tries_left() && action.repeatable;
  const bool netboots = with_netboot && action.kind != ActionKind::netboot;
  const std::string why =
      retry || action.max_attempts == 1
          ? reason
          : fmt::format("{} (attempt {} of {})", reason, s.latest.number, action.max_attempts);
  end_attempt();
  AfterRow next = after_row::GiveUp{why};
  if (retry) next = after_row::Begin{netboots};
  transition_then(std::move(next), ActionState::unknown,
                  {{"message", why}, {"with_netboot", netboots}, {"retry", retry}});
}

// A node that can return to a working system does so. If that fails too, the reason states both failures.
void NodeTurn::give_up(const std::string& reason, bool for_good) {
  // One that refused to leave did nothing: what it was to do explains nothing.
  const bool titled = s.acts() && !refused_to_leave(w.log.of(s.action().id));
  std::string why = (titled ? s.action().title + ": " : "") + short_reason(reason);
  if (!for_good && may_go_back()) return go_back(why);
  // It works, whatever became of the slot that it does not run: quarantined, the next plan would install it
  // from the network while its jobs run.
  if (!for_good && s.only_serves && !s.rescue.empty()) {
    stand_down(why);
    return add(effect::Kick{});
  }
  if (s.returning) why = fmt::format("{}; and the return to the old system failed: {}", s.reason, why);
  if (tried() && !committed()) why += trial_text();
  why += left_behind();
  end_attempt();
  add(effect::Leave{Lane::netboot});
  add(effect::Leave{Lane::imaging});
  add(effect::Call::disarm);
  std::vector<effect::Draft> rows{
      row("quarantined", {{"reason", why}, {"action", s.acts() ? s.action().id : ""}}),
      effect::Change{[why](NodeRow& changed) {
        changed.state = NodeState::quarantined;
        changed.reason = why;
      }}};
  s.reason = why;
  s.left_at = w.now;
  s.latest.number = s.acts() ? w.log.of(s.action().id).attempt : 0;
  s.stage = Stage::quarantined;
  set_wait({});
  publish("node", {{"state", to_string(NodeState::quarantined)}, {"reason", why}});
  if (s.acts() && w.log.of(s.action().id).state != ActionState::succeeded)
    transition(ActionState::abandoned, {{"message", why}}, std::move(rows));
  else
    add(effect::Commit{std::move(rows)});
  add(effect::Kick{});
}

// The node leaves the run without being at fault: it never started, or the run was cancelled.
// A node that may be in a trial boot is left to its own timer, which rolls it back; no plan is made for it
// before that. Back in its old system it runs jobs, like a node that never left its system: with the state
// `installing`, the next plan would install it from the network while its jobs run.
void NodeTurn::stand_down(const std::string& given) {
  std::string reason = s.returning ? fmt::format("{}; while returning: {}", s.reason, given) : given;
  if (tried() && !committed()) reason += trial_text();
  reason += left_behind();
  const auto was = state_before();
  end_attempt();
  add(effect::Call::disarm);
  s.reason = reason;
  s.left_at = w.now;
  s.stage = Stage::not_started;
  set_wait({});
  add(effect::Commit{
      {row("not_started", {{"reason", reason}}), effect::Change{[reason, was](NodeRow& changed) {
         changed.reason = reason;
         if (was && changed.state == NodeState::installing) changed.state = *was;
       }}}});
  publish("node", {{"state", "not_started"}, {"reason", reason}});
}

}  // namespace muster
