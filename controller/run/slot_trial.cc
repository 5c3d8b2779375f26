// In-place re-imaging: NodeTurn's functions about the boot from the other root slot, about the way back to
// the slot that stands, and about which of the two systems a node runs. Patience is slot_state.cc's.
//
// On trial: the boot from the other slot happened, and nothing has committed it. Such a node goes back by
// itself (its trial timer, a panic, a power cut); every word from it is looked at for that, so that nothing
// of the plan is ever done to the system that stands.
#include <fmt/format.h>

#include <algorithm>

#include "controller/run/node_turn.h"

namespace muster {

namespace {

constexpr const char* kCommitPhase = "commit";
constexpr const char* kPausePhase = "pause";

const Action* of_kind(const std::vector<const Action*>& actions, ActionKind kind) {
  const auto found =
      std::find_if(actions.begin(), actions.end(), [kind](const Action* a) { return a->kind == kind; });
  return found == actions.end() ? nullptr : *found;
}

// A hello tells enough to decide by.
bool tells_system(const Hello& hello) { return hello.mode == wire::Mode::ram || !hello.slot.empty(); }

std::string system_of(const Hello& hello) {
  if (hello.mode == wire::Mode::ram) return "the RAM system";
  if (hello.slot.empty()) return "a system that is in neither slot";
  return fmt::format("slot {} with image {}", hello.slot,
                     hello.image_digest.empty() ? "unknown" : hello.image_digest);
}

}  // namespace

// ---- which system it runs ----

const Action* NodeTurn::trial() const { return of_kind(s.actions, ActionKind::boot_slot); }

// It may run the other slot: the order was given, and it is not known to be back.
bool NodeTurn::tried() const {
  const Action* boot = trial();
  if (!boot || w.log.of(boot->id).attempt == 0) return false;
  const Action* back = of_kind(s.rescue, ActionKind::return_slot);
  return !back || w.log.of(back->id).state != ActionState::succeeded;
}

bool NodeTurn::committed() const {
  return std::any_of(s.actions.begin(), s.actions.end(), [this](const Action* action) {
    return action->phase == kCommitPhase && w.log.of(action->id).state == ActionState::succeeded;
  });
}

std::string NodeTurn::trial_text() const {
  const Json& params = trial()->params.own();
  return fmt::format("; it may run slot {} on trial: not committed, it goes back by itself within {}",
                     text_of(params, "slot"), to_human(static_cast<DurationMs>(number_of(params, "trial"))));
}

// True: the attempt failed, since the system that it is for is not there any more: the one on trial went back
// by itself, or the old one, on the way back, was restarted into the other slot once more.
bool NodeTurn::trial_over() {
  const Action* boot = s.returning ? of_kind(s.rescue, ActionKind::return_slot) : trial();
  if (!boot || !agent.greeted || !agent.mode || (!s.returning && committed())) return false;
  const ActionRecord& record = w.log.of(boot->id);
  if (record.state != ActionState::succeeded) return false;
  const Json result = record.result.is_object() ? record.result.value("result", Json()) : Json();
  const bool same = agent.boot_id == text_of(result, "boot_id");
  const std::string slot = text_of(boot->params.own(), "slot");
  const bool ram = *agent.mode == wire::Mode::ram, told = ram || !agent.slot.empty();
  if (!ram && (same || agent.slot == slot)) return false;
  if (!told) return false;  // restarted, and its slot comes with the next request for orders
  const Hello found{s.name, *agent.mode, agent.boot_id, w.others.row_of(s.name).image_digest, agent.slot};
  const std::string panic = w.hooks.panic ? w.hooks.panic(s.name, s.started) : "";
  const std::string what =
      s.returning
          ? fmt::format("it runs {} once more", system_of(found))
          : fmt::format("it went back by itself to {}: the trial of slot {} ended", system_of(found), slot);
  fail_attempt(fail(Code::conflict, what + (panic.empty() ? "" : "; its console: " + panic)), Json());
  return true;
}

// ---- a boot that ends in a named slot ----

// An agent of another boot than the one that the order was for says how the attempt came out. While its power
// is cut nobody does: what is heard then is about to be gone.
bool NodeTurn::answer_counts() const { return (s.sent || s.cycled) && !s.cutting; }

void NodeTurn::hello_from_slot(const Hello& hello) {
  if (!answer_counts() || hello.boot_id == s.boot_before) return consider();
  if (tells_system(hello)) return came_back(hello);
  // Its slot comes with its next request for orders. It did restart: it must not be given the order again.
  if (!std::exchange(s.departed, true)) s.left_system = w.now;
  withdraw();
  consider();
}

void NodeTurn::came_back(const Hello& hello) {
  const Action& action = s.action();
  const std::string slot = text_of(action.params.own(), "slot");
  if (hello.mode == wire::Mode::installed && hello.slot == slot &&
      hello.image_digest == text_of(action.params.own(), "digest"))
    return succeed({{"boot_id", hello.boot_id}, {"slot", slot}});
  const bool tries = action.kind == ActionKind::boot_slot;
  std::string why = "it came back in " + system_of(hello);
  if (s.cycled) why = "it hung: its power was cycled, and it is back in " + system_of(hello);
  if (!s.cycled && s.stayed_off > 0) why += ", after it lost power";
  why += tries ? fmt::format(": the trial of slot {} ended", slot) : fmt::format(" instead of slot {}", slot);
  if (const std::string panic = w.hooks.panic ? w.hooks.panic(s.name, s.started) : ""; !panic.empty())
    why += "; its console: " + panic;
  fail_attempt(fail(tries ? Code::conflict : Code::failed, why), Json());
}

// Asked before anything is done about a silent or a wrong system. True: the attempt is over. Its hello may
// have been heard while a call of the power was under way, or by an earlier attempt.
bool NodeTurn::slot_reached() {
  const bool heard = agent.contact && w.now - agent.contact < w.timing.silent_after;
  if (!heard || !agent.greeted || !agent.mode || s.cutting) return false;
  const Action& action = s.action();
  const Hello known{s.name, *agent.mode, agent.boot_id, w.others.row_of(s.name).image_digest, agent.slot};
  if (answer_counts() && agent.boot_id != s.boot_before && agent.spoke > s.power_answered &&
      tells_system(known)) {
    came_back(known);
    return true;
  }
  if (action.kind != ActionKind::return_slot || s.departed || s.cycled) return false;
  const bool there = known.mode == wire::Mode::installed &&
                     known.slot == text_of(action.params.own(), "slot") &&
                     known.image_digest == text_of(action.params.own(), "digest");
  // Given up in the middle of its restart: what still answers may be about to go.
  const Action* boot = trial();
  const ActionRecord record = boot ? w.log.of(boot->id) : ActionRecord{};
  const bool open = record.attempt > 0 && record.state == ActionState::abandoned &&
                    !(record.result.is_object() && record.result.contains("code"));
  if (!there || (open && agent.spoke < s.started + w.timing.leave_shows)) return false;
  succeed({{"boot_id", agent.boot_id}, {"slot", known.slot}, {"restarted", false}});
  return true;
}

void NodeTurn::describe_slot(Situation& now) const {
  now.cycled = s.cycled;
  now.left = s.left_system;
  now.may_cut = s.sent;
  const Action* boot = trial();
  if (now.kind != ActionKind::return_slot) return;
  const ActionRecord record = boot ? w.log.of(boot->id) : ActionRecord{};
  const bool back = agent.slot == text_of(s.action().params.own(), "slot") &&
                    agent.boot_id != text_of(record.intent_data, "boot_before");
  now.may_cut = record.attempt > 0 && !back;
  // One that is merely silent may be at work in the right system. Of one that speaks, events may be here
  // before its slot is.
  const bool heard = agent.contact && w.now - agent.contact < w.timing.silent_after;
  const bool untold = agent.slot.empty() && w.now < s.started + w.timing.leave_shows;
  const bool right = agent.slot == text_of(s.action().params.own(), "slot");
  now.in_doubt = !heard || (agent.mode != wire::Mode::ram && (untold || right));
}

void NodeTurn::on_slot_finished(bool good, const Error& told) {
  const bool back = s.action().kind == ActionKind::return_slot;
  if (!good) {
    const bool switchable = !s.person && (!s.in_band || s.rented);
    if (!back || !switchable || s.cycled || !situation().may_cut) return fail_attempt(told, Json());
    return cut_power("it does not restart by order: " + told.message);
  }
  if (back)
    withdraw();
  else if (std::exchange(s.offered, false))
    add(effect::LetGo{own_order()});  // withdrawn it would stay
  s.departed = true;
  s.left_system = w.now;
  consider();
}

// ---- its power is cycled, and nothing is served to it: it boots the slot that stands ----

void NodeTurn::cut_power(const std::string& why) {
  withdraw();
  ++s.epoch;
  s.cycled = s.cutting = true;
  s.deadline = w.now + w.plan.limits.netboot;
  s.stage = Stage::powering;
  add(effect::StopTimer{});
  tell("power", {{"action", "power cycle into the slot that stands: " + why}});
  set_wait({"its power is cycled: it boots the slot that stands", switched_by() + "'s answer", why,
            "a wait for its agent", w.now, w.now + w.timing.power_call});
  add(effect::Call::switch_off);
}

void NodeTurn::on_cut(const Status& off) {
  if (off.ok()) {
    const SteadyMs at = w.limits.next_power_on(w.now);
    add(effect::ReservePowerOn{});
    s.deadline += at - w.now;
    return pause(at - w.now,
                 {"power on", switched_by() + "'s answer", "it is off", "a look at the power state", w.now,
                  at + w.timing.power_call},
                 Next::power_on);
  }
  const Error& error = off.error();
  s.power_error = error.message;
  const bool may_be_off = error.code == Code::timeout;
  if ((!may_be_off && error.code != Code::unavailable) || w.now >= s.deadline) {
    s.cutting = may_be_off;
    return fail_attempt(fail(Code::conflict, "power: " + error.message), Json());
  }
  pause(w.timing.look_again,
        {"its power is cycled: it boots the slot that stands", switched_by() + "'s answer", error.message,
         "it is asked again", w.now, w.now + w.timing.look_again},
        Next::cut);
}

// ---- the way back ----

// Not once the new system is the one that stands: then there is nothing to go back to by a restart.
// By way of the RAM system there is none either, but while its jobs are waited for.
bool NodeTurn::may_go_back() const {
  if (s.returning || s.rescue.empty() || committed()) return false;
  return trial() || (s.acts() && s.action().phase == kPausePhase);
}

// From now on it is out of the run for the others, and works for nobody but itself.
void NodeTurn::go_back(const std::string& why) {
  const std::string failed = s.acts() ? s.action().id : "";
  const bool open = s.acts() && w.log.of(failed).state != ActionState::succeeded;
  end_attempt();
  add(effect::Leave{Limits::Lane::netboot});
  add(effect::Leave{Limits::Lane::imaging});
  add(effect::Call::disarm);
  tell("node", {{"state", "returning"}, {"reason", why}});
  std::vector<effect::Draft> rows{row("returning", {{"reason", why}, {"action", failed}}),
                                  effect::Change{[why](NodeRow& changed) { changed.reason = why; }}};
  s.attempt = s.acts() ? w.log.of(failed).attempt : 0;
  if (open)
    transition_then(Next::turn_back, ActionState::abandoned, {{"message", why}}, std::move(rows));
  else
    await_store(Next::turn_back), add(effect::Commit{std::move(rows), true});
  s.reason = why;
  s.failed_action = failed;
  s.left_at = w.now;
  s.returning = true;
  s.index = 0;
  s.attempt = 0;
  add(effect::Kick{});
}

void NodeTurn::turn_back() {
  s.excused.clear();
  s.results.clear();
  s.without.clear();
  s.follow = nullptr;
  set_wait({});
  s.stage = Stage::pending;
  add(effect::Kick{});
}

// What the plan says that its row was: in the action that goes back, or in another one of that way.
std::string NodeTurn::state_to_restore() const {
  for (const Action* action : s.rescue)
    if (std::string state = text_of(action->params.own(), "state"); !state.empty()) return state;
  return "";
}

// What its row was, where it runs the system that it ran then; none: it may run another. One that is not
// given back to its work, or was restarted, is degraded: the next plan looks at it.
std::optional<NodeState> NodeTurn::state_before() const {
  const auto was = node_state_from_string(state_to_restore());
  if (!was.ok() || tried() || committed()) return {};
  const Action* back = of_kind(s.rescue, ActionKind::return_slot);
  const bool is_back = back && w.log.of(back->id).state == ActionState::succeeded;
  bool disturbed = false;
  for (const Action* action : s.actions) {
    if (w.log.of(action->id).attempt == 0) break;
    const bool pauses = action->phase == kPausePhase, writes = action->kind == ActionKind::write_slot;
    if (!pauses && !writes && !is_back) return {};  // by way of the RAM system, behind its pause
    disturbed = disturbed || !writes;
  }
  return disturbed && *was == NodeState::accepted ? NodeState::degraded : *was;
}

// The node's own row when it is back. What it was accepted for last stays what it was.
std::vector<effect::Draft> NodeTurn::returned() {
  // One that was quarantined and failed to be re-imaged is so still; what else it was counts no more.
  const auto was = node_state_from_string(state_to_restore());
  const bool known = was.ok() && (*was == NodeState::accepted || *was == NodeState::quarantined);
  const NodeState state = known ? *was : NodeState::degraded;
  const Action* back = of_kind(s.rescue, ActionKind::return_slot);
  const std::string why =
      back ? fmt::format("returned to slot {}: {}", text_of(back->params.own(), "slot"), s.reason)
           : fmt::format("not re-imaged: {}", s.reason);
  tell("node", {{"state", "returned"}, {"reason", why}});
  s.reason = why;
  return {row("returned", {{"reason", why}, {"action", s.failed_action}}),
          effect::Change{[state, why](NodeRow& changed) {
            changed.state = state;
            changed.reason = why;
          }}};
}

}  // namespace muster
