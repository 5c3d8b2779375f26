// In-place re-imaging: NodeTurn's functions for the boot from the other root slot, for the return to the
// default slot, and for determining which of the two systems a node runs. slot_state.cc decides waiting
// times.
// Trial boot: the node booted from the other slot, which is not committed yet. Such a node can roll back by
// itself at any time (its trial timer, a panic, a power cut). Each of its messages is checked for that, so
// that the plan's remaining actions are never carried out in the old system.
#include <fmt/format.h>

#include <algorithm>

#include "base/json_at.h"
#include "controller/run/node_turn.h"

namespace muster {

namespace {

const Action* of_kind(const std::vector<const Action*>& actions, ActionKind kind) {
  const auto found =
      std::find_if(actions.begin(), actions.end(), [kind](const Action* a) { return a->kind == kind; });
  return found == actions.end() ? nullptr : *found;
}

// The hello names the system. If it does not, the slot is reported with the next request for orders.
bool reports_system(const Hello& hello) { return hello.mode == wire::Mode::ram || !hello.slot.empty(); }

std::string system_of(const Hello& hello) {
  if (hello.mode == wire::Mode::ram) return "the RAM system";
  if (hello.slot.empty()) return "a system that is in neither slot";
  return fmt::format("slot {} with image {}", hello.slot,
                     hello.image_digest.empty() ? "unknown" : hello.image_digest);
}

}  // namespace

bool undisturbed(const NodeRun& node, const StepLog& log) {
  return std::none_of(node.actions.begin(), node.actions.end(), [&](const Action* action) {
    return action->kind != ActionKind::write_slot && log.of(action->id).attempt > 0;
  });
}

bool kept_by_jobs(const std::vector<const Action*>& actions, const StepLog& log) {
  bool paused = false;
  for (const Action* action : actions) {
    const ActionRecord& record = log.of(action->id);
    if (action->when_failed || record.attempt == 0) continue;
    paused = paused || action->phase == kPausePhase;
    if (action->phase != kPausePhase && action->kind != ActionKind::write_slot && !refused_to_leave(record))
      return false;
  }
  return paused;
}

bool pass_needless(NodeRun& node, const StepLog& log) {
  bool passed = false;
  while (node.returning && node.acts() && node.action().phase == kResumePhase && undisturbed(node, log))
    ++node.index, passed = true;
  return passed;
}

const Action* NodeTurn::trial() const { return of_kind(s.actions, ActionKind::boot_slot); }

// True if it may run the other slot: the order was given, and its return is not confirmed.
bool NodeTurn::tried() const {
  const Action* boot = trial();
  if (!boot || w.log.of(boot->id).attempt == 0) return false;
  const Action* back = of_kind(s.rescue, ActionKind::return_slot);
  return !back || w.log.of(back->id).state != ActionState::succeeded;
}

bool NodeTurn::committed() const {
  const bool succeeded = std::any_of(s.actions.begin(), s.actions.end(), [this](const Action* action) {
    return action->phase == kCommitPhase && w.log.of(action->id).state == ActionState::succeeded;
  });
  return succeeded || stands_in_new();
}

bool NodeTurn::commit_ordered() const {
  return std::any_of(s.actions.begin(), s.actions.end(), [this](const Action* action) {
    return action->phase == kCommitPhase && w.log.of(action->id).attempt > 0;
  });
}

// True if its commit was ordered and its agent reports a system that is no longer on trial. That is certain
// even if the answer to the order was lost. An agent that did not report the trial when it began is of an
// older version, which never does.
bool NodeTurn::stands_in_new() const {
  const Action* boot = trial();
  if (!boot || !commit_ordered() || !agent.greeted || agent.trial) return false;
  const ActionRecord& record = w.log.of(boot->id);
  const Json result = record.result.is_object() ? record.result.value("result", Json()) : Json();
  const bool reports = result.is_object() && result.contains("trial") && result["trial"] == true;
  return reports && agent.mode == wire::Mode::installed &&
         agent.slot == text_at(boot->params.own(), "slot") &&
         w.others.row_of(s.name).image_digest == text_at(boot->params.own(), "digest");
}

// True for the first attempt at anything more than writing a slot while the node runs jobs. Until then its
// row keeps its state, which is also the right one if the run ends at that point.
bool NodeTurn::leaves_its_state() const {
  return !s.returning && s.action().kind != ActionKind::write_slot && undisturbed(s, w.log);
}

std::string NodeTurn::trial_text() const {
  const Json& params = trial()->params.own();
  return fmt::format("; it may run slot {} on trial: {} the node rolls back by itself within {}",
                     text_at(params, "slot"),
                     commit_ordered() ? "it is unknown whether the slot was committed; if not,"
                                      : "the slot is not committed, and",
                     to_human(static_cast<DurationMs>(number_of(params, "trial"))));
}

// True if it was drained, or may have been, and was not resumed.
std::string NodeTurn::left_behind() const {
  const auto any = [this](const std::vector<const Action*>& actions, const char* phase, auto holds) {
    return std::any_of(actions.begin(), actions.end(), [&](const Action* action) {
      return action->phase == phase && holds(w.log.of(action->id));
    });
  };
  const auto begun = [](const ActionRecord& record) { return record.attempt > 0; };
  const auto done = [](const ActionRecord& record) { return record.state == ActionState::succeeded; };
  if (!any(s.actions, kPausePhase, begun) || any(s.actions, kResumePhase, done) ||
      any(s.rescue, kResumePhase, done))
    return "";
  return "; the node was not returned to service in the scheduler and storage: run `muster up` to resume it; "
         "if the node does not come back, see \"Left behind\" in docs/reimage.md";
}

// Returns true if the attempt was failed because the system that it was meant for no longer runs: the trial
// boot rolled back by itself, or, on the way back, the old system was restarted into the other slot again.
bool NodeTurn::trial_over() {
  const Action* boot = s.returning ? of_kind(s.rescue, ActionKind::return_slot) : trial();
  if (!boot || !agent.greeted || !agent.mode || (!s.returning && committed())) return false;
  const ActionRecord& record = w.log.of(boot->id);
  if (record.state != ActionState::succeeded) return false;
  const Json result = record.result.is_object() ? record.result.value("result", Json()) : Json();
  const bool same = agent.boot_id == text_at(result, "boot_id");
  const std::string slot = text_at(boot->params.own(), "slot");
  const bool ram = *agent.mode == wire::Mode::ram, has_slot = ram || !agent.slot.empty();
  if (!ram && (same || agent.slot == slot)) return false;
  if (!has_slot) return false;  // restarted; the slot is reported with its next request for orders
  const Hello found{s.name, *agent.mode, agent.boot_id, Digest(w.others.row_of(s.name).image_digest),
                    agent.slot};
  const std::string panic = w.hooks.panic ? w.hooks.panic(s.name, s.latest.started) : "";
  const std::string what =
      s.returning
          ? fmt::format("it runs {} again", system_of(found))
          : fmt::format("it rolled back by itself to {}: the trial of slot {} ended", system_of(found), slot);
  fail_attempt(fail(Code::conflict, what + (panic.empty() ? "" : "; its console: " + panic)), Json());
  return true;
}

// An agent with a different boot id than before the order decides the attempt, except while its power is
// being cut: the system that still responds is about to go down.
bool NodeTurn::answer_counts() const { return (a.slot.sent || a.slot.cycled) && !a.slot.cutting; }

void NodeTurn::hello_from_slot(const Hello& hello) {
  if (!answer_counts() || hello.boot_id == s.latest.boot_before) return consider();
  if (reports_system(hello)) return came_back(hello);
  // Its slot comes with its next request for orders. It did restart, so it must not get the order again.
  if (!std::exchange(a.departed, true)) a.slot.left = w.now;
  withdraw();
  consider();
}

void NodeTurn::came_back(const Hello& hello) {
  const Action& action = s.action();
  if (action.kind == ActionKind::return_slot && committed()) return stay_committed();
  const std::string slot = text_at(action.params.own(), "slot");
  const bool tries = action.kind == ActionKind::boot_slot;
  const bool skipped = tries && hello.loader_skipped && !a.slot.cycled;
  if (hello.mode == wire::Mode::installed && hello.slot == slot && !skipped &&
      hello.image_digest == text_at(action.params.own(), "digest"))
    return succeed({{"boot_id", hello.boot_id}, {"slot", slot}, {"trial", hello.trial}});
  std::string why = "it came back in " + system_of(hello);
  if (a.slot.cycled) why = "it hung: its power was cycled, and it is back in " + system_of(hello);
  if (!a.slot.cycled && a.power.stayed_off > 0) why += ", after it lost power";
  if (skipped)
    why += fmt::format(
        " without its boot loader (kexec, a soft reboot, or another disk's loader): slot {} was not tried",
        slot);
  else
    why +=
        tries ? fmt::format(": the trial of slot {} ended", slot) : fmt::format(" instead of slot {}", slot);
  if (const std::string panic = w.hooks.panic ? w.hooks.panic(s.name, s.latest.started) : ""; !panic.empty())
    why += "; its console: " + panic;
  fail_attempt(fail(tries ? Code::conflict : Code::failed, why), Json());
}

// Checked before anything is done about a silent or a wrong system, because its hello may have arrived during
// a power call, or in an earlier attempt. Returns true if the attempt is over.
bool NodeTurn::slot_reached() {
  if (s.action().kind == ActionKind::return_slot && committed()) {
    stay_committed();
    return true;
  }
  const bool reachable = agent.contact && w.now - agent.contact < w.timing.silent_after;
  if (!reachable || !agent.greeted || !agent.mode || a.slot.cutting) return false;
  const Action& action = s.action();
  const Hello known{
      s.name,     *agent.mode, agent.boot_id,       Digest(w.others.row_of(s.name).image_digest),
      agent.slot, agent.trial, agent.loader_skipped};
  if (answer_counts() && agent.boot_id != s.latest.boot_before && agent.spoke > a.power.answered &&
      reports_system(known)) {
    came_back(known);
    return true;
  }
  if (action.kind != ActionKind::return_slot || a.departed || a.slot.cycled) return false;
  const bool there = known.mode == wire::Mode::installed &&
                     known.slot == text_at(action.params.own(), "slot") &&
                     known.image_digest == text_at(action.params.own(), "digest");
  // The boot was given up in the middle of a restart: the system that still responds may be about to go down.
  const Action* boot = trial();
  const ActionRecord record = boot ? w.log.of(boot->id) : ActionRecord{};
  const bool open = record.attempt > 0 && record.state == ActionState::abandoned &&
                    !(record.result.is_object() && record.result.contains("code"));
  if (!there || (open && agent.spoke < s.latest.started + w.timing.leave_shows)) return false;
  succeed({{"boot_id", agent.boot_id}, {"slot", known.slot}, {"restarted", false}});
  return true;
}

void NodeTurn::describe_slot(Situation& now) const {
  now.cycled = a.slot.cycled;
  now.left = a.slot.left;
  now.may_cut = a.slot.sent;
  const Action* boot = trial();
  if (now.kind != ActionKind::return_slot) return;
  const ActionRecord record = boot ? w.log.of(boot->id) : ActionRecord{};
  const bool back = agent.slot == text_at(s.action().params.own(), "slot") &&
                    agent.boot_id != text_at(record.intent_data, "boot_before");
  now.may_cut = record.attempt > 0 && !back;
  now.may_stand = commit_ordered();
  // A silent node may be at work in the right system; if it responds, its slot may be reported after events.
  const bool reachable = agent.contact && w.now - agent.contact < w.timing.silent_after;
  const bool no_slot = agent.slot.empty() && w.now < s.latest.started + w.timing.leave_shows;
  const bool right = agent.slot == text_at(s.action().params.own(), "slot");
  now.in_doubt = !reachable || (agent.mode != wire::Mode::ram && (no_slot || right));
}

void NodeTurn::on_slot_finished(bool good, const Error& error, Json result) {
  const bool back = s.action().kind == ActionKind::return_slot;
  if (!good) {
    if (!back || !is_remote(s.control.by) || a.slot.cycled || !situation().may_cut)
      return fail_attempt(error, std::move(result));
    return cut_power("the node did not restart as ordered: " + error.message);
  }
  if (back)
    withdraw();
  else if (std::exchange(a.offered, false))
    add(effect::LetGo{own_order()});  // its agent would cancel the restart of a withdrawn order
  a.departed = true;
  a.slot.left = w.now;
  consider();
}

void NodeTurn::cut_power(const std::string& why) {
  withdraw();
  ++s.epoch;
  a.slot.cycled = a.slot.cutting = true;
  a.deadline = w.now + w.plan.limits.netboot;
  s.stage = Stage::powering;
  add(effect::StopTimer{});
  publish("power", {{"action", "power cycle into the default slot: " + why}});
  set_wait({"power cycle into the default slot", switched_by() + "'s answer", why,
            "muster waits for the agent", w.now, w.now + w.timing.power_call});
  add(effect::Call::switch_off);
}

void NodeTurn::on_cut(const Status& off) {
  if (off.ok()) {
    const SteadyMs at = w.limits.next_power_on(w.now);
    add(effect::ReservePowerOn{});
    a.deadline += at - w.now;
    return pause(at - w.now,
                 {"power on", switched_by() + "'s answer", "it is off", "the power state is read", w.now,
                  at + w.timing.power_call},
                 AfterPause::power_on);
  }
  const Error& error = off.error();
  a.power.error = error.message;
  const bool may_be_off = error.code == Code::timeout;
  if ((!may_be_off && error.code != Code::unavailable) || w.now >= a.deadline) {
    a.slot.cutting = may_be_off;
    return fail_attempt(fail(Code::conflict, "power: " + error.message), Json());
  }
  pause(w.timing.look_again,
        {"power cycle into the default slot", switched_by() + "'s answer", error.message,
         "the call is repeated", w.now, w.now + w.timing.look_again},
        AfterPause::cut);
}

// False after the commit, when a restart would start the new system again. Also false for a node that goes
// through the RAM system, except until it leaves: while its jobs are waited for, or until its agent has
// confirmed that it may leave. A node that only serves and has a way back is
// one of the next batch, whose slot is written while it works.
bool NodeTurn::may_go_back() const {
  if (s.returning || s.rescue.empty() || committed()) return false;
  if (trial() || s.only_serves) return true;
  if (!s.acts()) return false;
  return s.action().phase == kPausePhase || refused_to_leave(w.log.of(s.action().id)) ||
         (s.left_boot.empty() && has_preconditions());
}

// From now on it no longer takes part in the run: other nodes do not wait for it or use it.
void NodeTurn::go_back(const std::string& why) {
  const std::string failed = s.acts() ? s.action().id : "";
  const bool open = s.acts() && w.log.of(failed).state != ActionState::succeeded;
  end_attempt();
  add(effect::Leave{Limits::Lane::netboot});
  add(effect::Leave{Limits::Lane::imaging});
  add(effect::Call::disarm);
  publish("node", {{"state", "returning"}, {"reason", why}});
  std::vector<effect::Draft> rows{row("returning", {{"reason", why}, {"action", failed}}),
                                  effect::Change{[why](NodeRow& changed) { changed.reason = why; }}};
  s.latest.number = s.acts() ? w.log.of(failed).attempt : 0;
  if (open)
    transition_then(after_row::TurnBack{}, ActionState::abandoned, {{"message", why}}, std::move(rows));
  else
    await_store(after_row::TurnBack{}), add(effect::Commit{std::move(rows), true});
  s.reason = why;
  s.failed_action = failed;
  s.left_at = w.now;
  s.returning = true;
  s.given_back = kept_by_jobs(s.actions, w.log);
  s.index = 0;
  s.latest.number = 0;
  add(effect::Kick{});
}

void NodeTurn::turn_back() {
  pass_needless(s, w.log);
  s.verdicts.excused.clear();
  s.verdicts.results.clear();
  s.verdicts.without.clear();
  s.verdicts.follow = nullptr;
  set_wait({});
  s.stage = Stage::pending;
  add(effect::Kick{});
}

// It turns out on the way back that the commit was carried out: a restart would start the new slot again.
void NodeTurn::stay_committed() {
  stand_down(fmt::format(
      "slot {} is committed, but the confirmation of the commit came too late: run `muster up` to continue",
      text_at(trial()->params.own(), "slot")));
  add(effect::Kick{});
}

// Its state before the run, from the params of one of the return's actions.
std::string NodeTurn::state_to_restore() const {
  for (const Action* action : s.rescue)
    if (std::string state = text_at(action->params.own(), "state"); !state.empty()) return state;
  return "";
}

// Returns its state before the run if it runs the same system, or returns to it by itself; none: it runs a
// different one. A node that was not resumed, or was restarted, is degraded, so that the next plan configures
// it in its current system. So is a node whose new system was accepted and committed.
std::optional<NodeState> NodeTurn::state_before() const {
  const auto was = node_state_from_string(state_to_restore());
  if (!was.ok()) return {};
  if (committed()) return NodeState::degraded;
  const Action* back = of_kind(s.rescue, ActionKind::return_slot);
  const bool is_back = back && w.log.of(back->id).state == ActionState::succeeded;
  const bool in_place = is_back || tried();
  bool disturbed = false;
  for (const Action* action : s.actions) {
    if (w.log.of(action->id).attempt == 0) break;
    const bool pauses = action->phase == kPausePhase, writes = action->kind == ActionKind::write_slot;
    // Through the RAM system, and it has left.
    if (!pauses && !writes && !in_place && !refused_to_leave(w.log.of(action->id))) return {};
    disturbed = disturbed || !writes;
  }
  return disturbed && *was == NodeState::accepted ? NodeState::degraded : *was;
}

// The node's own row after its return. Run and configuration of its last acceptance are kept.
std::vector<effect::Draft> NodeTurn::returned() {
  // Accepted and quarantined nodes return to that state; a node in any other state becomes degraded.
  const auto was = node_state_from_string(state_to_restore());
  const bool known = was.ok() && (*was == NodeState::accepted || *was == NodeState::quarantined);
  const NodeState state = known ? *was : NodeState::degraded;
  const Action* back = of_kind(s.rescue, ActionKind::return_slot);
  const bool left = back && !refused_to_leave(w.log.of(s.failed_action));
  const std::string why =
      left ? fmt::format("returned to slot {}: {}", text_at(back->params.own(), "slot"), s.reason)
           : fmt::format("not re-imaged: {}", s.reason);
  publish("node", {{"state", "returned"}, {"reason", why}});
  s.reason = why;
  return {row("returned", {{"reason", why}, {"action", s.failed_action}}),
          effect::Change{[state, why](NodeRow& changed) {
            changed.state = state;
            changed.reason = why;
          }}};
}

}  // namespace muster
