#include "controller/run/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/contain.h"
#include "base/json_dump.h"
#include "base/log.h"
#include "controller/run/recovery.h"

namespace muster {

using Lane = Limits::Lane;
using Stage = NodeRun::Stage;

namespace {

template <typename... F>
struct Overload : F... {
  using F::operator()...;
};
template <typename... F>
Overload(F...) -> Overload<F...>;

// Who writes the signs of life: no node, and not the run, whose rows wait for those of its nodes.
constexpr const char* kSigns = "(signs of life)";
// And the beginnings of runs, and the ends of those that were cancelled: they wait for no row of a node. Of
// one that the store refuses for good a run that is to end would never come to its end.
constexpr const char* kRuns = "(runs)";

void append(std::vector<Write>& rows, std::vector<Write> more) {
  std::move(more.begin(), more.end(), std::back_inserter(rows));
}

}  // namespace

Executor::Executor(Reactor& reactor, ExecutorPorts ports, ExecutorHooks hooks, ExecutorTiming timing)
    : reactor_(reactor),
      ports_(ports),
      hooks_(std::move(hooks)),
      timing_(timing),
      alive_(std::make_shared<bool>(true)),
      journal_(reactor, ports.store),
      book_(reactor, ports.store, journal_, timing.silent_after) {}

Executor::~Executor() {
  *alive_ = false;
  if (sign_timer_) reactor_.cancel(sign_timer_);
  for (const auto& [name, node] : nodes_) stop_timer(*node);
}

// ---- the pump ----

void Executor::feed(Node& node, Input input) {
  const bool was_in = node.run.stage != Stage::quarantined;
  Turn turn = take(node.run, std::move(input), around());
  if (turn.refused)
    return log::error("internal: an input that is not for this state", {{"node", node.run.name}});
  node.run = std::move(turn.state);
  if (was_in && node.run.stage == Stage::quarantined)
    log::warning("node quarantined", {{"node", node.run.name}, {"reason", node.run.reason}});
  for (Effect& effect : turn.effects) carry_out(node, std::move(effect));
}

Around Executor::around() const {
  return {reactor_.steady(), book_.began(), reactor_.now(), run_, plan_, log_,
          limits_,           timing_,       hooks_,         *this};
}

void Executor::carry_out(Node& node, Effect effect) {
  const std::string& name = node.run.name;
  std::visit(Overload{[&](effect::Commit& rows) { commit(node, std::move(rows)); },
                      [&](effect::Tell& told) { observe(name, told.kind, std::move(told.data)); },
                      [&](effect::Call what) { call(node, what); },
                      [&](effect::Offer& offer) { ports_.link.offer(name, std::move(offer.order)); },
                      [&](effect::Withdraw& back) { ports_.link.withdraw(name, back.order); },
                      [&](effect::LetGo& gone) { ports_.link.let_go(name, gone.order); },
                      [&](effect::SetTimer timer) { set_timer(node, timer.delay); },
                      [&](effect::StopTimer) { stop_timer(node); },
                      [&](effect::Enter place) { limits_.begin(place.lane, name); },
                      [&](effect::Leave place) { limits_.end(place.lane, name); },
                      [&](effect::ReservePowerOn) { limits_.reserve_power_on(reactor_.steady()); },
                      [&](effect::HearFrom from) { book_.agent(name).heard = from.heard; },
                      [&](effect::Proven& proven) { gate_.prove(proven.action); },
                      [&](effect::Took took) { took_.add(took.kind, took.time); },
                      [&](effect::Accuse& accused) { accuse(accused.node, accused.reason); },
                      [&](effect::Absent& absent) { absent_[absent.node] = reactor_.steady(); },
                      [&](effect::GoOn) { feed(node, input::Timer{}); }, [&](effect::Kick) { kick(); }},
             effect);
}

template <typename In>
auto Executor::answers(Node& node) {
  return [this, alive = alive_, name = node.run.name, epoch = node.run.epoch](auto... what) {
    if (!*alive) return;
    Node* found = find(name);
    if (!found || found->run.epoch != epoch) return;
    // Where muster itself is at fault the node must not wait for something that never comes: the others go
    // on, and the run ends.
    if (contain_exceptions("a node's turn", [&] { feed(*found, In{std::move(what)...}); })) return;
    if (Node* left = find(name)) feed(*left, input::GiveUp{"a fault of muster: see the controller's log"});
  };
}

void Executor::call(Node& node, effect::Call what) {
  using Call = effect::Call;
  const std::string& name = node.run.name;
  switch (what) {
    case Call::arm:
      return ports_.boot.arm(name, answers<input::Armed>(node));
    case Call::rearm:
      return ports_.boot.rearm(name, answers<input::Rearmed>(node));
    case Call::leave_order:
      return ports_.boot.leave_order(name, answers<input::LeaveOrder>(node));
    case Call::disarm:
      return ports_.boot.disarm(name);
    case Call::cycle:
      return ports_.power.netboot(name, answers<input::Cycled>(node));
    case Call::reinstall: {
      Json order = *node.run.reinstall;
      order["approval"] = run_.plan_digest;
      return ports_.power.reinstall(name, order, answers<input::Cycled>(node));
    }
    case Call::switch_off:
      return ports_.power.power_off(name, answers<input::SwitchedOff>(node));
    case Call::switch_on:
      return ports_.power.power_on(name, answers<input::SwitchedOn>(node));
    case Call::look:
      return ports_.power.state(name, answers<input::PowerSeen>(node));
    case Call::forget:
      return ports_.power.forget(name);
  }
}

void Executor::commit(Node& node, effect::Commit drafts) {
  Rows rows;
  for (auto& draft : drafts.rows) {
    if (const auto* own = std::get_if<effect::Change>(&draft))
      append(rows, book_.changed(node.run.name, own->change));
    if (const auto* tokens = std::get_if<DeleteJoinTokens>(&draft)) rows.push_back(*tokens);
    const auto* row = std::get_if<JournalRow>(&draft);
    if (!row) continue;
    if (const auto legal = log_.apply(*row); !legal.ok())
      return log::error("internal: " + legal.error().message);
    rows.push_back(*row);
    if (row->action.empty() || row->event == "step") continue;
    const Action& action = *gate_.find(row->action);
    observe(node.run.name, "action",
            {{"action", action.id},
             {"event", row->event},
             {"attempt", row->attempt},
             {"title", action.title},
             {"phase", action.phase},
             {"message", row->data.is_object() ? row->data.value("message", "") : ""}});
  }
  if (!drafts.awaited) return write(node.run.name, std::move(rows));
  write(node.run.name, std::move(rows), answers<input::Durable>(node));
}

void Executor::set_timer(Node& node, DurationMs delay) {
  stop_timer(node);
  node.timer = reactor_.after(delay, answers<input::Timer>(node));
}

void Executor::stop_timer(Node& node) {
  if (node.timer) reactor_.cancel(std::exchange(node.timer, 0));
}

// Takes a node out because of what others saw. One that has nothing to do in this run is left as it is.
void Executor::accuse(const std::string& name, const std::string& reason) {
  Node* node = find(name);
  if (node && !node->run.over()) return feed(*node, input::GiveUp{reason});
  log::warning("a node that this run does not work on misbehaves", {{"node", name}, {"reason", reason}});
}

Executor::Node* Executor::find(const std::string& node) const {
  const auto it = nodes_.find(node);
  return it == nodes_.end() ? nullptr : it->second.get();
}

void Executor::set_wait(Node& node, Wait wait) {
  if (note_wait(node.run, std::move(wait)) && !node.run.wait.reason.empty())
    observe(node.run.name, "wait", to_json(node.run.wait, ahead()));
}

void Executor::write(const std::string& node, Rows rows, std::function<void()> then) {
  journal_.write(node, std::move(rows), std::move(then));
}

void Executor::observe(const std::string& node, const std::string& kind, Json data) const {
  if (hooks_.observe) hooks_.observe({reactor_.now(), run_.id, node, kind, std::move(data)});
}

// ---- what agents say ----

void Executor::on_contact(const std::string& name, const Presence& present) {
  const NodeBook::Contact contact = book_.contact(name, present);
  if (contact.hello) return on_hello(*contact.hello);
  Node* node = active() ? find(name) : nullptr;
  if (node && contact.by_the_known_boot) feed(*node, input::Contact{contact.after_silence});
}

void Executor::on_hello(const Hello& hello) {
  Rows rows;
  const bool new_boot = book_.hello(hello, rows);
  write(hello.node, std::move(rows));
  if (Node* node = active() ? find(hello.node) : nullptr) feed(*node, input::Greeting{hello, new_boot});
}

void Executor::on_event(const std::string& name, const wire::Event& event) {
  book_.hear(book_.agent(name));
  if (Node* node = active() ? find(name) : nullptr) feed(*node, input::Said{event});
}

bool Executor::expects(const std::string& name, const std::string& order) const {
  const Node* node = active() ? find(name) : nullptr;
  return node && muster::expects(node->run, run_, order);
}

void Executor::set_node(const std::string& node, const std::function<void(NodeRow&)>& change) {
  write(node, book_.changed(node, change));
}

bool Executor::forget(const std::string& node) {
  if (active() && find(node)) return false;
  return book_.forget(node);
}

// ---- a run ----

void Executor::adopt(const Plan& plan, const RunRow& row) {
  for (const auto& [name, node] : nodes_) stop_timer(*node);
  plan_ = plan;
  run_ = row;
  ended_ = ending_ = false;
  log_ = StepLog();
  limits_ = Limits(plan_.limits);
  nodes_.clear();
  gate_ = Gate(plan_);
  absent_.clear();
  took_ = {};
  book_.load();
  ++adopted_;
  for (auto& [name, begins] : nodes_of(plan_, ports_.power)) {
    begins.epoch = adopted_ << 32;  // what an earlier run asked for is not taken for an answer to this one
    nodes_[name] = std::make_unique<Node>(Node{std::move(begins)});
  }
}

void Executor::start(const Plan& plan, const std::string& approved_by,
                     std::function<void(Result<int64_t>)> done) {
  if (active())
    return reactor_.post(
        [done, id = run_.id] { done(fail(Code::conflict, fmt::format("run {} is still active", id))); });
  RunRow row;
  row.id = ports_.store.next_run_id();
  row.plan_digest = plan_digest(plan);
  row.state = "running";
  row.started = reactor_.now();
  row.approved_by = approved_by;
  Rows rows{row};
  if (!ports_.store.plan(row.plan_digest).ok())
    rows.insert(rows.begin(), PlanRow{row.plan_digest, plan.kind, plan.spec_revision, row.started,
                                      dump_json(to_json(plan))});
  adopt(plan, row);
  stay_alive();
  write(kRuns, std::move(rows), [this, done, id = row.id] {
    done(id);
    observe("", "run", {{"state", "running"}, {"kind", plan_.kind}});
    kick();
  });
}

Status Executor::resume(int64_t run) {
  if (active()) return fail(Code::conflict, fmt::format("run {} is still active", run_.id));
  TRY(const RunRow row, ports_.store.run(run));
  if (row.state != "running")
    return fail(Code::conflict, fmt::format("run {} ended as {}", row.id, row.state));
  TRY(const PlanRow stored, ports_.store.plan(row.plan_digest));
  TRY(const Json json, parse_json(stored.json));
  TRY(const Plan plan, plan_from_json(json));
  TRY(const auto journal, ports_.store.journal(row.id));
  TRY(Recovery recovery, recover(row, journal));
  adopt(plan, row);
  log_ = std::move(recovery.log);
  for (const auto& action : recovery.proven) gate_.prove(action);
  for (const auto& [name, node] : nodes_) {
    restore(node->run, recovery, hooks_);
    if (node->run.over()) node->run.left_at = book_.steady_of(recovery.nodes[name].left);
  }
  if (const std::string reason = abandoned(recovery.last_sign, reactor_.now(), timing_); !reason.empty()) {
    log::warning("run given up", {{"run", std::to_string(row.id)}, {"reason", reason}});
    cancel(reason);
    return Ok{};
  }
  sign();  // one that is killed time and again was not away for all of it
  stay_alive();
  for (const auto& [name, node] : nodes_)
    if (!node->run.over()) feed(*node, input::Resume{});
  observe("", "run", {{"state", "running"}, {"kind", plan_.kind}, {"resumed", true}});
  kick();
  return Ok{};
}

// A row from time to time, so that a controller that comes back knows how long it was away. Some actions are
// quiet for hours.
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
  finish_run("cancelled", reason);
}

void Executor::quarantine(const std::string& node, const std::string& reason) {
  Node* found = active() ? find(node) : nullptr;
  if (found && !found->run.over()) return feed(*found, input::GiveUp{reason});
  // It came through, others did not yet: the run's end must not overrule this.
  if (found && found->run.stage == Stage::done)
    write(node, {condemn(found->run, run_, reason, reactor_.steady(), reactor_.now())});
  set_node(node, [reason](NodeRow& row) {
    row.state = "quarantined";
    row.reason = reason;
  });
}

// Everything that may have become possible is started. Posted, so that it never runs inside a step of a node.
void Executor::kick() {
  if (std::exchange(kick_posted_, true)) return;
  reactor_.post([this, alive = alive_] {
    if (!*alive) return;
    kick_posted_ = false;
    if (!active() || ending_) return;
    int quarantined = 0;
    for (const auto& [name, node] : nodes_) quarantined += node->run.stage == Stage::quarantined;
    for (const auto& name : plan_.nodes)
      if (Node* node = find(name); node && node->run.stage == Stage::pending) {
        kick_node(*node, quarantined);
        quarantined += node->run.stage == Stage::quarantined;
      }
    size_t over = 0, good = 0;
    for (const auto& [name, node] : nodes_) {
      over += node->run.over();
      good += node->run.stage == Stage::done;
    }
    if (over == nodes_.size()) finish_run(good == nodes_.size() ? "done" : good ? "partial" : "failed");
  });
}

void Executor::kick_node(Node& node, int quarantined) {
  if (!node.run.acts()) return feed(node, input::Settle{});
  if (!node.run.begun && limits_.budget_spent(quarantined)) {
    feed(node,
         input::StandDown{fmt::format("not started: {} nodes are quarantined and the failure budget is {}",
                                      quarantined, plan_.limits.failure_budget)});
    return kick();
  }
  Gate::Answer gate = gate_.ask(node.run.action(), log_, [this](const std::string& name) -> const NodeRun* {
    const Node* other = find(name);
    return other ? &other->run : nullptr;
  });
  if (!gate.never.empty()) return feed(node, input::GiveUp{gate.never});
  gate.wait.since = reactor_.steady();
  if (!gate.open) return set_wait(node, std::move(gate.wait));
  const Lane lane = lane_of(node.run);
  if (!limits_.may_begin(lane))
    return set_wait(node, {"the limit of the plan is reached",
                           "a free place for " + node.run.action().title,
                           "",
                           "it starts",
                           reactor_.steady(),
                           {}});
  limits_.begin(lane, node.run.name);
  feed(node, input::Begin{});
}

void Executor::finish_run(const std::string& state, const std::string& reason) {
  if (ended_) return;
  if (!hooks_.conclude || state == "cancelled") return end_run(state, reason);
  if (std::exchange(ending_, true)) return;
  // Behind every row of the run, so that the conclusion sees them all.
  write("", {}, [this, state, reason, id = run_.id] {
    if (run_.id == id && !ended_) end_run(state, reason);
  });
}

// Degraded nodes keep working; those that fail in the light of the others are quarantined like any other.
void Executor::conclude(Rows& rows) {
  Conclusion conclusion = hooks_.conclude(run_);
  size_t quarantined = 0;
  for (const auto& verdict : conclusion.nodes) {
    Node* node = find(verdict.name);
    if (!node || node->run.stage != Stage::done) continue;
    const char* state = verdict.quarantine ? "quarantined" : "degraded";
    append(rows, book_.changed(verdict.name, [state, reason = verdict.reason](NodeRow& row) {
      row.state = state;
      row.reason = reason;
    }));
    observe(verdict.name, "node", {{"state", state}, {"reason", verdict.reason}});
    if (!verdict.quarantine) continue;
    ++quarantined;
    rows.push_back(condemn(node->run, run_, verdict.reason, reactor_.steady(), reactor_.now()));
  }
  if (quarantined > 0 && run_.state == "done")
    run_.state = quarantined == nodes_.size() ? "failed" : "partial";
  std::move(conclusion.rows.begin(), conclusion.rows.end(), std::back_inserter(rows));
}

void Executor::end_run(const std::string& state, const std::string& reason) {
  ended_ = true;
  run_.state = state;
  run_.ended = reactor_.now();
  Rows rows;
  if (hooks_.conclude && state != "cancelled") conclude(rows);
  JournalRow row;
  row.run = run_.id;
  row.event = "ended";
  row.time = run_.ended;
  row.data = {{"state", run_.state}, {"reason", reason}};
  observe("", "run", row.data);
  rows.push_back(row);
  rows.insert(rows.begin(), run_);
  write(state == "cancelled" ? kRuns : "", std::move(rows), [this, ended = run_] {
    if (hooks_.ended) hooks_.ended(ended);
  });
}

}  // namespace muster
