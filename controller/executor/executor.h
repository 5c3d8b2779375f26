// Executor: carries out one approved plan. Its only choices are when to read a state again, when to retry,
// and when to give a node up; node_run.h makes them. The executor carries out the effects that node_run.h
// returns, and handles what concerns several nodes.
//
// Owned by the daemon (or the simulation, unmodified); works on ports only. Promises:
//   - nothing outside the plan: effects are those of the plan's actions. An `image` or `boot_disk` action,
//     and an `inventory` right after a `netboot`, include the right to netboot their own node again when its
//     RAM agent was lost; no other action includes anything that the plan does not list;
//   - the intent row of an attempt is durable before its effect, the result row before anything that depends
//     on it; a row that cannot be written holds up its node, the node's lane and the run's end, but not
//     other nodes, nor the end of a cancelled run;
//   - when all agents stop reporting at once, the controller's own link may be cut: for a while it only reads
//     states (node_state.h);
//   - a node whose power a person switches (Switch::person) becomes a manual task with a deadline; it
//     occupies no lane, and delays no node that does not need it;
//   - a node whose power nothing switches (Switch::agent) is brought into the RAM system by an order to
//     its own agent, and by nothing else;
//   - an installed system that responds is shut down before its power is cycled, and switched off hard only
//     if it does not stop;
//   - unknown is not failed: after a power call without answer, or when an agent is silent, the power state
//     is read before a decision;
//   - a node with a way back (Action::when_failed) that fails returns to its old system and delays no other
//     node; it is quarantined only if that fails, too, or on an operator's order;
//   - a quarantined node delays only the nodes that depend on it hard; the run goes on within the failure
//     budget;
//   - a failed step about another node is judged only when it is known whether that node is reachable
//     (controller/run/probe_verdict.h);
//   - every wait has a reason, an awaited fact, a deadline and what happens next: why(), progress();
//   - after a crash, resume() continues from the journal: orders are sent again under the same id, the power
//     state is read first. After a long absence it only ends the run as cancelled; an operator plans again.
// The executor's NodeTable is the only writer of NodeRows: hello, facts, states. Other code changes one
// through set_node().
// An event may be acknowledged before its rows are durable: after a crash the order is sent again and the
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

#include "base/alive.h"
#include "base/event_kind.h"
#include "base/json.h"
#include "base/names.h"
#include "controller/executor/journal_writer.h"
#include "controller/executor/node_table.h"
#include "controller/plan/plan.h"
#include "controller/ports/run_ports.h"
#include "controller/ports/store.h"
#include "controller/run/gate.h"
#include "controller/run/hooks.h"
#include "controller/run/node_run.h"
#include "controller/run/node_state.h"
#include "controller/run/progress.h"
#include "controller/run/ready_queue.h"
#include "controller/run/run_limits.h"
#include "controller/run/step_log.h"
#include "sys/reactor.h"

namespace muster {

struct ExecutorPorts {
  Store& store;
  PowerPort& power;
  BootPort& boot;
  LinkPort& link;
};

class Executor : private Others {
 public:
  Executor(Reactor& reactor, ExecutorPorts ports, ExecutorHooks hooks, ExecutorTiming timing = {});
  ~Executor() override;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  using Started = std::function<void(Result<int64_t>)>;
  // Starts a run of `plan`, which is stored under `digest`. conflict while another run is active. `done` gets
  // the run's id when the run's row is durable.
  void start(std::shared_ptr<const Plan> plan, const Digest& digest, const std::string& approved_by,
             Started done);
  // Starts a run of a plan that may not be stored yet; slow for a large plan, which is digested and written.
  void start(const Plan& plan, const std::string& approved_by, Started done);
  // Continues a run that was `running` when the controller ended, or cancels it if that is long ago.
  // not_found, conflict or corrupt (plan or journal unreadable). `plan`: its plan, if already read.
  Status resume(int64_t run, std::shared_ptr<const Plan> plan = nullptr);
  // Cancels the run: nothing new starts, offers are withdrawn, it ends as cancelled.
  void cancel(const std::string& reason);
  // Quarantines one node, in the active run as if it had failed with that reason; also one that could return
  // to its old system. `by`: an operator's quarantine lasts until released(). `caller`: that operator.
  void quarantine(const NodeName& node, const std::string& reason, HeldBy by = HeldBy::run,
                  const std::string& caller = "");

  // From the agent link, which passes each event only once (it drops repeated ones).
  void on_hello(const Hello& hello);
  void on_event(const NodeName& node, const wire::Event& event);
  void on_contact(const NodeName& node, const Presence& present = {});

  // True if this is the node's current order: it is on offer, or will be.
  bool expects(const NodeName& node, const OrderId& order) const;
  bool active() const { return run_.id != 0 && !ended_; }
  int64_t run_id() const { return run_.id; }
  const Plan& plan() const { return *plan_; }
  std::shared_ptr<const Plan> shared_plan() const { return plan_; }
  // {"node","state","reason","held_by","held_caller","held_since","action","title","phase","attempt",
  //  "wait":{reason,awaited,observed,since,until,next},"others_took_ms"}; of a node of the newest run also
  // "run" and "run_state" (NodeRunState).
  Json why(const NodeName& node) const;
  // {"run","kind","state","started",
  //  "nodes":[{node,state,phase,title,action,attempt,index,of,percent,rate,unit,eta_ms,reason}]}
  Json progress() const;
  // The nodes of the active run that are at an action, in the order of the plan.
  std::vector<AtWork> at_work() const;

  // Returns the newest row of a node, including writes that are pending; a default row for an unknown node.
  NodeRow node_row(const NodeName& node) const { return book_.row(node); }
  const std::map<std::string, NodeRow>& node_rows() const {
    book_.load();
    return book_.rows();
  }
  // `change`: one of node_changes.h, else for tests. May run later, once the row can be read, so it captures
  // by value; nothing is written before.
  void set_node(const NodeName& node, const std::function<void(NodeRow&)>& change);
  // Changes these nodes and writes `row`, all in one batch, or none; `then` when it is durable. Only while
  // the nodes' rows can be read: machines() is not null.
  void set_nodes(const std::set<NodeName>& nodes, const NodeTable::Change& change, Write row,
                 std::function<void()> then);
  std::optional<wire::Mode> mode_of(const NodeName& node) { return book_.agent(node).mode; }
  // True if the last report of the node's agent to this process came from a trial boot.
  bool on_trial(const NodeName& node) const {
    const KnownAgent* agent = book_.find(node);
    return agent && agent->trial;
  }
  // "" if unknown.
  std::string running_slot(const NodeName& node) const {
    const KnownAgent* agent = book_.find(node);
    return agent ? agent->slot : "";
  }
  // How long its agent has been silent; nullopt: it never reported, or not since the database was restored.
  std::optional<DurationMs> silent_for(const NodeName& node) const { return book_.silent_for(node); }
  DurationMs reporting_for() const { return book_.reporting_for(); }  // NodeTable
  // Since when the node has been silent, for display; 0: it is not, or this process started too recently.
  TimeMs silent_since(const NodeName& node) const { return book_.silent_since(node, timing_.silent_shown); }
  // True if the database was restored from an older copy and the node has not reported since then.
  bool outdated(const NodeName& node) const { return book_.outdated(node); }
  // Drops the state of a node whose row is being deleted; false while it takes part in an active run.
  bool forget(const NodeName& node);
  // Returns the node of each known machine, without undeclared machines; null while the store cannot be read.
  // Shared, because every power call for a node that was never seen uses it.
  std::shared_ptr<const Machines> machines() const { return book_.machines(); }
  const StepLog& log() const { return log_; }
  // Why events are not durable yet, and of which node; "" if no write failed. While a write fails, only a
  // cancelled run can end.
  std::string unwritten() const { return journal_.trouble(""); }
  // Returns how the incrementally kept state differs from the nodes' states: wrong counters, or a node that
  // could begin but will not be considered; "" if correct. One node (number `turn`) is checked per call. For
  // simulation and tests.
  std::string kept_wrong(size_t turn) const;

 private:
  using Rows = std::vector<Write>;
  struct Node {
    NodeRun run;
    size_t at = 0;  // its place in the plan
    Reactor::TimerId timer = 0;
  };

  // Turns an input of a node into its next state and effects, and carries these out.
  void feed(Node& node, Input input);
  void carry_out(Node& node, Effect effect);
  void call(Node& node, effect::Call what);
  void commit(Node& node, effect::Commit rows);
  void set_timer(Node& node, DurationMs delay);
  void stop_timer(Node& node);
  void quarantine_other(const NodeName& name, const std::string& reason);
  // Returns a callback that becomes an input of this node. It is ignored if the executor, the run or the
  // node's attempt no longer exists when it is called.
  template <typename In>
  auto answers(Node& node);
  template <typename Work>
  void contained(const NodeName& node, Work work);
  Node* find(const NodeName& node) const;
  const NodeRun* state_of(const NodeName& node) const;
  Around around() const;
  Json shown(const Node& node) const;

  void kick();
  void post_look();
  void look();
  void look_at(Node& node);
  void look_at_barriers();
  void wait_at_gate(Node& node, Gate::Answer answer);
  void stands(Node& node, const Standing& before);

  void adopt(std::shared_ptr<const Plan> plan, const RunRow& row);
  void begin_run(std::shared_ptr<const Plan> plan, RunRow row, Rows rows, Started done);
  void mark_disks(const std::vector<JournalRow>& journal);
  JournalRow quarantined_row(Node& node, const std::string& reason);
  void finish_run(RunState state, const std::string& reason = "");
  void request_conclusion(RunRow last, const std::string& reason);
  void end_run(RunRow last, const std::string& reason, Conclusion conclusion);
  void conclude(Conclusion conclusion, Rows& rows);
  void stay_alive();
  void sign();
  void write(const NodeName& node, Rows rows, std::function<void()> then = {});
  void observe(const NodeName& node, EventKind kind, Json data) const;
  void set_wait(Node& node, Wait wait);
  DurationMs ahead() const { return reactor_.now() - reactor_.steady().ms; }

  // Implements Others: what the turn of a node can read.
  KnownAgent agent_of(const NodeName& node) const override;
  NodeRow row_of(const NodeName& node) const override { return book_.row(node); }
  bool ever_seen(const NodeName& node) const override { return book_.ever_seen(node); }
  bool never_seen(const NodeName& node) const override;
  bool known(const NodeName& node) const override;
  bool gone(const NodeName& node) const override;
  bool gone_since(const NodeName& node, SteadyMs time) const override;
  SteadyMs alone_since() const override;

  Reactor& reactor_;
  ExecutorPorts ports_;
  ExecutorHooks hooks_;
  ExecutorTiming timing_;
  Alive alive_;
  JournalWriter journal_;
  mutable NodeTable book_;  // mutable: it reads the store's rows on demand
  std::shared_ptr<const Plan> plan_;
  RunRow run_;
  bool ended_ = true, ending_ = false;
  uint64_t taken_out_ = 0;  // nodes that this process quarantined after they had succeeded
  Reactor::TimerId sign_timer_ = 0;
  uint64_t adopted_ = 0;  // number of runs that this process has adopted
  Gate gate_;             // of plan_
  StepLog log_;
  Limits limits_;
  Rings rings_;  // of plan_
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::vector<Node*> order_;  // of the plan
  Tally tally_;
  ReadyQueue ready_;
  // Whether the rest of a pass over the nodes is posted as a task, and whether another pass must follow it.
  bool look_posted_ = false, look_again_ = false;
  bool kicked_ = false;  // kick() was called for this run: its row is durable
  size_t look_from_ = 0;
  std::set<size_t> heeded_;  // nodes whose agents should report
  // nodes that are not (or no longer) in this run and were silent when others needed them
  std::map<std::string, SteadyMs> absent_;
  Spans took_;
};

}  // namespace muster
