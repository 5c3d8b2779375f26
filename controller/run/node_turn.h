// NodeTurn: the implementation of take(). Holds the state of one node while one input is handled, and the
// effects so far. Used only by node_run.cc and the files that have its functions by topic: power_cycle.cc,
// attempt_end.cc, attribution.cc, and others. Thread safety: plain value types.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/run/node_run.h"

namespace muster {

// Phases of the plan that are handled specially.
inline constexpr const char* kCommitPhase = "commit";
inline constexpr const char* kPausePhase = "pause";
inline constexpr const char* kResumePhase = "resume";

struct NodeTurn {
  NodeTurn(NodeRun state, const Around& around);

  NodeRun s;
  Attempt& a = s.attempt;
  const Around& w;
  KnownAgent agent;  // its own
  std::vector<Effect> effects;

  // node_run.cc: an attempt
  void on(const input::Begin&);
  void on(const input::Settle&);
  void on(const input::Durable&);
  void on(const input::Timer&);
  void go_on(const after_row::Effect&) { start_effect(); }
  void go_on(const after_row::Begin& again) { begin(again.with_netboot); }
  void go_on(const after_row::Retry& retry) { pause_and_retry(retry.reason); }
  void go_on(const after_row::GiveUp& given) { give_up(given.reason); }
  void go_on(const after_row::Advance&) { advance_to_next(); }
  void go_on(const after_row::Close&) { close(); }
  void go_on(const after_row::TurnBack&) { turn_back(); }
  void go_on(AfterPause next);
  void close();
  void begin(bool with_netboot);
  void start_effect();
  void offer();
  std::vector<std::string> narrow(Json& params, const RingsOfOrder& rings) const;
  bool has_preconditions() const;
  Json preconditions() const;
  void withdraw();
  void consider();
  Situation situation() const;
  SteadyMs alone();
  void wait_alone(SteadyMs since, AfterPause next);
  std::string switched_by() const { return switcher_name(s.control.by); }
  wire::WorkOrder order_for() const;
  OrderId own_order() const;
  DurationMs time_for(const Action& action) const;

  // agent_messages.cc: its agent's messages
  void on(const input::Contact& contact);
  void on(const input::Greeting& greeting);
  void on(const input::Said& said);
  void hello_during(const Hello& hello, bool new_boot);
  void got_ram();
  void on_event(const wire::Event& event);
  void on_progress(const Json& data);
  void on_finished(const wire::Event& event);
  Status accept_inventory(const Json& result, std::vector<effect::Draft>& rows);

  // slot_trial.cc: into the other root slot, and back
  void hello_from_slot(const Hello& hello);
  void came_back(const Hello& hello);
  bool slot_reached();
  bool answer_counts() const;
  void describe_slot(Situation& now) const;
  void on_slot_finished(bool good, const Error& error, Json result);
  void cut_power(const std::string& why);
  void on_cut(const Status& off);
  const Action* trial() const;
  bool tried() const;
  bool committed() const;
  bool commit_ordered() const;
  bool stands_in_new() const;
  void stay_committed();
  bool leaves_its_state() const;
  bool trial_over();
  std::string trial_text() const;
  std::string left_behind() const;
  bool may_go_back() const;
  void go_back(const std::string& why);
  void turn_back();
  std::string state_to_restore() const;
  std::optional<NodeState> state_before() const;
  std::vector<effect::Draft> returned();

  // recovery.cc: after a restart of the controller
  void on(const input::Resume&);
  void resume();
  void rearm();

  // power_cycle.cc: into the RAM system, off, on
  void on(const input::Armed& armed);
  void on(const input::Rearmed& armed);
  void on(const input::LeaveOrder& order);
  void on(const input::Cycled& cycled);
  void on(const input::SwitchedOff& off);
  void on(const input::SwitchedOn& on);
  void on(const input::PowerSeen& seen);
  bool claim_or_pause();
  void netboot();
  bool must_confirm() const;
  bool should_stop() const;
  void stop_in_order();
  void await_stop();
  void end_stop(const std::string& outcome);
  void withdraw_stop();
  void on_stopped(const wire::Event& event);
  void confirm_departure();
  wire::WorkOrder stop_order() const;
  void leave();
  void order_leave();
  void withdraw_leave();
  wire::WorkOrder leave_order() const;
  void on_left(const wire::Event& event);
  void netboot_by_hand();
  void request_netboot();
  void request_manual(const std::string& task, SteadyMs since, effect::Call call);
  void person_answered();
  void manual_task_expired();
  void wake_by_hand();
  void switch_on();
  void reinstall();
  bool has_image() const;
  void on_powered(const Status& result);
  void power_off();
  void wake();
  void power_on();
  bool must_read_power() const;
  void read_power();
  void look();

  // attempt_end.cc: how attempts end
  void on(const input::GiveUp& given) { give_up(given.reason, given.for_good); }
  void on(const input::StandDown& down) { stand_down(down.reason); }
  void end_attempt();
  void succeed(Json result, std::vector<effect::Draft> extra = {});
  void advance_to_next();
  std::string reservation(const Json& last) const;
  std::vector<effect::Draft> settled(const Json& last = nullptr);
  bool tries_left() const;
  void end_failed(const Error& error, Json result, const ProbeVerdict& verdict);
  void pause_and_retry(const std::string& reason);
  void lose_attempt(const std::string& reason, bool with_netboot);
  void give_up(const std::string& reason, bool for_good = false);
  void stand_down(const std::string& reason);

  // attribution.cc: which node is at fault
  void fail_attempt(const Error& given, Json result);
  FailedProbe failed_probe(const Json& result) const;
  void weigh();
  bool follow_up(const Json& result);

  // plumbing
  using Stage = NodeRun::Stage;
  void add(Effect effect) { effects.push_back(std::move(effect)); }
  void publish(EventKind kind, Json data) { add(effect::Publish{kind, std::move(data)}); }
  void set_wait(Wait wait);
  void await_store(AfterRow next);
  void pause(DurationMs delay, Wait wait, AfterPause next);
  void set_timer(DurationMs delay) { add(effect::SetTimer{delay}); }
  JournalRow row(const std::string& event, Json data) const;  // a journal row of the node
  void step_row(Json data);                                   // writes a row of the attempt, and publishes it
  // Writes one journal row of the current action, and `extra` with it.
  void transition(ActionState to, Json data, std::vector<effect::Draft> extra = {});
  // The same; continues with `next` when the row is durable.
  void transition_then(AfterRow next, ActionState to, Json data, std::vector<effect::Draft> extra = {});
};

// True if an error with this code may go away without a change by an operator, so that a retry makes sense.
bool may_pass(Code code);
// 0 if it does not have the expected type.
double number_of(const Json& data, const char* key);

}  // namespace muster
