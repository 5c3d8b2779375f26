#include "controller/run/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_at.h"
#include "controller/run/node_turn.h"

namespace muster {

namespace {

void read_node_row(const JournalRow& row, Recovery& out) {
  Recovery::Node& node = out.nodes[row.node];
  if (row.event == "intent") node.begun = true;
  if (row.event == "returning" || row.event == "returned") {
    node.returning = true;
    node.failed_action = text_at(row.data, "action");
    node.reason = text_at(row.data, "reason");
    if (row.event == "returned")
      node.stage = NodeRun::Stage::done;
    else
      node.left = row.time;
    return;
  }
  if (row.event != "quarantined" && row.event != "not_started") return;
  node.stage = row.event == "quarantined" ? NodeRun::Stage::quarantined : NodeRun::Stage::not_started;
  node.reason = text_at(row.data, "reason");
  node.left = row.time;
}

void read_failure(const JournalRow& row, Recovery& out) {
  if (!text_at(row.data, "excused").empty()) ++out.excused[row.action][text_at(row.data, "excused_by")];
  if (row.data.value("follow_up", false)) out.results[row.action].push_back(row.data.value("result", Json()));
}

}  // namespace

Result<Recovery> recover(const RunRow& run, const std::vector<JournalRow>& journal) {
  Recovery out;
  out.last_sign = journal.empty() ? run.started : journal.back().time;
  for (const auto& row : journal) {
    if (auto legal = out.log.apply(row); !legal.ok())
      return fail(Code::corrupt, fmt::format("journal of run {}: {}", run.id, legal.error().message));
    if (!row.node.empty()) read_node_row(row, out);
    if (row.event == "succeeded") out.succeeded.insert(row.action);
    if (row.event == "failed") read_failure(row, out);
  }
  return out;
}

std::string abandoned(TimeMs last_sign, TimeMs now, const ExecutorTiming& timing) {
  const DurationMs away = now - last_sign;
  if (away > timing.abandoned_after)
    return fmt::format(
        "the controller was away for {} during the run, or its database was restored from an older backup: "
        "the run is not resumed automatically; plan again",
        to_human(away));
  if (away < -timing.abandoned_after)
    return fmt::format(
        "the controller's clock is {} behind its journal: the run is not resumed automatically; set the "
        "clock and plan again",
        to_human(-away));
  return "";
}

void restore(NodeRun& node, const Recovery& recovery, const ExecutorHooks& hooks) {
  if (const auto found = recovery.nodes.find(node.name); found != recovery.nodes.end()) {
    node.begun = found->second.begun;
    node.stage = found->second.stage;
    node.reason = found->second.reason;
    node.returning = found->second.returning;
    node.failed_action = found->second.failed_action;
  }
  node.given_back = node.returning && kept_by_jobs(node.actions, recovery.log);
  do {
    while (node.acts() && recovery.succeeded.count(node.action().id)) ++node.index;
  } while (pass_needless(node, recovery.log));
  if (!node.acts()) return;
  const std::string& action = node.action().id;
  if (const auto found = recovery.excused.find(action); found != recovery.excused.end())
    node.verdicts.excused = found->second;
  if (const auto found = recovery.results.find(action); found != recovery.results.end())
    node.verdicts.results = found->second;
  if (!hooks.follow_up || node.verdicts.results.empty()) return;
  if (const auto next = hooks.follow_up(node.action(), node.verdicts.results))
    node.verdicts.follow = next->order;
}

void NodeTurn::on(const input::Resume&) { resume(); }

// The action that was in progress when the controller ended. Its outcome is unknown: orders are sent again
// under the same id (the agent has its own record), and the power state is read before anything is switched.
void NodeTurn::resume() {
  if (!s.acts()) return;
  const Action& action = s.action();
  const ActionRecord record = w.log.of(action.id);
  s.latest.number = record.attempt;
  if (record.state == ActionState::fresh) return;
  for (const Json* data : {&record.intent_data, &record.result})
    if (data->is_object() && data->contains("without") && (*data)["without"].is_object())
      for (const auto& [name, why] : (*data)["without"].items())
        s.verdicts.without[name] = why.is_string() ? why.get<std::string>() : "";
  if (record.state == ActionState::failed || record.state == ActionState::unknown) {
    const bool again = tries_left() && record.result.value("retry", true);
    if (again) return begin(record.result.value("with_netboot", false));
    return give_up(text_at(record.result, "message"));
  }
  // If the clock was set in the meantime, it may have begun in the future, or years ago: its elapsed time is
  // limited to between none and all of its time.
  const DurationMs whole = time_for(action),
                   spent = whole + (s.control.by == Switch::person ? s.control.person.within : 0);
  s.latest.started = w.now - std::clamp<DurationMs>(w.wall - record.intent_time, 0, spent);
  s.latest.boot_before = text_at(record.intent_data, "boot_before");
  // One with preconditions has started once they were confirmed; a pause has once its agent has the order.
  const bool confirmed = record.state == ActionState::started && has_preconditions();
  s.left_boot = confirmed ? s.latest.boot_before : text_at(record.intent_data, "left_boot");
  a.with_netboot = record.intent_data.value("with_netboot", false);
  // The journal does not record when its power came on: it has the firmware's full time from now on.
  const bool boots = a.with_netboot || action.kind == ActionKind::netboot;
  a.deadline = boots ? w.now + w.plan.limits.netboot
                     : std::max(s.latest.started + whole, w.now + w.timing.after_resume);
  add(effect::Enter{lane_of(s)});
  agent.silent_since = w.now;
  add(effect::CountSilenceFrom{agent.silent_since});
  s.stage = Stage::awaiting;
  const bool new_boot = !agent.boot_id.empty() && agent.boot_id != s.latest.boot_before;
  if (action.kind == ActionKind::power_off) return power_off();
  if (boots) {
    if (agent.mode == wire::Mode::ram && new_boot) return got_ram();
    if (s.control.by != Switch::person) add(effect::Enter{Limits::Lane::netboot});
    a.awaiting_ram = true;
    a.power.certain =
        s.control.by == Switch::person && record.state == ActionState::started;  // it was switched already
    a.by_hand.since = s.latest.started;
    a.power.requested = a.power.answered = w.now;
    s.stage = Stage::powering;
    set_wait({"the controller restarted during a power cycle", "the boot service", "",
              s.control.hands_over() ? "the order is sent again" : "the power state is read", w.now,
              w.now + w.timing.power_call});
    return rearm();
  }
  const bool leaves = action.kind == ActionKind::boot_disk || action.kind == ActionKind::reboot;
  if (leaves && new_boot && agent.mode == wire::Mode::installed &&
      (action.kind == ActionKind::reboot ||
       w.others.row_of(s.name).image_digest == text_at(action.params.own(), "digest")))
    return succeed({{"boot_id", agent.boot_id}});
  if (is_for_slot(action.kind)) {
    a.slot.sent = true;  // possibly before the restart
    if (new_boot && !s.latest.boot_before.empty()) a.departed = true, a.slot.left = w.now;
  }
  set_timer(0);  // when the other nodes are restored as well
}

void NodeTurn::rearm() {
  s.stage = Stage::powering;
  add(effect::Call::rearm);
}

}  // namespace muster
