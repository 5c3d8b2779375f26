// One node in a run, as a value: take(state, input, around) -> (state, effects). Pure.
//
// An input is something that happened: its turn came, a row is durable, a port answered, a timer ended, its
// agent spoke, somebody gave it up. An effect is something the executor is to do because of it: rows to
// write, calls of ports, an order to offer. Which stage takes which input is in one table, rule_for().
// Patience is node_state.h's, blame is blame.h's; this is the order of things within an attempt and between
// attempts.
//
// Promises: the intent of an attempt is handed to the store, and its durability awaited, before any call of a
// port for it; whatever ends an attempt takes its order, its timer and its boot service with it; an answer
// that an attempt asked for is told apart by its `epoch`, which changes when what was under way no longer
// counts. Thread: any; values only. Never reads a clock.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/run/blame.h"
#include "controller/run/hooks.h"
#include "controller/run/known_agent.h"
#include "controller/run/rings.h"
#include "controller/run/run_limits.h"
#include "controller/run/node_state.h"
#include "controller/run/run_ports.h"
#include "controller/run/step_log.h"
#include "controller/store/store.h"

namespace muster {

// A failure that is weighed: whether another node is to blame for it is not known yet.
struct Weighing {
  Error error;
  std::shared_ptr<const Json> result;
  FailedProbe probe;
};

struct NodeRun {
  enum class Stage {
    pending,     // its next action has not begun
    committing,  // a row is on its way to the store
    powering,    // a call of the power or the boot service is under way
    looking,     // the power state is being read
    awaiting,    // consider() decides
    pausing,     // before another try
    done,
    quarantined,
    not_started,
  };
  // What comes when the row is durable, or when the timer ends.
  enum class Next {
    consider,
    effect,   // the intent is durable
    begin,    // another attempt
    retry,    // a short pause, then another attempt
    give_up,  // for `next_reason`
    advance,  // the success is durable
    close,    // the node's own row is durable
    netboot,
    switch_on,
    await_stop,
    power_off,
    power_on,
    cut,        // its power, again: the last call had no answer
    turn_back,  // it is durable that it goes back to its old system
    rearm,
    weigh,
    nobody_came,
  };

  std::string name;
  std::vector<const Action*> actions;
  // What is done instead of the rest of them once one failed for good: the way back to the system it had.
  std::vector<const Action*> rescue;
  bool returning = false;     // it is on that way, or came to its end: then it is done, and `returned`
  std::string failed_action;  // what that is because of
  size_t index = 0;
  Stage stage = Stage::pending;
  Next next = Next::consider;
  bool next_netboot = false;
  std::string next_reason;
  uint64_t epoch = 0;
  bool begun = false;
  // The attempt under way.
  int attempt = 0;
  bool awaiting_ram = false, power_certain = false, with_netboot = false, offered = false, departed = false;
  // boot_slot, return_slot. `sent`: its order may have reached its agent, in whichever life of the
  // controller. `cycled`: its power was cycled in this attempt. `cutting`: it may be off by that, and is not
  // on again.
  bool sent = false, cycled = false, cutting = false;
  SteadyMs left_system = {};  // when its agent reported that it goes
  // Nothing can boot it from the network: its own agent hands over to the RAM system. `leaving`: that order
  // is on offer.
  bool in_band = false, leaving = false;
  const Json* reinstall = nullptr;  // in the plan: its provider installs it anew, instead of a power cycle
  std::optional<Person> person;     // who switches it, where nothing else does
  std::string task;                 // what they are asked to do
  SteadyMs asked_since = {};
  std::string boot_before;  // boot id of its agent when the attempt began
  SteadyMs power_asked = {}, power_answered = {}, started = {}, deadline = {}, looked = {};
  bool stopping = false;     // its installed system was asked to stop, and the power cycle waits for that
  SteadyMs stop_asked = {};  // once per attempt
  int stayed_off = 0;        // power cycles repeated because power was off after them
  std::optional<PowerState> power;
  SteadyMs off_since = {};  // since when each look showed it off
  std::string power_error;
  DurationMs retry = 0;
  std::optional<Weighing> weighing;
  SteadyMs alone_from = {};   // since then nobody at all is heard, and its time does not pass
  DurationMs given_back = 0;  // of the attempt's time, for such silences
  // Of the action under way, over its attempts.
  std::map<std::string, int> excused;  // how many of them did not count, by whose fault they were
  // whom this attempt is tried without, for a second opinion, and why
  std::map<std::string, std::string> without;
  std::vector<Json> results;  // of a check that is followed up: its own, then one of each order that followed
  Json follow;                // params of the order that follows; null: the action's own
  SteadyMs left_at = {};      // quarantined or stood down
  // For people.
  Wait wait;
  double done = 0, total = 0, first_done = 0;
  SteadyMs first_at = {}, last_at = {};
  std::string unit, text, reason;
  bool rented = false;       // its provider switches it, and cannot boot it from the network
  bool only_serves = false;  // it lets others use its storage, and stays what it is

  const std::vector<const Action*>& way() const { return returning ? rescue : actions; }
  const Action& action() const { return *way()[index]; }
  bool acts() const { return index < way().size(); }  // it has an action left
  // It works, in the system it had before: the run did not get it into the one it was for.
  bool returned() const { return returning && stage == Stage::done; }
  bool over() const {
    return stage == Stage::done || stage == Stage::quarantined || stage == Stage::not_started;
  }
};

// ---- what happens to it ----

namespace input {
struct Begin {};   // its action's turn came, and it has a place in the action's lane
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
  bool for_good = false;  // also one that could go back to its old system is quarantined
};
struct StandDown {
  std::string reason;
};
}  // namespace input
using Input = std::variant<input::Begin, input::Settle, input::Resume, input::Durable, input::Timer,
                           input::Armed, input::Rearmed, input::LeaveOrder, input::Cycled, input::SwitchedOff,
                           input::SwitchedOn, input::PowerSeen, input::Contact, input::Greeting, input::Said,
                           input::GiveUp, input::StandDown>;

// What becomes of an input in a stage. `ignore`: others speak when they like, and now it changes nothing.
// `refuse`: the executor contradicts itself; nothing changes either, and it is reported.
enum class Rule { take, ignore, refuse };
Rule rule_for(NodeRun::Stage stage, const Input& input);

// ---- what is to be done because of it ----

namespace effect {
// A change of the node's own row; may be carried out later, so it keeps what it needs by value.
struct Change {
  std::function<void(NodeRow&)> change;
};
using Draft = std::variant<JournalRow, Change, DeleteJoinTokens>;
// All or nothing. `awaited`: input::Durable is wanted when they are.
struct Commit {
  std::vector<Draft> rows;
  bool awaited = false;
};
struct Tell {  // observers
  std::string kind;
  Json data;
};
// Of the power or the boot service; those with an answer come back as an input.
// `restore`: power on, whatever becomes of it; of a node that is left in the middle of a power cycle.
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
  std::string order;
};
struct LetGo {
  std::string order;
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
struct HearFrom {  // silence is counted from then
  SteadyMs heard;
};
struct Proven {  // the action's success is durable
  std::string action;
};
struct Took {
  ActionKind kind;
  DurationMs time;
};
struct Accuse {  // another node, because of what this one saw
  std::string node, reason;
};
struct Absent {  // another node, now
  std::string node;
};
struct Committed {};  // the system that it runs is not on trial any more, whatever its agent reported before
struct GoOn {};       // with input::Timer, at once: when the effects before this one are carried out
struct Kick {};       // something may have become possible for others
}  // namespace effect
using Effect = std::variant<effect::Commit, effect::Tell, effect::Call, effect::Offer, effect::Withdraw,
                            effect::LetGo, effect::SetTimer, effect::StopTimer, effect::Enter, effect::Leave,
                            effect::ReservePowerOn, effect::HearFrom, effect::Proven, effect::Took,
                            effect::Accuse, effect::Absent, effect::Committed, effect::GoOn, effect::Kick>;

// ---- what it may look at meanwhile ----

// The other nodes and the rows. What it answers does not change during a turn.
class Others {
 public:
  virtual ~Others() = default;
  virtual KnownAgent agent_of(const std::string& node) const = 0;
  virtual NodeRow row_of(const std::string& node) const = 0;
  // Something may run on it: it was seen, or nobody can know.
  virtual bool ever_seen(const std::string& node) const = 0;
  // A declared node that no run was about yet, or no node.
  virtual bool never_seen(const std::string& node) const = 0;
  // A node that anything is known of.
  virtual bool known(const std::string& node) const = 0;
  // Does not take part now: quarantined in this run or on its way back to its old system, or outside of it
  // and not accepted or on trial; or found absent and not heard since. `gone_since`: and it left at `time` or
  // later.
  virtual bool gone(const std::string& node) const = 0;
  virtual bool gone_since(const std::string& node, SteadyMs time) const = 0;
  // Since when nobody at all is heard, though agents of several nodes should be; none: somebody is.
  virtual SteadyMs alone_since() const = 0;
};

struct Around {
  SteadyMs now = {}, began = {};  // began: this process of the controller
  TimeMs wall = 0;                // `now` for people
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

// Names an attempt for the agent that carries it out, which keeps for good what became of it. A database that
// began anew, or was put back from a backup, gives out the numbers of old runs again: the time of the run's
// start makes it another id.
std::string order_id(const RunRow& run, const std::string& action, int attempt);
// Whether this order is what the node has to do now: it is on offer, or will be.
bool expects(const NodeRun& node, const RunRow& run, const std::string& order);

// What each node of the plan begins with, by name. Points into the plan.
std::map<std::string, NodeRun> nodes_of(const Plan& plan, const PowerPort& power);

// Nothing but the write of a slot beside its jobs was begun: it works as it did before the run.
bool undisturbed(const NodeRun& node, const StepLog& log);
// Passes over steps of the way back that a node does not need: those that give it back to its work, where it
// was never taken out of it. False: there were none.
bool pass_needless(NodeRun& node, const StepLog& log);

// The place it takes while its action is under way: who waits for a person holds none that others could have.
Limits::Lane lane_of(const NodeRun& node);
// False: it is the wait that it was in, which goes on.
bool note_wait(NodeRun& node, Wait wait);
// It came through, and is quarantined all the same: the row that says so.
JournalRow condemn(NodeRun& node, const RunRow& run, const std::string& reason, SteadyMs now, TimeMs wall);

}  // namespace muster
