// NodeTurn's functions about power: how a node gets into the RAM system, is switched off, or is woken.
#include <fmt/format.h>

#include <algorithm>

#include "base/json_at.h"
#include "base/utf8.h"
#include "controller/run/node_turn.h"

namespace muster {

using Lane = Limits::Lane;

bool NodeTurn::claim_or_pause() {
  if (w.limits.holds(Lane::netboot, s.name)) return true;
  if (w.limits.may_begin(Lane::netboot)) {
    add(effect::Enter{Lane::netboot});
    return true;
  }
  const DurationMs delay = 2 * kSecond;
  a.deadline += delay;  // its time to boot begins with its power-on
  pause(delay,
        {"a limit of the plan is reached", "capacity for a power cycle", "", "power cycle", w.now,
         w.now + delay},
        AfterPause::netboot);
  return false;
}

void NodeTurn::netboot() {
  if (const SteadyMs since = alone(); since && w.now >= a.deadline)
    return wait_alone(since, AfterPause::netboot);
  if (w.now >= a.deadline) return lose_attempt("no power cycle took place in time; " + a.power.error, true);
  if (s.control.by == Switch::person) return netboot_by_hand();
  if (!claim_or_pause()) return;
  if (s.control.hands_over()) return leave();
  if (!s.control.reinstall && should_stop()) return stop_in_order();
  ++s.epoch;
  s.stage = Stage::powering;
  a.awaiting_ram = true;
  a.power.certain = false;
  a.power.seen.reset();
  set_wait({"power cycle into the RAM system", switched_by() + "'s answer", a.power.error,
            "the power state is read", w.now, w.now + w.timing.power_call});
  add(effect::Call::arm);
}

void NodeTurn::on(const input::Armed& armed) {
  if (!armed.status.ok())
    return on_powered(fail(Code::unavailable, "boot service: " + armed.status.error().message));
  if (s.control.hands_over()) return order_leave();
  if (s.control.by == Switch::person) return request_netboot();
  const SteadyMs at = w.limits.next_power_on(w.now);
  add(effect::ReservePowerOn{});
  if (at <= w.now) return switch_on();
  a.deadline += at - w.now;
  pause(at - w.now, {"power-ons are staggered", "its turn", "", "power cycle", w.now, at},
        AfterPause::switch_on);
}

void NodeTurn::on(const input::Rearmed& armed) {
  if (!armed.status.ok() && w.now < a.deadline)
    return pause(kSecond,
                 {"the controller restarted during a power cycle", "the boot service",
                  armed.status.error().message, "retry", w.now, w.now + kSecond},
                 AfterPause::rearm);
  // If the agent already had the order, it does not execute it twice.
  if (s.control.hands_over()) return order_leave();
  // The provider begins the installation, or continues one that has begun.
  if (s.control.reinstall) return switch_on();
  if (s.control.by == Switch::person && !a.power.certain) return request_netboot();
  s.stage = Stage::awaiting;
  consider();
}

// True if its power may be cut only once its agent has confirmed that the preconditions hold in the system
// that runs now, or its power is off: the node may have jobs again.
bool NodeTurn::must_confirm() const {
  return has_preconditions() && agent.mode != wire::Mode::ram &&
         (s.left_boot.empty() || (!agent.boot_id.empty() && agent.boot_id != s.left_boot));
}

// A machine that is off, silent, or in the RAM system loses nothing when its power is cut. A node that has
// sent no message to this process may be running but disconnected, whatever its row says. So it also gets the
// shutdown order and, unless it is off, time to shut down.
bool NodeTurn::should_stop() const {
  if (must_confirm()) return true;
  if (a.stop.requested) return false;
  if (!agent.contact) return w.others.ever_seen(s.name);
  return (!agent.mode || *agent.mode != wire::Mode::ram) && w.now - agent.contact < w.timing.silent_after;
}

wire::WorkOrder NodeTurn::stop_order() const {
  wire::WorkOrder order;
  order.id = a.stop.order;
  order.kind = wire::OrderKind::power_off;
  order.params = Json::object();
  order.deadline = w.timing.stop_wait;
  if (must_confirm()) order.preconditions = preconditions();
  return order;
}

// The preconditions hold in the system that runs now.
void NodeTurn::confirm_departure() {
  if (!has_preconditions()) return;
  s.left_boot = agent.boot_id.empty() ? "none" : agent.boot_id;
  if (w.log.of(s.action().id).state == ActionState::intent) transition(ActionState::started, Json::object());
}

void NodeTurn::on_stopped(const wire::Event& event) {
  if (event.kind != "finished" || !has_preconditions()) return;
  Json result = event.data.is_object() ? event.data.value("result", Json()) : Json();
  const bool good = is_true_at(event.data, "ok"), refused = !text_at(result, "precondition").empty();
  // An agent that confirmed it, and then failed to shut down, does not keep its power.
  if (!good && !refused && !must_confirm()) return;
  if (!good) return fail_attempt(fail(Code::conflict, text_at(event.data, "message")), std::move(result));
  if (!must_confirm()) return;
  confirm_departure();
  a.stop.requested = w.now;  // it has its full time to shut down
}

// Its page cache and its daemons' data must be on its disks before the power is cut. Only the BMC's power
// state counts; no report is awaited from the agent, which is shutting down.
void NodeTurn::stop_in_order() {
  ++s.epoch;
  a.stop.pending = true;
  a.stop.requested = w.now;
  // An agent carries out an order of one id only once, and then repeats its result: a confirmation must be
  // new.
  a.stop.order = OrderId(own_order() + "-stop" + (must_confirm() ? fmt::format("-{:x}", w.wall) : ""));
  add(effect::Offer{stop_order()});
  await_stop();
}

void NodeTurn::await_stop() {
  s.stage = Stage::looking;
  set_wait({fmt::format("shutting down {}, for up to {}", s.name, to_human(w.timing.stop_wait)),
            "power is off", "", "its power is cut", a.stop.requested, a.stop.requested + w.timing.stop_wait});
  add(effect::Call::look);
}

void NodeTurn::end_stop(const std::string& outcome) {
  publish("power", {{"action", outcome}});
  withdraw_stop();
  a.deadline += w.now - a.stop.requested;
  netboot();
}

void NodeTurn::withdraw_stop() {
  if (std::exchange(a.stop.pending, false)) add(effect::Withdraw{a.stop.order});
}

wire::WorkOrder NodeTurn::leave_order() const {
  wire::WorkOrder order;
  order.id = OrderId(own_order() + "-kexec");
  order.kind = wire::OrderKind::kexec;
  order.deadline = w.timing.leave_ready;
  order.preconditions = preconditions();
  return order;
}

void NodeTurn::leave() {
  // It is already in the RAM system, however the last attempt ended: no boot is needed.
  if (agent.mode == wire::Mode::ram) return got_ram();
  ++s.epoch;
  s.stage = Stage::powering;
  a.awaiting_ram = true;
  a.power.certain = false;
  set_wait({"its own system hands over to the RAM system", "the boot service", a.power.error,
            "its agent is sent the order", w.now, w.now + w.timing.power_call});
  add(effect::Call::arm);
}

void NodeTurn::order_leave() {
  s.stage = Stage::powering;
  add(effect::Call::leave_order);
}

void NodeTurn::on(const input::LeaveOrder& given) {
  if (!given.params.ok()) return on_powered(given.params.error());
  wire::WorkOrder order = leave_order();
  order.params = *given.params;
  s.stage = Stage::awaiting;
  a.leaving = true;
  a.power.requested = w.now;
  add(effect::Offer{std::move(order)});
  consider();
}

void NodeTurn::withdraw_leave() {
  if (std::exchange(a.leaving, false)) add(effect::Withdraw{leave_order().id});
}

// The agent is ready and is now handing over; or it rejected the order, and nothing was done.
void NodeTurn::on_left(const wire::Event& event) {
  if (event.kind == "log") publish("log", event.data);
  if (event.kind != "finished" || a.power.certain) return;
  const bool good = event.data.is_object() && event.data.contains("ok") && event.data["ok"] == true;
  if (!good) {
    // The agent's answer to this order is final: a retry is another attempt.
    const Code code = code_from_string(text_at(event.data, "code"));
    Json result = event.data.is_object() ? event.data.value("result", Json()) : Json();
    if (!text_at(result, "precondition").empty())
      return fail_attempt(fail(Code::conflict, text_at(event.data, "message")), std::move(result));
    return on_powered(
        fail(may_pass(code) ? Code::failed : code, short_reason(text_at(event.data, "message"))));
  }
  a.leaving = false;
  confirm_departure();
  add(effect::LetGo{event.order});  // a withdrawn order would make it stay
  const std::string way = event.data.contains("result") ? text_at(event.data["result"], "way") : "";
  publish("power",
          {{"action", fmt::format("hands over to the RAM system ({})", way.empty() ? "kexec" : way)}});
  on_powered(Ok{});
}

// The node stays in service until a person restarts it: nothing is stopped before that.
void NodeTurn::netboot_by_hand() {
  if (agent.mode == wire::Mode::ram && agent.contact && w.now - agent.contact < w.timing.silent_after)
    return got_ram();
  ++s.epoch;
  s.stage = Stage::powering;
  a.awaiting_ram = true;
  a.power.certain = false;
  a.by_hand.since = w.now;
  add(effect::Call::arm);
}

// `requested_since`: when the task was created, perhaps before a restart of this controller. The task ends
// with the machine's request for its RAM system, the operator's report, or the RAM system's hello (got_ram).
void NodeTurn::request_netboot() {
  request_manual("restart it and boot it from the network", a.by_hand.since, effect::Call::cycle);
}

void NodeTurn::request_manual(const std::string& task, SteadyMs since, effect::Call call) {
  const SteadyMs until = std::max(since + s.control.person.within, w.now + 1);
  const std::string& where = s.control.person.where;
  s.stage = Stage::powering;
  a.by_hand.task = task;
  add(effect::Leave{Limits::lane_of(s.action().kind)});
  set_wait({fmt::format("by hand until {}: {}{}", to_iso8601(w.wall + (until - w.now)), task,
                        where.empty() ? "" : " (" + where + ")"),
            "the effect of the task, or `muster power done " + s.name + "`", a.power.error,
            "quarantine: not done in time", since, until});
  add(call);
  set_timer(until - w.now);
  add(effect::Kick{});  // barriers do not wait for this node
}

void NodeTurn::person_answered() {
  add(effect::StopTimer{});
  add(effect::Enter{lane_of(s)});
}

void NodeTurn::manual_task_expired() {
  fail_attempt(fail(Code::denied, fmt::format("manual task not completed within {}: {}",
                                              to_human(s.control.person.within), a.by_hand.task)),
               Json());
}

void NodeTurn::on(const input::Cycled& cycled) {
  // The time for a boot begins when the provider's system was ordered to hand over.
  if (s.control.reinstall && cycled.status.ok()) a.deadline = w.now + w.plan.limits.netboot;
  if (s.control.by != Switch::person) return on_powered(cycled.status);
  person_answered();
  if (cycled.status.ok()) {
    a.power.requested = w.now;
    a.deadline = a.power.requested + w.plan.limits.netboot;
    publish("power", {{"action", "restarted by hand"}});
    if (w.log.of(s.action().id).state == ActionState::intent)
      transition(ActionState::started, {{"by_hand", true}});
  }
  on_powered(cycled.status);
}

void NodeTurn::switch_on() {
  s.stage = Stage::powering;
  a.power.requested = w.now;
  if (s.control.reinstall) return reinstall();
  set_wait({"power cycle into the RAM system", switched_by() + "'s answer", a.power.error,
            "the power state is read", a.power.requested, a.power.requested + w.timing.power_call});
  add(effect::Call::cycle);
}

bool NodeTurn::has_image() const {
  return std::any_of(s.actions.begin(), s.actions.end(), [&](const Action* action) {
    return action->kind == ActionKind::image && w.log.of(action->id).state == ActionState::succeeded;
  });
}

// The provider overwrites everything: an image written in this run is not discarded because of a slow boot.
void NodeTurn::reinstall() {
  if (has_image())
    return fail_attempt(
        fail(
            Code::denied,
            fmt::format(
                "its image is written, but its provider could restart the machine only by overwriting that "
                "image: check the node's console; to start again from the beginning, run `muster reimage {}`",
                s.name)),
        Json());
  // The plan was made for a machine on which no agent of this cluster ran.
  if (agent.contact && agent.mode && *agent.mode != wire::Mode::ram &&
      w.now - agent.contact < w.timing.silent_after)
    return fail_attempt(fail(Code::denied,
                             "an installed system now answers on the machine, and the provider would "
                             "overwrite that system: plan again"),
                        Json());
  set_wait({"its provider installs a system, from which the RAM system is started",
            "the new system, over SSH", a.power.error, "retry, then quarantine", a.power.requested,
            std::max(a.deadline, a.power.requested + s.actions.front()->timeout)});
  add(effect::Call::reinstall);
}

void NodeTurn::on_powered(const Status& result) {
  s.stage = Stage::awaiting;
  a.power.answered = w.now;
  if (result.ok()) {
    a.power.certain = true;
    a.power.error.clear();
    a.power.seen = PowerState::on;
    return consider();
  }
  withdraw_leave();
  const Error& error = result.error();
  const std::string what = s.control.hands_over() ? "it cannot hand over to the RAM system: "
                           : s.control.reinstall  ? "its provider: "
                                                  : "power: ";
  a.power.error = error.message;
  if (error.code == Code::timeout) return consider();  // unknown: look
  if (error.code == Code::failed || error.code == Code::conflict)
    return lose_attempt(what + error.message, true);
  if (error.code != Code::unavailable) return fail_attempt(fail(error.code, what + error.message), Json());
  a.power.retry = a.power.retry ? std::min(a.power.retry * 2, w.timing.retry_last) : w.timing.retry_first;
  pause(a.power.retry,
        {s.control.hands_over() ? "it cannot hand over to the RAM system now"
                                : switched_by() + " did not accept the " +
                                      (s.control.reinstall ? "installation" : "power cycle"),
         (s.control.hands_over() ? "its agent" : switched_by()) + "'s answer", error.message, "retry", w.now,
         w.now + a.power.retry},
        AfterPause::netboot);
}

void NodeTurn::power_off() {
  ++s.epoch;
  if (s.control.by == Switch::person)
    return request_manual("power it off", s.latest.started, effect::Call::switch_off);
  s.stage = Stage::powering;
  set_wait({"power off", switched_by() + "'s answer", a.power.error, "the power state is read", w.now,
            w.now + w.timing.power_call});
  add(effect::Call::switch_off);
}

void NodeTurn::on(const input::SwitchedOff& off) {
  if (a.slot.cycled) return on_cut(off.status);
  if (s.control.by == Switch::person) person_answered();
  if (off.status.ok()) return succeed(Json::object());
  const Error& error = off.status.error();
  if (s.control.by == Switch::person || (error.code != Code::timeout && error.code != Code::unavailable))
    return fail_attempt(fail(error.code, "power: " + error.message), Json());
  if (const SteadyMs since = alone(); since && w.now >= a.deadline)
    return wait_alone(since, AfterPause::power_off);
  if (w.now >= a.deadline) return lose_attempt("power: " + error.message, false);
  pause(
      w.timing.look_again,
      {"power off", switched_by() + "'s answer", error.message, "retry", w.now, w.now + w.timing.look_again},
      AfterPause::power_off);
}

// While a node is powered on, the executor only waits: the state of its system is unknown.
void NodeTurn::wake() {
  if (agent.contact && w.now - agent.contact < w.timing.silent_after)
    return succeed({{"boot_id", agent.boot_id}});
  if (s.control.by == Switch::person && a.power.stayed_off == 0) return wake_by_hand();
  if (w.now >= a.deadline) {
    const TimeMs since = w.others.row_of(s.name).last_seen;
    return fail_attempt(
        fail(Code::conflict, fmt::format("{}; {}; to reinstall it, run `muster reimage {}`",
                                         since > 0 ? "silent since " + to_iso8601(since) : "no contact",
                                         power_text(situation()), s.name)),
        Json());
  }
  if (s.control.by != Switch::person && (!a.power.looked || w.now >= a.power.looked + w.timing.wake_look))
    return look();
  if (a.power.seen == PowerState::off && a.power.stayed_off < w.timing.power_tries) return power_on();
  const SteadyMs until =
      s.control.by == Switch::person ? a.deadline : std::min(a.deadline, a.power.looked + w.timing.wake_look);
  set_wait({"the agent is silent", "a message from its agent", power_text(situation()), "quarantine",
            s.latest.started, a.deadline});
  set_timer(until - w.now);
}

void NodeTurn::wake_by_hand() {
  ++s.epoch;
  ++a.power.stayed_off;
  request_manual("power it on", s.latest.started, effect::Call::switch_on);
}

void NodeTurn::power_on() {
  ++s.epoch;
  ++a.power.stayed_off;
  const SteadyMs at = w.limits.next_power_on(w.now);
  add(effect::ReservePowerOn{});
  a.deadline = std::max(a.deadline, at + s.action().timeout);  // the time for a boot begins then
  pause(at - w.now,
        {"power on", switched_by() + "'s answer", a.power.error, "the power state is read", w.now,
         at + w.timing.power_call},
        AfterPause::power_on);
}

void NodeTurn::on(const input::SwitchedOn& on) {
  s.stage = Stage::awaiting;
  a.power.error = on.status.ok() ? "" : on.status.error().message;
  if (s.control.by == Switch::person) {
    person_answered();
    a.deadline = w.now + s.action().timeout;  // the time for a boot begins now
    return consider();
  }
  a.power.looked = w.now;
  a.power.seen.reset();
  if (is_for_slot(s.action().kind)) a.power.off_since = {}, a.power.answered = w.now;
  consider();
}

// True until what would end a hang of the new system has answered, or the BMC that is to start the RAM
// system. Read before the node is drained: a BMC that is declared, but does not answer, is found while
// nothing has happened yet. A node whose agent has begun, maybe before a restart of the controller, has been
// waiting for its jobs for hours.
bool NodeTurn::must_read_power() const {
  if (s.action().phase != kPausePhase || s.returning) return false;
  if (w.log.of(s.action().id).state == ActionState::started) return false;
  if (trial()) return is_remote(s.control.by) && a.power.seen != PowerState::on;
  return s.control.by == Switch::bmc && !a.power.seen && !a.offered;
}

void NodeTurn::read_power() {
  const SteadyMs until = s.latest.started + w.timing.power_proof;
  if (a.power.looked && w.now >= until)
    return fail_attempt(fail(Code::conflict, power_text(situation()) +
                                                 (trial() ? ": nothing could end a hang of the new system"
                                                          : ": nothing could start the RAM system")),
                        Json());
  if (!a.power.looked || w.now >= a.power.looked + w.timing.look_again) return look();
  set_wait({"reading the power state before its jobs are waited for", switched_by() + "'s answer",
            power_text(situation()), "it stays as it is", s.latest.started, until});
  set_timer(std::min(a.power.looked + w.timing.look_again, until) - w.now);
}

void NodeTurn::look() {
  ++s.epoch;
  s.stage = Stage::looking;
  set_wait({"reading the power state", switched_by() + "'s answer", a.power.error, "a decision", w.now,
            w.now + w.timing.power_call});
  add(effect::Call::look);
}

void NodeTurn::on(const input::PowerSeen& seen) {
  if (a.stop.pending) {
    if (seen.state.ok() && *seen.state == PowerState::off) {
      if (must_confirm()) confirm_departure();
      return end_stop("shut down");
    }
    const DurationMs left = a.stop.requested + w.timing.stop_wait - w.now;
    if (left <= 0 && must_confirm())
      return fail_attempt(
          fail(Code::conflict,
               fmt::format("its agent did not confirm within {} that the node may leave its system: "
                           "its power was not cut",
                           to_human(w.timing.stop_wait))),
          Json());
    if (left <= 0)
      return end_stop(
          fmt::format("did not shut down within {}: its power is cut", to_human(w.timing.stop_wait)));
    return pause(std::min(left, w.timing.stop_look), s.shown.wait, AfterPause::await_stop);
  }
  s.stage = Stage::awaiting;
  a.power.looked = std::max(w.now, a.power.requested + 1);
  a.power.seen.reset();
  a.power.error = seen.state.ok() ? "" : seen.state.error().message;
  if (seen.state.ok()) a.power.seen = *seen.state;
  if (a.power.seen != PowerState::off)
    a.power.off_since = {};
  else if (!a.power.off_since)
    a.power.off_since = a.power.looked;
  consider();
}

}  // namespace muster
