// The executor's main loop: an input of a node gives its next state and effects, which are carried out in
// order. This file: inputs, what may begin, a turn, its effects; executor_run.cc: a run's start and end.
#include "controller/executor/executor.h"

#include <fmt/format.h>

#include <utility>

#include "sys/contain.h"
#include "sys/log.h"

namespace muster {

using Lane = Limits::Lane;
using Stage = NodeRun::Stage;

namespace {

// Nodes considered in one task: otherwise requests would wait for all nodes of a large cluster.
constexpr int kLooksInOneTask = 64;

template <typename... F>
struct Overload : F... {
  using F::operator()...;
};
template <typename... F>
Overload(F...) -> Overload<F...>;

}  // namespace

Executor::Executor(Reactor& reactor, ExecutorPorts ports, ExecutorHooks hooks, ExecutorTiming timing)
    : reactor_(reactor),
      ports_(ports),
      hooks_(std::move(hooks)),
      timing_(timing),
      journal_(reactor, ports.store),
      book_(reactor, ports.store, journal_, timing.silent_after),
      plan_(std::make_shared<const Plan>()) {}

Executor::~Executor() {
  alive_.end();
  if (sign_timer_) reactor_.cancel(sign_timer_);
  for (const auto& [name, node] : nodes_) stop_timer(*node);
}

void Executor::on_contact(const NodeName& name, const Presence& present) {
  const NodeTable::Contact contact = book_.contact(name, present);
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

void Executor::on_event(const NodeName& name, const wire::Event& event) {
  book_.note_contact(book_.agent(name));
  if (Node* node = active() ? find(name) : nullptr) feed(*node, input::Said{event});
}

void Executor::set_node(const NodeName& node, const std::function<void(NodeRow&)>& change) {
  write(node, book_.changed(node, change));
}

void Executor::set_nodes(const std::set<NodeName>& nodes, const NodeTable::Change& change, Write row,
                         std::function<void()> then) {
  Rows rows = {std::move(row)};
  for (const NodeName& node : nodes)
    for (Write& one : book_.changed(node, change)) rows.push_back(std::move(one));
  write("", std::move(rows), std::move(then));
}

bool Executor::forget(const NodeName& node) {
  if (active() && find(node)) return false;
  return book_.forget(node);
}

// Posted, so that it never runs inside a step of a node.
void Executor::kick() {
  kicked_ = look_again_ = true;
  post_look();
}

void Executor::post_look() {
  if (std::exchange(look_posted_, true)) return;
  reactor_.post(alive_.wrap([this] {
    reactor_.label("run: next actions");
    look_posted_ = false;
    if (active() && !ending_) look();
  }));
}

// In the plan's order. What becomes possible for an earlier node is noticed in the next pass.
void Executor::look() {
  if (look_from_ == 0) look_again_ = false;
  const auto has_place = [this](Lane lane) { return limits_.may_begin(lane); };
  for (int looked = 0;; ++looked) {
    look_at_barriers();
    if (looked == kLooksInOneTask) break;
    const auto next = ready_.next(look_from_, has_place);
    look_from_ = next ? *next + 1 : 0;
    if (!next) break;
    Node& node = *order_[*next];
    if (node.run.stage == Stage::pending) contained(node.run.name, [&] { look_at(node); });
  }
  if (tally_.over == order_.size()) {
    const bool all = tally_.good == order_.size();
    return finish_run(all ? RunState::done : tally_.works > 0 ? RunState::partial : RunState::failed);
  }
  if (look_from_ > 0 || look_again_) post_look();
}

// The node begins its next action, or waits for one thing recorded in ready_, or is no longer pending.
void Executor::look_at(Node& node) {
  if (!node.run.acts()) return feed(node, input::Settle{});
  // All nodes re-imaged in place have begun before the first one fails, so the budget is checked again before
  // a node leaves its system.
  const auto stays = [&] {
    const bool leaves = node.run.action().kind != ActionKind::write_slot && undisturbed(node.run, log_);
    return !node.run.returning && (!node.run.begun || leaves);
  };
  if (limits_.budget_spent(tally_.failed) && stays()) {
    feed(node, input::StandDown{fmt::format("not {}: {} nodes failed and the failure budget is {}",
                                            node.run.begun ? "begun" : "started", tally_.failed,
                                            plan_->limits.failure_budget)});
    return kick();
  }
  Gate::Answer gate =
      gate_.check(node.run.action(), log_, [this](const NodeName& name) { return state_of(name); });
  if (!gate.never.empty()) return feed(node, input::GiveUp{gate.never});
  if (!gate.open) return wait_at_gate(node, std::move(gate));
  const Lane lane = lane_of(node.run);
  if (!limits_.may_begin(lane)) {
    ready_.wait_for_place(node.at, lane);
    return set_wait(node, {"a limit of the plan is reached",
                           "capacity for " + node.run.action().title,
                           "",
                           "it starts",
                           reactor_.steady(),
                           {}});
  }
  limits_.begin(lane, node.run.name);
  feed(node, input::Begin{});
}

void Executor::wait_at_gate(Node& node, Gate::Answer answer) {
  const ReadyQueue::Awaited awaited{find(answer.on->node)->at, answer.on->id};
  if (answer.barrier)
    ready_.wait_for_barrier(node.at, *answer.barrier, awaited);
  else
    ready_.wait_for(node.at, awaited);
  answer.wait.since = reactor_.steady();
  set_wait(node, std::move(answer.wait));
}

// A node at a barrier is considered when the barrier opens, and when it begins to wait for a different phase,
// so that the reason shown is up to date.
void Executor::look_at_barriers() {
  while (const auto due = ready_.next_barrier()) {
    const Action* open =
        gate_.first_open(due->barrier, [this](const NodeName& name) { return state_of(name); });
    if (open && open->phase == gate_.find(due->member)->phase)
      ready_.hold(due->barrier, {find(open->node)->at, open->id});
    else
      ready_.open(due->barrier);
  }
}

// Counts a node's changes and updates the nodes that depend on them.
void Executor::stands(Node& node, const Standing& before) {
  const Standing now = standing_of(node.run);
  if (now == before) return;
  const bool was_spent = limits_.budget_spent(tally_.failed);
  tally_.move(before, now);
  if (!was_spent && limits_.budget_spent(tally_.failed)) ready_.add_all();
  if (!now.same_for_others(before)) ready_.changed(node.at);
  if (now.pending != before.pending) now.pending ? ready_.add(node.at) : ready_.drop(node.at);
  if (now.heeded != before.heeded) now.heeded ? (void)heeded_.insert(node.at) : (void)heeded_.erase(node.at);
}

void Executor::feed(Node& node, Input input) {
  const Standing before = standing_of(node.run);
  const bool was_in = node.run.stage != Stage::quarantined;
  Turn turn = take(node.run, std::move(input), around());
  if (turn.refused)
    return log::error("internal error: an input does not fit the node's state", {{"node", node.run.name}});
  node.run = std::move(turn.state);
  stands(node, before);
  if (was_in && node.run.stage == Stage::quarantined)
    log::warning("node quarantined", {{"node", node.run.name}, {"reason", node.run.reason}});
  if (!before.returning && node.run.returning)
    log::warning("node returns to its old system", {{"node", node.run.name}, {"reason", node.run.reason}});
  for (Effect& effect : turn.effects) carry_out(node, std::move(effect));
}

Around Executor::around() const {
  return {reactor_.steady(), book_.began(), reactor_.now(), run_,  *plan_, log_,
          limits_,           timing_,       hooks_,         *this, rings_};
}

void Executor::carry_out(Node& node, Effect effect) {
  const NodeName& name = node.run.name;
  std::visit(
      Overload{[&](effect::Commit& rows) { commit(node, std::move(rows)); },
               [&](effect::Publish& reported) { observe(name, reported.kind, std::move(reported.data)); },
               [&](effect::Call what) { call(node, what); },
               [&](effect::Offer& offer) { ports_.link.offer(name, std::move(offer.order)); },
               [&](effect::Withdraw& back) { ports_.link.withdraw(name, back.order); },
               [&](effect::LetGo& gone) { ports_.link.let_go(name, gone.order); },
               [&](effect::SetTimer timer) { set_timer(node, timer.delay); },
               [&](effect::StopTimer) { stop_timer(node); },
               [&](effect::Enter place) { limits_.begin(place.lane, name); },
               [&](effect::Leave place) { limits_.end(place.lane, name); },
               [&](effect::ReservePowerOn) { limits_.reserve_power_on(reactor_.steady()); },
               [&](effect::CountSilenceFrom from) { book_.agent(name).silent_since = from.silent_since; },
               [&](effect::Succeeded& done) {
                 gate_.succeeded(done.action);
                 ready_.succeeded({node.at, done.action});
               },
               [&](effect::Took took) { took_.add(took.kind, took.time); },
               [&](effect::Quarantine& other) { quarantine_other(other.node, other.reason); },
               [&](effect::Absent& absent) { absent_[absent.node] = reactor_.steady(); },
               [&](effect::Committed) { book_.agent(name).trial = false; },
               [&](effect::GoOn) { feed(node, input::Timer{}); }, [&](effect::Kick) { kick(); }},
      effect);
}

// After an internal error the node must not wait for ever: it is given up, the others continue, the run ends.
template <typename Work>
void Executor::contained(const NodeName& node, Work work) {
  const NodeName name = node;
  if (contain_exceptions("a node's turn", work)) return;
  if (Node* left = find(name)) feed(*left, input::GiveUp{"internal error, see musterd's log"});
}

template <typename In>
auto Executor::answers(Node& node) {
  return [this, alive = alive_.watch(), name = node.run.name, epoch = node.run.epoch](auto... what) {
    if (!*alive) return;
    Node* found = find(name);
    if (!found || found->run.epoch != epoch) return;
    reactor_.label("run: a node's turn");
    contained(name, [&] { feed(*found, In{std::move(what)...}); });
  };
}

void Executor::call(Node& node, effect::Call what) {
  using Call = effect::Call;
  const NodeName& name = node.run.name;
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
      Json order = *node.run.control.reinstall;
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
    case Call::restore:
      return ports_.power.power_on(name, [](const Status&) {});
  }
}

void Executor::commit(Node& node, effect::Commit drafts) {
  Rows rows;
  for (auto& draft : drafts.rows) {
    if (const auto* own = std::get_if<effect::Change>(&draft))
      for (auto& changed : book_.changed(node.run.name, own->change)) rows.push_back(std::move(changed));
    if (const auto* tokens = std::get_if<DeleteJoinTokens>(&draft)) rows.push_back(*tokens);
    const auto* row = std::get_if<JournalRow>(&draft);
    if (!row) continue;
    if (const auto legal = log_.apply(*row); !legal.ok())
      return log::error("internal: " + legal.error().message);
    rows.push_back(*row);
    if (row->action.empty() || row->event == "step") continue;
    const Action& action = *gate_.find(row->action);
    if (row->event == "intent")
      for (auto& begun : book_.begun(node.run.name, action, row->time)) rows.push_back(std::move(begun));
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

// A node without actions in this run is not changed.
void Executor::quarantine_other(const NodeName& name, const std::string& reason) {
  Node* node = find(name);
  if (node && !node->run.over()) {
    // A node that returns to its old system restarts: it is expected to be silent.
    if (!node->run.returning) feed(*node, input::GiveUp{reason});
    return;
  }
  log::warning("fault reported on a node outside this run", {{"node", name}, {"reason", reason}});
}

void Executor::set_wait(Node& node, Wait wait) {
  if (note_wait(node.run, std::move(wait)) && !node.run.shown.wait.reason.empty())
    observe(node.run.name, "wait", to_json(node.run.shown.wait, ahead()));
}

void Executor::write(const NodeName& node, Rows rows, std::function<void()> then) {
  journal_.write(node, std::move(rows), std::move(then));
}

void Executor::observe(const NodeName& node, EventKind kind, Json data) const {
  if (hooks_.observe) hooks_.observe({reactor_.now(), run_.id, node, kind, std::move(data)});
}

Executor::Node* Executor::find(const NodeName& node) const {
  const auto it = nodes_.find(node);
  return it == nodes_.end() ? nullptr : it->second.get();
}

const NodeRun* Executor::state_of(const NodeName& node) const {
  const Node* found = find(node);
  return found ? &found->run : nullptr;
}

}  // namespace muster
