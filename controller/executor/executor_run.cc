// The executor's functions about a run as a whole: start, resumption, what operators do with it, end.
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "controller/executor/executor.h"
#include "controller/executor/node_changes.h"
#include "controller/run/recovery.h"
#include "sys/contain.h"
#include "sys/log.h"

namespace muster {

using Stage = NodeRun::Stage;

namespace {

// Writer of the controller's heartbeat rows: neither a node nor the run as a whole, whose rows wait for those
// of all nodes.
constexpr char kSigns[] = "(heartbeat)";
// Writer of the starts of runs and the ends of cancelled ones, which do not wait for any node's row: a row
// that the store always rejects must not prevent a run from ending.
constexpr char kRuns[] = "(runs)";

void append(std::vector<Write>& rows, std::vector<Write> more) {
  std::move(more.begin(), more.end(), std::back_inserter(rows));
}

}  // namespace

void Executor::adopt(std::shared_ptr<const Plan> plan, const RunRow& row) {
  for (const auto& [name, node] : nodes_) stop_timer(*node);
  plan_ = std::move(plan);
  rings_.clear();
  run_ = row;
  ended_ = ending_ = false;
  log_ = StepLog();
  limits_ = Limits(plan_->limits);
  nodes_.clear();
  order_.clear();
  heeded_.clear();
  gate_ = Gate(*plan_);
  absent_.clear();
  took_ = {};
  book_.load();
  ++adopted_;
  auto states = nodes_of(*plan_, ports_.power);
  for (const auto& name : plan_->nodes) {
    auto& node = nodes_[name];
    if (node) continue;
    NodeRun& begins = states[name];
    begins.epoch = adopted_ << 32;  // answers to an earlier run are ignored
    node = std::make_unique<Node>(Node{std::move(begins), order_.size()});
    order_.push_back(node.get());
  }
  tally_ = {};
  ready_ = ReadyQueue(order_.size());
  ready_.add_all();
  look_from_ = 0;
  kicked_ = false;
}

void Executor::start(const Plan& plan, const std::string& approved_by, Started done) {
  const Digest digest = plan_digest(plan);
  Rows rows;
  if (!active() && !ports_.store.plan_head(digest).ok())
    rows.push_back(PlanRow{digest, std::string(to_string(plan.kind)), plan.spec_revision, reactor_.now(),
                           plan_text(plan)});
  begin_run(std::make_shared<const Plan>(plan), {0, digest, RunState::running, 0, 0, approved_by},
            std::move(rows), std::move(done));
}

void Executor::start(std::shared_ptr<const Plan> plan, const Digest& digest, const std::string& approved_by,
                     Started done) {
  begin_run(std::move(plan), {0, digest, RunState::running, 0, 0, approved_by}, {}, std::move(done));
}

void Executor::begin_run(std::shared_ptr<const Plan> plan, RunRow row, Rows rows, Started done) {
  if (active())
    return reactor_.post(
        [done, id = run_.id] { done(fail(Code::conflict, fmt::format("run {} is still active", id))); });
  row.id = ports_.store.next_run_id();
  row.started = reactor_.now();
  rows.push_back(row);
  adopt(std::move(plan), row);
  stay_alive();
  write(kRuns, std::move(rows), [this, done, id = row.id] {
    kick();
    observe("", "run",
            {{"state", to_string(RunState::running)},
             {"kind", to_string(plan_->kind)},
             {"by", run_.approved_by}});
    done(id);
  });
}

Status Executor::resume(int64_t run, std::shared_ptr<const Plan> plan) {
  if (active()) return fail(Code::conflict, fmt::format("run {} is still active", run_.id));
  TRY(const RunRow row, ports_.store.run(run));
  if (row.state != RunState::running)
    return fail(Code::conflict, fmt::format("run {} ended as {}", row.id, to_string(row.state)));
  if (!plan) {
    TRY(const PlanRow stored, ports_.store.plan(row.plan_digest));
    TRY(const Json json, parse_json(stored.json));
    TRY(Plan read, plan_from_json(json));
    plan = std::make_shared<const Plan>(std::move(read));
  }
  TRY(const auto journal, ports_.store.journal(row.id));
  TRY(Recovery recovery, recover(row, journal));
  adopt(std::move(plan), row);
  mark_disks(journal);
  for (const auto& action : recovery.succeeded) gate_.succeeded(action);
  for (const auto& [name, node] : nodes_) {
    restore(node->run, recovery, hooks_);
    if (node->run.over() || node->run.returning)
      node->run.left_at = book_.steady_of(recovery.nodes[name].left);
    tally_.move({}, standing_of(node->run));
  }
  log_ = std::move(recovery.log);
  if (const std::string reason = abandoned(recovery.last_sign, reactor_.now(), timing_); !reason.empty()) {
    log::warning("run given up", {{"run", std::to_string(row.id)}, {"reason", reason}});
    cancel(reason);
    return Ok{};
  }
  sign();  // so that repeated restarts do not add up to a long absence
  stay_alive();
  for (const auto& [name, node] : nodes_)
    if (!node->run.over()) feed(*node, input::Resume{});
  observe("", "run",
          {{"state", to_string(RunState::running)}, {"kind", to_string(plan_->kind)}, {"resumed", true}});
  kick();
  return Ok{};
}

// While the rows of nodes could not be read, intents were written without NodeRow::disk_written.
void Executor::mark_disks(const std::vector<JournalRow>& journal) {
  for (const auto& row : journal) {
    const Action* action = row.event == "intent" ? gate_.find(row.action) : nullptr;
    if (!action) continue;
    if (Rows marked = book_.begun(row.node, *action, row.time); !marked.empty())
      write(row.node, std::move(marked));
  }
}

// A row at intervals shows a restarted controller how long it was down: some actions write none for hours.
void Executor::stay_alive() {
  if (sign_timer_) reactor_.cancel(sign_timer_);
  sign_timer_ = reactor_.after(timing_.sign_every, [this] {
    sign_timer_ = 0;
    if (!active()) return;
    sign();
    stay_alive();
  });
}

void Executor::sign() {
  JournalRow row;
  row.run = run_.id;
  row.event = "alive";
  row.time = reactor_.now();
  write(kSigns, {row});
}

void Executor::cancel(const std::string& reason) {
  if (!active()) return;
  for (const auto& [name, node] : nodes_) feed(*node, input::StandDown{reason});
  finish_run(RunState::cancelled, reason);
}

void Executor::quarantine(const NodeName& node, const std::string& reason, HeldBy by,
                          const std::string& caller) {
  Node* found = active() ? find(node) : nullptr;
  if (found && !found->run.over()) {
    feed(*found, input::GiveUp{reason, true});
    // The run's own row says that a run holds the node, which the next plan would include again.
    if (by == HeldBy::run) return;
  } else if (found && found->run.stage == Stage::done) {
    // Other nodes have not finished: the run's conclusion must not override the quarantine.
    write(node, {quarantined_row(*found, reason)});
  }
  set_node(node, quarantined(reason, by, caller));
}

JournalRow Executor::quarantined_row(Node& node, const std::string& reason) {
  ++taken_out_;
  const Standing before = standing_of(node.run);
  JournalRow row = quarantine_row(node.run, run_, reason, reactor_.steady(), reactor_.now());
  stands(node, before);
  return row;
}

void Executor::finish_run(RunState state, const std::string& reason) {
  if (ended_) return;
  RunRow last = run_;
  last.state = state;
  if (!hooks_.conclude || state == RunState::cancelled) return end_run(std::move(last), reason, {});
  if (std::exchange(ending_, true)) return;
  // Posted after every row of the run, so that the conclusion includes them all.
  write("", {}, [this, last, reason] {
    if (run_.id == last.id && !ended_) request_conclusion(last, reason);
  });
}

void Executor::request_conclusion(RunRow last, const std::string& reason) {
  last.ended = reactor_.now();
  // The run may be cancelled before the answer arrives.
  const auto answered = [this, alive = alive_.watch(), last, reason,
                         out = taken_out_](Conclusion conclusion) {
    if (!*alive || run_.id != last.id || ended_) return;
    if (out == taken_out_) return end_run(last, reason, std::move(conclusion));
    ending_ = false;  // no longer the concluded run
    kick();
  };
  if (!contain_exceptions("the conclusion of a run", [&] { hooks_.conclude(last, answered); })) answered({});
}

// Degraded nodes keep working; those that fail in comparison with the others are quarantined as usual.
void Executor::conclude(Conclusion conclusion, Rows& rows) {
  size_t quarantined = 0;
  for (const auto& verdict : conclusion.nodes) {
    Node* node = find(verdict.name);
    if (!node || node->run.stage != Stage::done || node->run.returning) continue;
    const NodeState state = verdict.quarantine ? NodeState::quarantined : NodeState::degraded;
    append(rows, book_.changed(verdict.name, [state, reason = verdict.reason](NodeRow& row) {
      row.state = state;
      row.reason = reason;
    }));
    observe(verdict.name, "node", {{"state", to_string(state)}, {"reason", verdict.reason}});
    if (!verdict.quarantine) continue;
    ++quarantined;
    rows.push_back(quarantined_row(*node, verdict.reason));
  }
  // After the reasons, which they are of.
  for (const auto& [name, part] : conclusion.faulty_parts)
    if (find(name)) append(rows, book_.changed(name, [part](NodeRow& row) { row.faulty_part = part; }));
  if (quarantined > 0 && run_.state == RunState::done)
    run_.state = quarantined == nodes_.size() ? RunState::failed : RunState::partial;
  std::move(conclusion.rows.begin(), conclusion.rows.end(), std::back_inserter(rows));
}

void Executor::end_run(RunRow last, const std::string& reason, Conclusion conclusion) {
  ended_ = true;
  run_ = std::move(last);
  if (run_.ended == 0) run_.ended = reactor_.now();
  const bool cancelled = run_.state == RunState::cancelled;
  Rows rows;
  conclude(std::move(conclusion), rows);
  JournalRow row;
  row.run = run_.id;
  row.event = "ended";
  row.time = run_.ended;
  row.data = {{"state", to_string(run_.state)}, {"reason", reason}};
  observe("", "run", row.data);
  rows.push_back(row);
  rows.insert(rows.begin(), run_);
  write(cancelled ? NodeName(kRuns) : "", std::move(rows), [this, ended = run_] {
    if (hooks_.ended) hooks_.ended(ended);
  });
}

}  // namespace muster
