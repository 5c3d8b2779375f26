// Executor: carries out one approved plan. No choices left but when to look again, when to try again, and
// when to give a node up.
//
// Owned by the daemon (or the simulation, unmodified); works on ports only. Promises:
//   - nothing outside the plan: effects are those of the plan's actions. An `image` or `boot_disk` action
//      includes the right to netboot
//     its own node again when its RAM agent was lost; nothing else is implied by anything;
//   - the intent row of an attempt is durable before its effect, the result row before anything that depends
//      on it;
//   - a node that a person switches (PowerPort::by_hand) is asked for, waits with a deadline, and holds no
//     place and no node that does not need it;
//   - a node that nothing can switch (PowerPort::switches) is brought into the RAM system by an order to its
//     own agent, and by nothing else;
//   - an installed system that answers is asked to stop before its power is cycled, and switched off hard
//      only when it does not;
//   - unknown is not failed: a power call without answer is looked at, an agent that is silent is looked at,
//      then decided;
//   - a quarantined node holds nobody but those that depend on it hard; the run goes on within the failure
//      budget;
//   - a failed step about another node is judged only when it is known whether that node is there
//      (controller/run/blame.h);
//   - every wait has a reason, an awaited fact, a deadline and what happens next: why(), progress();
//   - resume() after a crash continues from the journal: orders are offered again under the same id, power
//      is looked at first. After a
//     long absence it does nothing but end the run as cancelled: an operator plans anew.
// The executor is the only writer of NodeRows: hello, facts, states. Others change one through set_node().
// An event may be acknowledged before its rows are durable: after a crash the order is offered again and the
// agent reports again.
// Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/machine.h"
#include "base/reactor.h"
#include "controller/plan/plan.h"
#include "controller/run/blame.h"
#include "controller/run/limits.h"
#include "controller/run/node_state.h"
#include "controller/run/ports.h"
#include "controller/run/step_log.h"
#include "controller/store/store.h"

namespace muster {

// One thing that happened, for live views. kinds: run {state}, action {action, event, attempt, title, phase,
// message}, wait {reason, awaited, until, next}, power {action}, step / progress / log (as the agent sent
// them, plus action), node {state, reason}.
struct RunEvent {
  TimeMs time = 0;
  int64_t run = 0;
  std::string node, kind;
  Json data = Json::object();
};

struct ExecutorPorts {
  Store& store;
  PowerPort& power;
  BootPort& boot;
  LinkPort& link;
};

// What only the results of all nodes together say, when a run ends.
struct Conclusion {
  struct Node {
    std::string name;
    bool quarantine = false;  // else degraded: it works, a part of it is slow
    std::string reason;
  };
  std::vector<Node> nodes = {};  // of those that came through; the others are accepted
  std::vector<Write> rows = {};  // written with the end of the run, all or nothing
};

// More orders of a `check` action, after one whose result says that something is wrong and not what.
struct FollowUp {
  Json order;   // params of the next order; null: enough is known
  Json result;  // then: what the action succeeds with
};

struct ExecutorHooks {
  // Verdict on a `check` action from its result {"steps": [...]}. Null: the agent's own word decides.
  std::function<Status(const Action&, const Json& result)> judge = {};
  // Why a node that came through this `check` action may not be called accepted before the run is concluded;
  // "": it may.
  std::function<std::string(const Action&, const Json& result)> reservation = {};
  // Asked when an attempt of a `check` action is over for good, with its result, then after each order it
  // asked for, with all results in order; the same answer to the same question. nullopt, which is for the
  // first time only: the attempt's own verdict stands.
  std::function<std::optional<FollowUp>(const Action&, const std::vector<Json>& results)> follow_up = {};
  // Asked once, when everything that happened in the run is durable; the row has its last state. Not for a
  // cancelled run.
  std::function<Conclusion(const RunRow&)> conclude = {};
  // The kernel panic that a node's console showed since then; "": none was seen.
  std::function<std::string(const std::string& node, SteadyMs since)> panic = {};
  std::function<void(const RunEvent&)> observe = {};
  std::function<void(const RunRow&)> ended = {};  // the run's last row is durable
};

// Names an attempt for the agent that carries it out, which keeps for good what became of it. A database that
// began anew, or was put back from a backup, gives out the numbers of old runs again: the time of the run's
// start makes it another id.
std::string order_id(const RunRow& run, const std::string& action, int attempt);

class Executor {
 public:
  Executor(Reactor& reactor, ExecutorPorts ports, ExecutorHooks hooks, ExecutorTiming timing = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Starts a run of `plan` (stored before, by its digest). conflict while another run is active. `done` gets
  // the run's id when its row is durable.
  void start(const Plan& plan, const std::string& approved_by, std::function<void(Result<int64_t>)> done);
  // Continues a run that was `running` when the controller ended, or ends it when that is long ago. not_found
  // / conflict / corrupt (plan or journal unreadable).
  Status resume(int64_t run);
  // Gives the whole run up: nothing new starts, offers are withdrawn, it ends as cancelled.
  void cancel(const std::string& reason);
  // Takes one node out, as if it had failed with that reason.
  void quarantine(const std::string& node, const std::string& reason);

  // From the agent link. Each event once (the link drops repeated ones).
  void on_hello(const Hello& hello);
  void on_event(const std::string& node, const wire::Event& event);
  void on_contact(const std::string& node, const Presence& present = {});

  // Whether this order is what the node has to do now: it is on offer, or will be.
  bool expects(const std::string& node, const std::string& order) const;
  bool active() const { return run_.id != 0 && !ended_; }
  int64_t run_id() const { return run_.id; }
  const Plan& plan() const { return plan_; }
  // {"node","state","reason","action","title","phase","attempt",
  //  "wait":{reason,awaited,observed,since,until,next},"others_took_ms"}
  Json why(const std::string& node) const;
  // {"run","kind","state","started",
  //  "nodes":[{node,state,phase,title,action,attempt,index,of,percent,rate,unit,eta_ms,reason}]}
  Json progress() const;

  // Newest row of a node, with what is on its way to the store; a default row when it is unknown.
  NodeRow node_row(const std::string& node) const;
  // `change` may run later, when the row could be read: it keeps what it needs by value. Until then nothing
  // is written.
  void set_node(const std::string& node, const std::function<void(NodeRow&)>& change);
  // The system its agent runs, as far as it is known.
  std::optional<wire::Mode> mode_of(const std::string& node);
  // How long its agent is silent now; nullopt: never heard, or not since the database is an older copy of
  // itself.
  std::optional<DurationMs> silent_for(const std::string& node) const;
  // Since when it is silent, for people; 0: it is not, or this process does not run long enough to say so.
  TimeMs silent_since(const std::string& node) const;
  // The database is an older copy, and the node was not heard since it was put there: its row may say
  // anything but the truth.
  bool outdated(const std::string& node) const;
  // Forgets what is known of a node whose row is being deleted; false while it takes part in an active run.
  bool forget(const std::string& node);
  // Which node each known machine is; undeclared ones are nobody's. Null while the store cannot be read.
  // Shared: every power call for a node never seen takes it.
  std::shared_ptr<const Machines> machines() const;
  const StepLog& log() const { return log_; }

 private:
  struct Runtime;  // of one node in the run
  struct Live;     // what is believed about a node's agent; outlives runs
  using Rows = std::vector<Write>;

  Runtime* runtime(const std::string& node) const;
  Live& live(const std::string& node);
  void load_rows();
  void adopt(const Plan& plan, const RunRow& row);
  void write(Rows rows, std::function<void()> then = {});
  void flush();
  void commit(std::shared_ptr<Rows> rows, std::shared_ptr<std::vector<std::function<void()>>> then);
  void transition(Runtime& node, ActionState to, Json data, std::function<void()> then = {}, Rows extra = {});
  void observe(const std::string& node, const std::string& kind, Json data) const;
  Rows changed(const std::string& node, const std::function<void(NodeRow&)>& change);
  Write changed_row(const std::string& node, const std::function<void(NodeRow&)>& change);
  void read_later();
  void believe_row(const std::string& node, Live& agent) const;
  void hear(Live& agent);
  bool unproven(const NodeRow& row) const;
  bool ever_seen(const std::string& node) const;
  SteadyMs steady_of(TimeMs wall) const;
  TimeMs wall_of(SteadyMs at) const;

  void kick();
  void kick_node(Runtime& node, int quarantined);
  bool ready(Runtime& node);
  bool settled_for(const std::string& action, bool hard, std::string& never) const;
  void begin(Runtime& node, bool with_netboot);
  void effect(Runtime& node);
  void netboot(Runtime& node);
  bool should_stop(const Runtime& node) const;
  void stop_in_order(Runtime& node);
  void await_stop(Runtime& node);
  void end_stop(Runtime& node, const std::string& outcome);
  void withdraw_stop(Runtime& node);
  wire::WorkOrder stop_order(const Runtime& node) const;
  wire::WorkOrder leave_order(const Runtime& node) const;
  void leave(Runtime& node);
  void order_leave(Runtime& node);
  void withdraw_leave(Runtime& node);
  void on_left(Runtime& node, const wire::Event& event);
  void switch_on(Runtime& node);
  void reinstall(Runtime& node);
  void on_powered(Runtime& node, Status result);
  void power_off(Runtime& node);
  void wake(Runtime& node);
  void power_on(Runtime& node);
  void look(Runtime& node);
  void offer(Runtime& node);
  void withdraw(Runtime& node);
  Situation situation(const Runtime& node) const;
  void consider(Runtime& node);
  void pause(Runtime& node, DurationMs delay, Wait wait, std::function<void(Runtime&)> then);
  void on_finished(Runtime& node, const wire::Event& event);
  void on_progress(Runtime& node, const Json& data);
  Status accept_inventory(Runtime& node, const Json& result, Rows& rows);
  void succeed(Runtime& node, Json result, Rows extra = {});
  void fail_attempt(Runtime& node, const Error& error, Json result);
  void weigh(Runtime& node, const Error& error, std::shared_ptr<const Json> result, const FailedProbe& probe);
  bool follow_up(Runtime& node, const Json& result);
  void end_failed(Runtime& node, const Error& error, Json result, const Blame& blame);
  void accuse(const std::string& name, const std::string& reason);
  FailedProbe failed_probe(const Runtime& node, const Json& result) const;
  bool tries_left(const Runtime& node) const;
  void lose_attempt(Runtime& node, const std::string& reason, bool with_netboot);
  JournalRow quarantine_row(const std::string& node, const std::string& reason,
                            const std::string& action) const;
  void give_up(Runtime& node, const std::string& reason);
  void stand_down(Runtime& node, const std::string& reason);
  Rows settled(Runtime& node, const Json& last = nullptr);
  Rows woken(const Runtime& node);
  std::string reservation(const Runtime& node, const Json& last) const;
  void end_attempt(Runtime& node);
  DurationMs time_for(const Action& action) const;
  Limits::Lane lane_of(const Runtime& node) const;
  void netboot_by_hand(Runtime& node);
  void ask_to_netboot(Runtime& node, SteadyMs since);
  void ask_person(Runtime& node, const std::string& task, SteadyMs since,
                  const std::function<void(const std::string&, PowerPort::Done)>& ask,
                  const std::function<void(Runtime&, Status)>& then);
  void wake_by_hand(Runtime& node);
  void got_ram(Runtime& node);
  void hello_during(Runtime& node, const Hello& hello, bool new_boot);
  bool claim_or_pause(Runtime& node);
  void set_wait(Runtime& node, Wait wait);
  bool gone(const std::string& node) const;
  bool gone_since(const std::string& node, SteadyMs time) const;
  bool never_seen(const std::string& name) const;
  void finish_run(const std::string& state, const std::string& reason = "");
  void end_run(const std::string& state, const std::string& reason);
  void conclude(Rows& rows);
  void resume_node(Runtime& node);
  void rearm(Runtime& node);
  void stay_alive();
  void sign();
  wire::WorkOrder order_for(const Runtime& node) const;
  std::string order_id(const Runtime& node) const;
  Json node_progress(const Runtime& node) const;
  // A callback that does nothing when the executor, the run or the attempt it was made for is gone.
  template <typename F>
  auto bound(Runtime& node, F callback);

  Reactor& reactor_;
  ExecutorPorts ports_;
  ExecutorHooks hooks_;
  ExecutorTiming timing_;
  std::shared_ptr<bool> alive_;
  Plan plan_;
  RunRow run_;
  bool ended_ = true, ending_ = false, kick_posted_ = false;
  Reactor::TimerId sign_timer_ = 0;
  std::set<std::string> proven_;  // actions whose success is durable
  std::vector<size_t> passed_;    // of each barrier, so many members that nobody has to wait for any more
  StepLog log_;
  Limits limits_;
  std::map<std::string, NodeRow> rows_;
  bool rows_loaded_ = false, unread_ = false, reading_ = false;
  std::vector<std::pair<std::string, std::function<void(NodeRow&)>>>
      held_;                                          // changes that wait for the rows to be read
  mutable std::shared_ptr<const Machines> machines_;  // of rows_; null: to be made again
  std::map<std::string, std::unique_ptr<Live>> live_;
  std::map<std::string, std::unique_ptr<Runtime>> nodes_;
  std::map<std::string, const Action*> actions_;
  // not (any more) at work in this run, and silent when others needed them
  std::map<std::string, SteadyMs> absent_;
  std::map<ActionKind, std::vector<DurationMs>> took_;
  uint64_t epochs_ = 0;
  const SteadyMs began_;  // this process
  Rows unwritten_;        // waiting for the commit under way
  std::vector<std::function<void()>> after_write_;
  bool writing_ = false, complained_ = false;
};

}  // namespace muster
