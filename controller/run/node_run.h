// One node in a run, as a value. take(state, input, around) returns the new state and effects. Pure function.
// An input is an event: the node's turn came, a row is durable, a port answered, a timer fired, its agent
// reported, it was given up. An effect is what the executor does in response: rows to write, calls of ports,
// an order to offer. rule_for() is the only table of which stage accepts which input. Timeouts are in
// node_state.h, faults of other nodes in probe_verdict.h; this file has the sequence of attempts.
// The intent of an attempt is durable before any call of a port for it; when an attempt ends, its order, its
// timer and its boot service end with it; an answer is matched to its attempt by `epoch`, which changes when
// a pending call no longer counts. Thread safety: plain value types; never reads a clock.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/event_kind.h"
#include "base/json.h"
#include "base/names.h"
#include "base/result.h"
#include "base/steady.h"
#include "base/time.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/ports/run_ports.h"
#include "controller/ports/store.h"
#include "controller/power/describe/driver_description.h"
#include "controller/run/hooks.h"
#include "controller/run/node_state.h"
#include "controller/run/probe_verdict.h"
#include "controller/run/rings.h"
#include "controller/run/run_limits.h"
#include "controller/run/step_log.h"

namespace muster {

// The known state of a node's agent, which outlives runs. Thread safety: plain value type.

struct KnownAgent {
  std::optional<wire::Mode> mode;
  std::string boot_id;
  std::string slot;       // root slot it runs from (Hello::slot); "": none, or not known yet
  bool trial = false;     // a trial boot (Hello::trial), from its last report
  bool greeted = false;   // it sent a hello to this process; else only its row is known
  SteadyMs contact = {};  // last message from it in this process
  SteadyMs spoke = {};    // last message from the boot that sent the hello; a later boot may send messages
                          // before its hello was handled
  TimeMs seen = 0;        // `contact` as wall time, for display
  SteadyMs silent_since = {};   // its last contact; later if it could not report
  SteadyMs returned = {};       // when it last reported again after silence or a boot
  bool loader_skipped = false;  // Hello::loader_skipped
};

// A failure that is being judged: another node may be at fault, but that is not known yet.
struct Weighing {
  Error error;
  std::shared_ptr<const Json> result;
  FailedProbe probe;
};

// What belongs to one attempt of one action, and to nothing after it: a new attempt is `attempt = {}`.
struct Attempt {
  SteadyMs deadline = {};
  bool with_netboot = false;  // its action's order comes after a power cycle into the RAM system
  bool awaiting_ram = false;  // the RAM system was ordered, and its agent has not sent a hello since
  bool offered = false;       // the action's order is on offer
  bool leaving = false;       // the order to hand over to the RAM system is on offer
  bool departed = false;      // its agent reported that it restarts
  struct Power {
    bool certain = false;  // the call had its effect
    SteadyMs requested = {}, answered = {}, looked = {};
    int stayed_off = 0;              // power cycles repeated because power was off after them
    std::optional<PowerState> seen;  // none: not read since the last call
    SteadyMs off_since = {};         // every reading since then showed it off
    std::string error;
    DurationMs retry = 0;
  } power;
  // Its installed system is shutting down, and the power cycle waits for that; once per attempt.
  struct Stop {
    bool pending = false;
    SteadyMs requested = {};
    OrderId order = {};
  } stop;
  struct ByHand {
    std::string task;     // of the person
    SteadyMs since = {};  // when it was requested, perhaps before a restart of the controller
  } by_hand;
  // Of boot_slot and return_slot.
  struct Slot {
    bool sent = false;     // its order may have reached its agent, perhaps before a restart of the controller
    bool cycled = false;   // its power was cycled
    bool cutting = false;  // it may be off because of that, and was not powered on again yet
    SteadyMs left = {};    // when its agent reported that it is leaving the system
  } slot;
  std::optional<Weighing> weighing;
  // Silences of all agents, in which the node's time does not run.
  struct Alone {
    SteadyMs from = {};  // of the present one; none: an agent reports
    DurationMs given_back = 0;
  } alone;
  // As its agent last reported it.
  struct Progress {
    double done = 0, total = 0, first_done = 0;
    SteadyMs first_at = {}, last_at = {};
    std::string text;
  } progress;
};

// Of the latest attempt, until the next one begins: the rows of its end, and messages of its agent in the
// pause that follows, refer to it.
struct LatestAttempt {
  int number = 0;
  SteadyMs started = {};
  std::string boot_before;  // boot id of its agent when the attempt began
};

struct PowerControl : Switcher {
  const Json* reinstall = nullptr;  // in the plan: its provider reinstalls it, instead of a power cycle
  // True if its own agent hands over to the RAM system.
  bool hands_over() const { return !reinstall && !can_netboot(by); }
};

// What the attempts of the current action led to.
struct Verdicts {
  std::map<std::string, int> excused;  // how many attempts did not count, by the node at fault
  // The nodes left out of this attempt as a second opinion, and why.
  std::map<std::string, std::string> without;
  std::vector<Json> results;  // of a check with further orders: its own result, then one of each order
  Json follow;                // params of the next order; null: the action's own
};

// What operators see, and nothing is decided by.
struct Shown {
  Wait wait;
  std::string unit;  // of the last progress
};

// What is next when the row is durable.
namespace after_row {
struct Effect {};  // the intent is durable
struct Begin {     // another attempt
  bool with_netboot = false;
};
struct Retry {  // a short pause, then another attempt
  std::string reason;
};
struct GiveUp {
  std::string reason;
};
struct Advance {};   // the success is durable
struct Close {};     // the node's own row is durable
struct TurnBack {};  // its return to the old system is recorded
}  // namespace after_row
using AfterRow = std::variant<after_row::Effect, after_row::Begin, after_row::Retry, after_row::GiveUp,
                              after_row::Advance, after_row::Close, after_row::TurnBack>;

// What is next when the pause is over.
enum class AfterPause {
  begin,
  netboot,
  switch_on,
  await_stop,
  power_off,
  power_on,
  cut,  // cut its power again: the last call had no answer
  rearm,
  weigh,
};

struct NodeRun {
  enum class Stage {
    pending,     // its next action has not begun
    committing,  // a row is being written to the store; `next` is an AfterRow
    powering,    // a call of the power or the boot service is pending; a timer is a manual task's
    looking,     // the power state is being read
    awaiting,    // consider() decides, also when the timer fires
    pausing,     // before a retry; `next` is an AfterPause
    done,
    quarantined,
    not_started,
  };
  using Next = std::variant<std::monostate, AfterRow, AfterPause>;

  // From the plan and the spec.
  NodeName name;
  std::vector<const Action*> actions;
  // The actions that replace the remaining ones after one failed for good: they return it to its old system.
  std::vector<const Action*> rescue;
  PowerControl control;
  bool only_serves = false;  // it only serves its storage to others, and keeps its state

  bool returning = false;  // it executes `rescue`, or has completed it: see returned()
  size_t index = 0;
  bool begun = false;
  Stage stage = Stage::pending;
  Next next;
  uint64_t epoch = 0;
  LatestAttempt latest;
  // Boot id of the system whose preconditions for leaving were confirmed by its agent; "": none.
  std::string left_boot;
  Attempt attempt;
  Verdicts verdicts;

  // How it ended, or why it returns.
  std::string reason;
  std::string failed_action;  // the action whose failure is the reason
  bool given_back = false;    // it returns, and kept_by_jobs()
  SteadyMs left_at = {};      // quarantined or stood down
  Shown shown;

  const std::vector<const Action*>& way() const { return returning ? rescue : actions; }
  const Action& action() const { return *way()[index]; }
  bool acts() const { return index < way().size(); }  // it has an action left
  // It works in its previous system: the run did not bring it into the new one.
  bool returned() const { return returning && stage == Stage::done; }
  bool over() const {
    return stage == Stage::done || stage == Stage::quarantined || stage == Stage::not_started;
  }
};

namespace input {
struct Begin {};   // its action's turn came, and the action's lane has capacity
struct Settle {};  // it has no action left, and its own row was not written
struct Resume {};  // the controller came back in the middle of its action
struct Durable {};
struct Timer {};
struct Armed {
  Status status;
};
struct Rearmed {
  Status status;
};
struct LeaveOrder {
  Result<Json> params;
};
struct Cycled {
  Status status;
};
struct SwitchedOff {
  Status status;
};
struct SwitchedOn {
  Status status;
};
struct PowerSeen {
  Result<PowerState> state;
};
struct Contact {
  bool after_silence = false;
};
struct Greeting {
  Hello hello;
  bool new_boot = false;
};
struct Said {
  wire::Event event;
};
struct GiveUp {
  std::string reason;
  bool for_good = false;  // also one that could return to its old system is quarantined
};
struct StandDown {
  std::string reason;
};
}  // namespace input
using Input = std::variant<input::Begin, input::Settle, input::Resume, input::Durable, input::Timer,
                           input::Armed, input::Rearmed, input::LeaveOrder, input::Cycled, input::SwitchedOff,
                           input::SwitchedOn, input::PowerSeen, input::Contact, input::Greeting, input::Said,
                           input::GiveUp, input::StandDown>;

// How an input is handled in a stage. `ignore`: it may come at any time, and has no effect in this stage.
// `refuse`: an internal error; it has no effect and is reported.
enum class Rule { take, ignore, refuse };
Rule rule_for(NodeRun::Stage stage, const Input& input);

namespace effect {
// A change of the node's own row; may be carried out later, so it captures by value.
struct Change {
  std::function<void(NodeRow&)> change;
};
using Draft = std::variant<JournalRow, Change, DeleteJoinTokens>;
// All or nothing. `awaited`: input::Durable follows.
struct Commit {
  std::vector<Draft> rows;
  bool awaited = false;
};
struct Publish {  // observers
  EventKind kind;
  Json data;
};
// Calls of the power or boot service; an answer comes back as an input.
// `restore`: power on, result ignored; for a node left in the middle of a power cycle.
enum class Call {
  arm,
  rearm,
  leave_order,
  disarm,
  cycle,
  reinstall,
  switch_off,
  switch_on,
  look,
  forget,
  restore
};
struct Offer {
  wire::WorkOrder order;
};
struct Withdraw {
  OrderId order;
};
struct LetGo {
  OrderId order;
};
struct SetTimer {
  DurationMs delay = 0;
};
struct StopTimer {};
struct Enter {
  Limits::Lane lane;
};
struct Leave {
  Limits::Lane lane;
};
struct ReservePowerOn {};
struct CountSilenceFrom {  // the node's silence is counted from `silent_since` on
  SteadyMs silent_since;
};
struct Succeeded {  // the action's success is durable
  std::string action;
};
struct Took {
  ActionKind kind;
  DurationMs time;
};
struct Quarantine {  // quarantines another node, because of what this one reported
  NodeName node;
  std::string reason;
};
struct Absent {  // marks another node as absent from now on
  NodeName node;
};
struct Committed {};  // the system that it runs is no longer a trial boot, whatever its agent reported before
struct GoOn {};       // feed input::Timer to the node right after the preceding effects
struct Kick {};       // other nodes may now be able to proceed: check them again
}  // namespace effect
using Effect =
    std::variant<effect::Commit, effect::Publish, effect::Call, effect::Offer, effect::Withdraw,
                 effect::LetGo, effect::SetTimer, effect::StopTimer, effect::Enter, effect::Leave,
                 effect::ReservePowerOn, effect::CountSilenceFrom, effect::Succeeded, effect::Took,
                 effect::Quarantine, effect::Absent, effect::Committed, effect::GoOn, effect::Kick>;

// The other nodes and the rows. Does not change during a turn.
class Others {
 public:
  virtual ~Others() = default;
  virtual KnownAgent agent_of(const NodeName& node) const = 0;
  virtual NodeRow row_of(const NodeName& node) const = 0;
  // True if something may be running on the node: it was seen, or it is unknown whether it was.
  virtual bool ever_seen(const NodeName& node) const = 0;
  // True for a declared node that was in no run yet, and for a name that is not a node's.
  virtual bool never_seen(const NodeName& node) const = 0;
  virtual bool known(const NodeName& node) const = 0;
  // True if the node does not take part now: quarantined in this run or returning to its old system; or
  // outside the run and not accepted, or on trial; or found absent and silent since then. `gone_since`: and
  // it left at `time` or later.
  virtual bool gone(const NodeName& node) const = 0;
  virtual bool gone_since(const NodeName& node, SteadyMs time) const = 0;
  // Since when all agents have been silent, though several should report; none: some agent reports.
  virtual SteadyMs alone_since() const = 0;
};

struct Around {
  SteadyMs now = {}, began = {};  // began: start of this process of the controller
  TimeMs wall = 0;                // `now` as wall time, for display
  const RunRow& run;
  const Plan& plan;
  const StepLog& log;
  const Limits& limits;
  const ExecutorTiming& timing;
  const ExecutorHooks& hooks;
  const Others& others;
  const Rings& rings;
};

struct Turn {
  NodeRun state;
  std::vector<Effect> effects;
  bool refused = false;
};
Turn take(NodeRun state, Input input, const Around& around);

// The agent keeps the result of an attempt under this id for good. It contains the time of the run's start,
// because a new database, or one restored from a backup, uses the numbers of old runs again.
OrderId order_id(const RunRow& run, const std::string& action, int attempt);
// True if this is the node's current order: it is on offer, or will be.
bool expects(const NodeRun& node, const RunRow& run, const OrderId& order);

// The states point into the plan.
std::map<std::string, NodeRun> nodes_of(const Plan& plan, const PowerPort& power);

// True if nothing was begun except writing a slot while its jobs run: the node works as before the run.
bool undisturbed(const NodeRun& node, const StepLog& log);
// True if its jobs were waited for, and it never left its system: they did not end, or its agent refused to
// leave (refused_to_leave()). That is no failure: it works as before once it is resumed.
bool kept_by_jobs(const std::vector<const Action*>& actions, const StepLog& log);
// Skips steps of the way back that a node does not need: those that resume a node that was never drained.
// Returns false if there were none.
bool pass_needless(NodeRun& node, const StepLog& log);

// Returns the lane that the node occupies during its action; a node that waits for a person occupies none.
Limits::Lane lane_of(const NodeRun& node);
// False if the wait is the same as before.
bool note_wait(NodeRun& node, Wait wait);
// Returns the row for a node that succeeded and is quarantined nevertheless.
JournalRow quarantine_row(NodeRun& node, const RunRow& run, const std::string& reason, SteadyMs now,
                          TimeMs wall);

}  // namespace muster
