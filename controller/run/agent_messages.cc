// Messages of an agent and their effect on the current action: NodeTurn's functions about hello and events.
#include <fmt/format.h>

#include "base/facts.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"
#include "controller/run/node_turn.h"

namespace muster {

void NodeTurn::on(const input::Contact& contact) {
  // A restart order on offer no longer applies once it turns out that the system was committed.
  const bool stays = s.action().kind == ActionKind::return_slot && committed();
  if (contact.after_silence || !a.offered || stays) consider();
}

void NodeTurn::on(const input::Greeting& greeting) { hello_during(greeting.hello, greeting.new_boot); }

void NodeTurn::hello_during(const Hello& hello, bool new_boot) {
  const Action& action = s.action();
  const bool ram = hello.mode == wire::Mode::ram;
  const bool since = hello.boot_id != s.latest.boot_before;
  if (a.stop.pending) {
    if (a.awaiting_ram && ram && since) {  // booted by an earlier power cycle
      withdraw_stop();
      return got_ram();
    }
    if (new_boot) end_stop("was restarted in the meantime");  // the order was for the system that ran before
    return;
  }
  if (a.awaiting_ram) {
    if (ram && since) return got_ram();
    if (s.control.by == Switch::person && s.stage == Stage::powering && since && new_boot)
      s.shown.wait.observed = "it booted from its disk, not from the network";
    // It restarted, whether or not it received the order; the system that the order was for no longer runs.
    if (s.control.hands_over() && !ram && since && new_boot &&
        (a.power.certain || !s.latest.boot_before.empty()))
      return lose_attempt(a.power.certain
                              ? "the RAM system did not reach the controller; the old system is back"
                              : "it restarted into its old system before it handed over to the RAM system",
                          true);
    if (!ram && since && new_boot && a.power.certain)
      return lose_attempt("it booted its installed system instead of the RAM system", true);
    return consider();
  }
  if (is_for_slot(action.kind)) return hello_from_slot(hello);
  if (trial_over()) return;
  if (action.kind == ActionKind::boot_disk && !ram) {
    if (hello.image_digest == text_at(action.params.own(), "digest"))
      return succeed({{"boot_id", hello.boot_id}});
    return lose_attempt(fmt::format("it booted image '{}' instead of '{}'", hello.image_digest,
                                    text_at(action.params.own(), "digest")),
                        true);
  }
  if (action.kind == ActionKind::reboot && !ram && since) return succeed({{"boot_id", hello.boot_id}});
  if (mode_needed(action.kind) == wire::Mode::ram && ram && new_boot && a.offered)
    return lose_attempt("the RAM system was restarted", false);
  if (action.kind == ActionKind::boot_disk && ram && new_boot && a.departed)
    return lose_attempt("it booted the RAM system again instead of its disk", false);
  consider();
}

void NodeTurn::got_ram() {
  if (s.control.by == Switch::person && s.stage == Stage::powering) {
    add(effect::Call::forget);
    add(effect::Enter{lane_of(s)});
  }
  ++s.epoch;
  withdraw_leave();
  a.awaiting_ram = a.with_netboot = false;
  // The RAM system was reached. The next netboot, and the next token, require another power cycle by a plan.
  add(effect::Call::disarm);
  a.power.error.clear();
  if (s.action().kind == ActionKind::netboot) return succeed({{"boot_id", agent.boot_id}});
  add(effect::Leave{Limits::Lane::netboot});
  agent.silent_since = w.now;
  add(effect::CountSilenceFrom{agent.silent_since});
  a.deadline = w.now + time_for(s.action());
  a.alone.from = {};  // that time does not count
  s.stage = Stage::awaiting;
  consider();
  add(effect::Kick{});
}

void NodeTurn::on(const input::Said& said) { on_event(said.event); }

void NodeTurn::on_event(const wire::Event& event) {
  if (a.leaving && event.order == leave_order().id) return on_left(event);
  if (a.stop.pending && event.order == a.stop.order) return on_stopped(event);
  if (event.order != own_order()) return;  // the event is from an attempt that no longer counts
  // Its agent was to leave, but a precondition no longer held.
  const bool stays =
      a.departed && is_for_slot(s.action().kind) && event.kind == "finished" && !is_true_at(event.data, "ok");
  if (!a.offered && !stays) return;
  if (event.kind == "started" && w.log.of(s.action().id).state == ActionState::intent)
    transition(ActionState::started, Json::object());
  if (event.kind == "progress") on_progress(event.data);
  if (event.kind == "step") step_row(event.data);
  if (event.kind == "log") publish("log", event.data);
  if (event.kind == "finished") on_finished(event);
}

void NodeTurn::on_progress(const Json& data) {
  const double done = number_of(data, "done");
  if (!a.progress.first_at || done < a.progress.done || text_at(data, "unit") != s.shown.unit) {
    a.progress.first_at = w.now;
    a.progress.first_done = done;
  }
  a.progress.done = done;
  a.progress.total = number_of(data, "total");
  s.shown.unit = text_at(data, "unit");
  a.progress.text = text_at(data, "text");
  a.progress.last_at = w.now;
  Json seen = data.is_object() ? data : Json::object();
  seen["action"] = s.action().id;
  publish("progress", std::move(seen));
}

Status NodeTurn::accept_inventory(const Json& result, std::vector<effect::Draft>& rows) {
  const Json facts = result.is_object() && result.contains("facts") ? result["facts"] : result;
  TRY(const HardwareFacts read, hardware_facts_from_json(facts));
  const bool rebinds = w.plan.kind == PlanKind::admit || w.plan.kind == PlanKind::reimage;
  rows.push_back(effect::Change{
      [text = dump_ascii(facts), now = w.wall, rebinds, system = read.system](NodeRow& changed) {
        changed.facts = text;
        changed.facts_time = now;
        if (machine_of(changed.product_uuid).empty() || rebinds)
          changed.product_uuid = machine_of(system.uuid);
        if (names_one_thing(system.serial)) changed.system_serial = system.serial;
      }});
  return Ok{};
}

void NodeTurn::on_finished(const wire::Event& event) {
  const Action& action = s.action();
  Json result = event.data.is_object() && event.data.contains("result") ? event.data["result"] : Json();
  // A node's data may be malicious: anything but exactly `true` counts as a failure.
  const bool good = event.data.is_object() && event.data.contains("ok") && event.data["ok"] == true;
  const Error error = fail(code_from_string(text_at(event.data, "code")), text_at(event.data, "message"));
  if (is_for_slot(action.kind)) return on_slot_finished(good, error, std::move(result));
  if (!good && action.kind != ActionKind::check) return fail_attempt(error, std::move(result));
  if (action.kind == ActionKind::boot_disk || action.kind == ActionKind::reboot) {
    withdraw();
    a.departed = true;
    return consider();
  }
  std::vector<effect::Draft> rows;
  if (action.kind == ActionKind::inventory)
    if (auto taken = accept_inventory(result, rows); !taken.ok()) return fail_attempt(taken.error(), Json());
  if (!s.verdicts.follow.is_null()) return void(follow_up(result));
  if (action.kind == ActionKind::check) {
    Status verdict = Ok{};
    if (w.hooks.judge)
      verdict = w.hooks.judge(action, result);
    else if (!good)
      verdict = error;
    if (!verdict.ok()) return fail_attempt(fail(Code::failed, verdict.error().message), std::move(result));
    if (follow_up(result)) return;
  }
  succeed(std::move(result), std::move(rows));
}

}  // namespace muster
