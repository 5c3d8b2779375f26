// NodeTurn's functions about power: how a node gets into the RAM system, is switched off, or is woken.
#include <fmt/format.h>

#include <algorithm>

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
  s.deadline += delay;  // its time to boot begins with its power-on
  pause(delay,
        {"a limit of the plan is reached", "capacity for a power cycle", "", "power cycle", w.now,
         w.now + delay},
        Next::netboot);
  return false;
}

void NodeTurn::netboot() {
  if (const SteadyMs since = alone(); since && w.now >= s.deadline) return wait_alone(since, Next::netboot);
  if (w.now >= s.deadline) return lose_attempt("no power cycle took place in time; " + s.power_error, true);
  if (s.person) return netboot_by_hand();
  if (!claim_or_pause()) return;
  if (s.in_band) return leave();
  if (!s.reinstall && should_stop()) return stop_in_order();
  ++s.epoch;
  s.stage = Stage::powering;
  s.awaiting_ram = true;
  s.power_certain = false;
  s.power.reset();
  set_wait({"power cycle into the RAM system", switched_by() + "'s answer", s.power_error,
            "the power state is read", w.now, w.now + w.timing.power_call});
  add(effect::Call::arm);
}

void NodeTurn::on(const input::Armed& armed) {
  if (!armed.status.ok())
    return on_powered(fail(Code::unavailable, "boot service: " + armed.status.error().message));
  if (s.in_band) return order_leave();
  if (s.person) return request_netboot();
  const SteadyMs at = w.limits.next_power_on(w.now);
  add(effect::ReservePowerOn{});
  if (at <= w.now) return switch_on();
  s.deadline += at - w.now;
  pause(at - w.now, {"power-ons are staggered", "its turn", "", "power cycle", w.now, at}, Next::switch_on);
}

void NodeTurn::on(const input::Rearmed& armed) {
  if (!armed.status.ok() && w.now < s.deadline)
    return pause(kSecond,
                 {"the controller restarted during a power cycle", "the boot service",
                  armed.status.error().message, "retry", w.now, w.now + kSecond},
                 Next::rearm);
  // If the agent already had the order, it does not execute it twice.
  if (s.in_band) return order_leave();
  // The provider begins the installation, or continues one that has begun.
  if (s.reinstall) return switch_on();
  if (s.person && !s.power_certain) return request_netboot();
  s.stage = Stage::awaiting;
  consider();
}

// ---- a running system is shut down ----

// A machine that is off, silent, or in the RAM system loses nothing when its power is cut. A node that has
// sent no message to this process may be running but disconnected, whatever its row says. So it also gets the
// shutdown order and, unless it is off, time to shut down.
bool NodeTurn::should_stop() const {
  if (s.stop_requested) return false;
  if (!agent.contact) return w.others.ever_seen(s.name);
  return (!agent.mode || *agent.mode != wire::Mode::ram) && w.now - agent.contact < w.timing.silent_after;
}

wire::WorkOrder NodeTurn::stop_order() const {
  wire::WorkOrder order;
  order.id = own_order() + "-stop";
  order.kind = wire::OrderKind::power_off;
  order.params = Json::object();
  order.deadline = w.timing.stop_wait;
  return order;
}

// Its page cache and its daemons' data must be on its disks before the power is cut. Only the BMC's power
// state counts; no report is awaited from the agent, which is shutting down.
void NodeTurn::stop_in_order() {
  ++s.epoch;
  s.stopping = true;
  s.stop_requested = w.now;
  add(effect::Offer{stop_order()});
  await_stop();
}

void NodeTurn::await_stop() {
  s.stage = Stage::looking;
  set_wait({fmt::format("shutting down {}, for up to {}", s.name, to_human(w.timing.stop_wait)),
            "power is off", "", "its power is cut", s.stop_requested, s.stop_requested + w.timing.stop_wait});
  add(effect::Call::look);
}

void NodeTurn::end_stop(const std::string& outcome) {
  publish("power", {{"action", outcome}});
  withdraw_stop();
  s.deadline += w.now - s.stop_requested;
  netboot();
}

void NodeTurn::withdraw_stop() {
  if (std::exchange(s.stopping, false)) add(effect::Withdraw{stop_order().id});
}

// ---- a node that nothing can boot from the network hands over by itself ----

wire::WorkOrder NodeTurn::leave_order() const {
  wire::WorkOrder order;
  order.id = own_order() + "-kexec";
  order.kind = wire::OrderKind::kexec;
  order.deadline = w.timing.leave_ready;
  return order;
}

void NodeTurn::leave() {
  // It is already in the RAM system, however the last attempt ended: no boot is needed.
  if (agent.mode == wire::Mode::ram) return got_ram();
  ++s.epoch;
  s.stage = Stage::powering;
  s.awaiting_ram = true;
  s.power_certain = false;
  set_wait({"its own system hands over to the RAM system", "the boot service", s.power_error,
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
  s.leaving = true;
  s.power_requested = w.now;
  add(effect::Offer{std::move(order)});
  consider();
}

void NodeTurn::withdraw_leave() {
  if (std::exchange(s.leaving, false)) add(effect::Withdraw{leave_order().id});
}

// The agent is ready and is now handing over; or it rejected the order, and nothing was done.
void NodeTurn::on_left(const wire::Event& event) {
  if (event.kind == "log") publish("log", event.data);
  if (event.kind != "finished" || s.power_certain) return;
  const bool good = event.data.is_object() && event.data.contains("ok") && event.data["ok"] == true;
  if (!good) {
    // The agent's answer to this order is final: a retry is another attempt.
    const Code code = code_from_string(text_of(event.data, "code"));
    return on_powered(fail(may_pass(code) ? Code::failed : code, text_of(event.data, "message")));
  }
  s.leaving = false;
  add(effect::LetGo{event.order});  // a withdrawn order would make it stay
  const std::string way = event.data.contains("result") ? text_of(event.data["result"], "way") : "";
  publish("power",
          {{"action", fmt::format("hands over to the RAM system ({})", way.empty() ? "kexec" : way)}});
  on_powered(Ok{});
}

// ---- a person operates its power ----

// The node stays in service until a person restarts it: nothing is stopped before that.
void NodeTurn::netboot_by_hand() {
  // It is already in the RAM system, however the last attempt ended: no manual task is needed.
  if (agent.mode == wire::Mode::ram && agent.contact && w.now - agent.contact < w.timing.silent_after)
    return got_ram();
  ++s.epoch;
  s.stage = Stage::powering;
  s.awaiting_ram = true;
  s.power_certain = false;
  s.requested_since = w.now;
  add(effect::Call::arm);
}

// `requested_since`: when the task was created, perhaps before a restart of this controller. The task ends
// with the machine's request for its RAM system, the operator's report, or the RAM system's hello (got_ram).
void NodeTurn::request_netboot() {
  request_manual("restart it and boot it from the network", s.requested_since, effect::Call::cycle);
}

void NodeTurn::request_manual(const std::string& task, SteadyMs since, effect::Call call) {
  const SteadyMs until = std::max(since + s.person->within, w.now + 1);
  const std::string& where = s.person->where;
  s.stage = Stage::powering;
  s.task = task;
  add(effect::Leave{Limits::lane_of(s.action().kind)});
  set_wait({fmt::format("by hand until {}: {}{}", to_iso8601(w.wall + (until - w.now)), task,
                        where.empty() ? "" : " (" + where + ")"),
            "the effect of the task, or `muster power done " + s.name + "`", s.power_error,
            "quarantine: not done in time", since, until});
  add(call);
  set_timer(until - w.now, Next::manual_task_expired);
  add(effect::Kick{});  // barriers do not wait for this node
}

void NodeTurn::person_answered() {
  add(effect::StopTimer{});
  add(effect::Enter{lane_of(s)});
}

void NodeTurn::manual_task_expired() {
  fail_attempt(fail(Code::denied, fmt::format("manual task not completed within {}: {}",
                                              to_human(s.person->within), s.task)),
               Json());
}

// ---- the power cycle ----

void NodeTurn::on(const input::Cycled& cycled) {
  // The time for a boot begins when the provider's system was ordered to hand over.
  if (s.reinstall && cycled.status.ok()) s.deadline = w.now + w.plan.limits.netboot;
  if (!s.person) return on_powered(cycled.status);
  person_answered();
  if (cycled.status.ok()) {
    s.power_requested = w.now;
    s.deadline = s.power_requested + w.plan.limits.netboot;
    publish("power", {{"action", "restarted by hand"}});
    if (w.log.of(s.action().id).state == ActionState::intent)
      transition(ActionState::started, {{"by_hand", true}});
  }
  on_powered(cycled.status);
}

void NodeTurn::switch_on() {
  s.stage = Stage::powering;
  s.power_requested = w.now;
  if (s.reinstall) return reinstall();
  set_wait({"power cycle into the RAM system", switched_by() + "'s answer", s.power_error,
            "the power state is read", s.power_requested, s.power_requested + w.timing.power_call});
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
            "the new system, over SSH", s.power_error, "retry, then quarantine", s.power_requested,
            std::max(s.deadline, s.power_requested + s.actions.front()->timeout)});
  add(effect::Call::reinstall);
}

void NodeTurn::on_powered(const Status& result) {
  s.stage = Stage::awaiting;
  s.power_answered = w.now;
  if (result.ok()) {
    s.power_certain = true;
    s.power_error.clear();
    s.power = PowerState::on;
    return consider();
  }
  withdraw_leave();
  const Error& error = result.error();
  const std::string what = s.in_band     ? "it cannot hand over to the RAM system: "
                           : s.reinstall ? "its provider: "
                                         : "power: ";
  s.power_error = error.message;
  if (error.code == Code::timeout) return consider();  // unknown: look
  if (error.code == Code::failed || error.code == Code::conflict)
    return lose_attempt(what + error.message, true);
  if (error.code != Code::unavailable) return fail_attempt(fail(error.code, what + error.message), Json());
  s.retry = s.retry ? std::min(s.retry * 2, w.timing.retry_last) : w.timing.retry_first;
  pause(s.retry,
        {s.in_band ? "it cannot hand over to the RAM system now"
                   : switched_by() + " did not accept the " + (s.reinstall ? "installation" : "power cycle"),
         (s.in_band ? "its agent" : switched_by()) + "'s answer", error.message, "retry", w.now,
         w.now + s.retry},
        Next::netboot);
}

void NodeTurn::power_off() {
  ++s.epoch;
  if (s.person) return request_manual("power it off", s.started, effect::Call::switch_off);
  s.stage = Stage::powering;
  set_wait({"power off", switched_by() + "'s answer", s.power_error, "the power state is read", w.now,
            w.now + w.timing.power_call});
  add(effect::Call::switch_off);
}

void NodeTurn::on(const input::SwitchedOff& off) {
  if (s.cycled) return on_cut(off.status);
  if (s.person) person_answered();
  if (off.status.ok()) return succeed(Json::object());
  const Error& error = off.status.error();
  if (s.person || (error.code != Code::timeout && error.code != Code::unavailable))
    return fail_attempt(fail(error.code, "power: " + error.message), Json());
  if (const SteadyMs since = alone(); since && w.now >= s.deadline) return wait_alone(since, Next::power_off);
  if (w.now >= s.deadline) return lose_attempt("power: " + error.message, false);
  pause(
      w.timing.look_again,
      {"power off", switched_by() + "'s answer", error.message, "retry", w.now, w.now + w.timing.look_again},
      Next::power_off);
}

// ---- waking a silent node ----

// While a node is powered on, the executor only waits: the state of its system is unknown.
void NodeTurn::wake() {
  if (agent.contact && w.now - agent.contact < w.timing.silent_after)
    return succeed({{"boot_id", agent.boot_id}});
  if (s.person && s.stayed_off == 0) return wake_by_hand();
  if (w.now >= s.deadline) {
    const TimeMs since = w.others.row_of(s.name).last_seen;
    return fail_attempt(
        fail(Code::conflict, fmt::format("{}; {}; to reinstall it, run `muster reimage {}`",
                                         since > 0 ? "silent since " + to_iso8601(since) : "no contact",
                                         power_text(situation()), s.name)),
        Json());
  }
  if (!s.person && (!s.looked || w.now >= s.looked + w.timing.wake_look)) return look();
  if (s.power == PowerState::off && s.stayed_off < w.timing.power_tries) return power_on();
  const SteadyMs until = s.person ? s.deadline : std::min(s.deadline, s.looked + w.timing.wake_look);
  set_wait({"the agent is silent", "a message from its agent", power_text(situation()), "quarantine",
            s.started, s.deadline});
  set_timer(until - w.now, Next::consider);
}

void NodeTurn::wake_by_hand() {
  ++s.epoch;
  ++s.stayed_off;
  request_manual("power it on", s.started, effect::Call::switch_on);
}

void NodeTurn::power_on() {
  ++s.epoch;
  ++s.stayed_off;
  const SteadyMs at = w.limits.next_power_on(w.now);
  add(effect::ReservePowerOn{});
  s.deadline = std::max(s.deadline, at + s.action().timeout);  // the time for a boot begins then
  pause(at - w.now,
        {"power on", switched_by() + "'s answer", s.power_error, "the power state is read", w.now,
         at + w.timing.power_call},
        Next::power_on);
}

void NodeTurn::on(const input::SwitchedOn& on) {
  s.stage = Stage::awaiting;
  s.power_error = on.status.ok() ? "" : on.status.error().message;
  if (s.person) {
    person_answered();
    s.deadline = w.now + s.action().timeout;  // the time for a boot begins now
    return consider();
  }
  s.looked = w.now;
  s.power.reset();
  if (is_for_slot(s.action().kind)) s.off_since = {}, s.power_answered = w.now;
  consider();
}

void NodeTurn::look() {
  ++s.epoch;
  s.stage = Stage::looking;
  set_wait({"reading the power state", switched_by() + "'s answer", s.power_error, "a decision", w.now,
            w.now + w.timing.power_call});
  add(effect::Call::look);
}

void NodeTurn::on(const input::PowerSeen& seen) {
  if (s.stopping) {
    if (seen.state.ok() && *seen.state == PowerState::off) return end_stop("shut down");
    const DurationMs left = s.stop_requested + w.timing.stop_wait - w.now;
    if (left <= 0)
      return end_stop(
          fmt::format("did not shut down within {}: its power is cut", to_human(w.timing.stop_wait)));
    return pause(std::min(left, w.timing.stop_look), s.wait, Next::await_stop);
  }
  s.stage = Stage::awaiting;
  s.looked = std::max(w.now, s.power_requested + 1);
  s.power.reset();
  s.power_error = seen.state.ok() ? "" : seen.state.error().message;
  if (seen.state.ok()) s.power = *seen.state;
  if (s.power != PowerState::off)
    s.off_since = {};
  else if (!s.off_since)
    s.off_since = s.looked;
  consider();
}

}  // namespace muster
