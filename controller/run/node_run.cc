#include "controller/run/node_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "controller/run/narrow.h"
#include "controller/run/node_turn.h"

namespace muster {

using Lane = Limits::Lane;

namespace {

// The table: what each stage does with each input. 'T' takes it, '.' ignores it, '!' refuses it.
constexpr size_t kInputs = std::variant_size_v<Input>;
struct Rules {
  NodeRun::Stage stage;
  const char* by_input;
};
// Begin, Settle, Resume | Durable, Timer | Armed, Rearmed, LeaveOrder, Cycled, SwitchedOff, SwitchedOn |
// PowerSeen | Contact, Greeting, Said | GiveUp, StandDown
constexpr Rules kRules[] = {
    {NodeRun::Stage::pending, "TTT!!!!!!!!!...TT"},     {NodeRun::Stage::committing, "!!!T!!!!!!!!...TT"},
    {NodeRun::Stage::powering, "!!!!TTTTTTT!.TTTT"},    {NodeRun::Stage::looking, "!!!!!!!!!!!T.TTTT"},
    {NodeRun::Stage::awaiting, "!!!!T!!!!!!!TTTTT"},    {NodeRun::Stage::pausing, "!!!!T!!!!!!!.TTTT"},
    {NodeRun::Stage::done, "!!!!!!!!!!!!....."},        {NodeRun::Stage::quarantined, "!!!!!!!!!!!!....."},
    {NodeRun::Stage::not_started, "!!!!!!!!!!!!....."},
};
constexpr bool complete() {
  size_t at = 0;
  for (const Rules& rules : kRules) {
    if (static_cast<size_t>(rules.stage) != at++) return false;
    size_t length = 0;
    while (rules.by_input[length]) ++length;
    if (length != kInputs) return false;
  }
  return at == static_cast<size_t>(NodeRun::Stage::not_started) + 1;
}
static_assert(complete(), "one line for each stage, in their order, with one letter for each input");

}  // namespace

Rule rule_for(NodeRun::Stage stage, const Input& input) {
  const char rule = kRules[static_cast<size_t>(stage)].by_input[input.index()];
  return rule == 'T' ? Rule::take : rule == '.' ? Rule::ignore : Rule::refuse;
}

Turn take(NodeRun state, Input input, const Around& around) {
  const Rule rule = rule_for(state.stage, input);
  if (rule != Rule::take) return {std::move(state), {}, rule == Rule::refuse};
  NodeTurn turn(std::move(state), around);
  std::visit([&turn](const auto& what) { turn.on(what); }, input);
  return {std::move(turn.s), std::move(turn.effects), false};
}

OrderId order_id(const RunRow& run, const std::string& action, int attempt) {
  return OrderId(fmt::format("{}-{:x}/{}#{}", run.id, run.started, action, attempt));
}

bool expects(const NodeRun& node, const RunRow& run, const OrderId& order) {
  if (node.over() || !node.acts()) return false;
  const OrderId own = order_id(run, node.action().id, node.latest.number);
  return order == own || (node.attempt.awaiting_ram && node.control.hands_over() && order == own + "-kexec");
}

std::map<std::string, NodeRun> nodes_of(const Plan& plan, const PowerPort& power) {
  std::map<std::string, NodeRun> nodes;
  for (const auto& each : plan.nodes) {
    const NodeName name(each);
    NodeRun& node = nodes[name];
    node.name = name;
    node.control = {power.switcher(name)};
  }
  for (const auto& name : plan.serving)
    if (const auto node = nodes.find(name); node != nodes.end()) node->second.only_serves = true;
  for (const auto& action : plan.actions) {
    const auto node = nodes.find(action.node);
    if (node == nodes.end()) continue;
    (action.when_failed ? node->second.rescue : node->second.actions).push_back(&action);
    if (action.kind != ActionKind::netboot || !action.params.is_object()) continue;
    const auto named = action.params.own().find("reinstall");
    if (named == action.params.own().end()) continue;
    node->second.control.reinstall = &*named;
  }
  return nodes;
}

Lane lane_of(const NodeRun& node) {
  const ActionKind kind = node.action().kind;
  const bool switched = kind == ActionKind::netboot || kind == ActionKind::wake;
  return node.control.by == Switch::person && switched ? Lane::free : Limits::lane_of(kind);
}

bool note_wait(NodeRun& node, Wait wait) {
  const bool news = node.shown.wait.reason != wait.reason || node.shown.wait.awaited != wait.awaited;
  if (!news) wait.since = node.shown.wait.since ? node.shown.wait.since : wait.since;
  node.shown.wait = std::move(wait);
  return news;
}

JournalRow quarantine_row(NodeRun& node, const RunRow& run, const std::string& reason, SteadyMs now,
                          TimeMs wall) {
  node.stage = NodeRun::Stage::quarantined;
  node.reason = reason;
  node.left_at = now;
  JournalRow row;
  row.run = run.id;
  row.node = node.name;
  row.event = "quarantined";
  row.time = wall;
  row.data = {{"reason", reason}, {"action", ""}};
  return row;
}

bool may_pass(Code code) {
  return code == Code::failed || code == Code::timeout || code == Code::unavailable ||
         code == Code::cancelled;
}

double number_of(const Json& data, const char* key) {
  const auto it = data.is_object() ? data.find(key) : data.end();
  return data.is_object() && it != data.end() && it->is_number() ? it->get<double>() : 0;
}

NodeTurn::NodeTurn(NodeRun state, const Around& around)
    : s(std::move(state)), w(around), agent(around.others.agent_of(s.name)) {}

void NodeTurn::set_wait(Wait wait) {
  if (note_wait(s, std::move(wait)) && !s.shown.wait.reason.empty())
    publish("wait", to_json(s.shown.wait, w.wall - w.now.ms));
}

// The wait is shown on request but not published: it is usually over in a moment.
void NodeTurn::await_store(AfterRow next) {
  s.stage = Stage::committing;
  s.next = std::move(next);
  note_wait(s, {"recording the result", "the store", "", "continue", w.now, {}});
}

void NodeTurn::pause(DurationMs delay, Wait wait, AfterPause next) {
  s.stage = Stage::pausing;
  s.next = next;
  set_wait(std::move(wait));
  set_timer(delay);
}

JournalRow NodeTurn::row(const std::string& event, Json data) const {
  JournalRow row;
  row.run = w.run.id;
  row.node = s.name;
  row.event = event;
  row.time = w.wall;
  row.data = std::move(data);
  return row;
}

void NodeTurn::step_row(Json data) {
  JournalRow step = row("step", data);
  step.action = s.action().id;
  step.attempt = s.latest.number;
  add(effect::Commit{{std::move(step)}});
  publish("step", std::move(data));
}

void NodeTurn::transition(ActionState to, Json data, std::vector<effect::Draft> extra) {
  JournalRow first = row(std::string(to_string(to)), std::move(data));
  first.action = s.action().id;
  first.attempt = s.latest.number;
  extra.insert(extra.begin(), std::move(first));
  add(effect::Commit{std::move(extra)});
}

void NodeTurn::transition_then(AfterRow next, ActionState to, Json data, std::vector<effect::Draft> extra) {
  await_store(std::move(next));
  transition(to, std::move(data), std::move(extra));
  std::get<effect::Commit>(effects.back()).awaited = true;
}

void NodeTurn::on(const input::Begin&) { begin(false); }

// Happens only after a crash between the last result and the node's own row, or to a node without actions.
void NodeTurn::on(const input::Settle&) {
  await_store(after_row::Close{});
  add(effect::Commit{settled(), true});
}

void NodeTurn::on(const input::Durable&) {
  std::visit([this](const auto& next) { go_on(next); }, AfterRow(std::get<AfterRow>(s.next)));
}

void NodeTurn::on(const input::Timer&) {
  if (s.stage == Stage::awaiting) return consider();
  if (s.stage == Stage::powering) return manual_task_expired();
  go_on(std::get<AfterPause>(s.next));
}

void NodeTurn::go_on(AfterPause next) {
  switch (next) {
    case AfterPause::begin:
      return begin(false);
    case AfterPause::netboot:
      return netboot();
    case AfterPause::switch_on:
      return switch_on();
    case AfterPause::await_stop:
      return await_stop();
    case AfterPause::power_off:
      return power_off();
    case AfterPause::power_on:
      a.slot.cutting = false;
      s.stage = Stage::powering;
      return add(effect::Call::switch_on);
    case AfterPause::cut:
      s.stage = Stage::powering;
      return add(effect::Call::switch_off);
    case AfterPause::rearm:
      return rearm();
    case AfterPause::weigh:
      return weigh();
  }
}

void NodeTurn::close() {
  set_wait({});
  s.stage = Stage::done;
  add(effect::Kick{});
}

void NodeTurn::begin(bool with_netboot) {
  const Action& action = s.action();
  s.begun = true;
  end_attempt();
  add(effect::Enter{lane_of(s)});
  s.latest.number = w.log.of(action.id).attempt + 1;
  s.latest.started = w.now;
  // The order's own time limit begins when the RAM system is running.
  a.deadline = s.latest.started + (with_netboot ? w.plan.limits.netboot : time_for(action));
  s.latest.boot_before = agent.boot_id;
  a.with_netboot = with_netboot;
  std::vector<effect::Draft> extra;
  const PlanKind kind = w.plan.kind;
  const bool installs =
      kind != PlanKind::discover && kind != PlanKind::accept && kind != PlanKind::wake && !s.only_serves;
  if (installs && leaves_its_state())
    extra.push_back(effect::Change{
        [state = kind == PlanKind::drain ? NodeState::draining : NodeState::installing](NodeRow& changed) {
          changed.state = state;
          changed.reason.clear();
        }});
  // In the same transaction: no later step may mistake a token of the previous power-on for one of this one.
  if (with_netboot || action.kind == ActionKind::netboot) extra.push_back(DeleteJoinTokens{s.name});
  Json data = {{"boot_before", s.latest.boot_before}, {"with_netboot", with_netboot}};
  if (!s.verdicts.without.empty()) data["without"] = s.verdicts.without;
  if (!s.left_boot.empty()) data["left_boot"] = s.left_boot;
  transition_then(after_row::Effect{}, ActionState::intent, std::move(data), std::move(extra));
}

void NodeTurn::start_effect() {
  const ActionKind kind = s.action().kind;
  if (kind == ActionKind::netboot || a.with_netboot) return netboot();
  if (kind == ActionKind::power_off) return power_off();
  s.stage = Stage::awaiting;
  if (kind == ActionKind::wake) return consider();
  // An agent that was silent before gets the full time from now on.
  if (agent.silent_since < s.latest.started - w.timing.silent_after) {
    agent.silent_since = s.latest.started;
    add(effect::CountSilenceFrom{agent.silent_since});
  }
  consider();
}

DurationMs NodeTurn::time_for(const Action& action) const {
  return action.timeout + (is_order(action.kind) ? w.timing.order_grace : 0);
}

Situation NodeTurn::situation() const {
  Situation now;
  now.kind = s.action().kind;
  now.by = s.control.by;
  now.reinstalled = s.control.reinstall != nullptr;
  now.awaiting_ram = a.awaiting_ram;
  now.power_certain = a.power.certain;
  now.power_requested = a.power.requested;
  now.power_answered = a.power.answered;
  now.stayed_off = a.power.stayed_off;
  now.now = w.now;
  now.started = s.latest.started;
  now.deadline = a.deadline;
  now.mode = agent.mode;
  now.silent_since = agent.silent_since;
  now.contact = agent.spoke;
  now.same_system = !s.latest.boot_before.empty() && agent.boot_id == s.latest.boot_before;
  now.departed = a.departed;
  // An inventory right after a netboot is that of the RAM system that this plan started.
  const bool of_ram =
      now.kind == ActionKind::inventory && s.index > 0 && s.way()[s.index - 1]->kind == ActionKind::netboot;
  now.may_netboot = of_ram || now.kind == ActionKind::netboot || now.kind == ActionKind::image ||
                    now.kind == ActionKind::boot_disk;
  now.power = a.power.seen;
  now.power_error = a.power.error;
  now.looked = a.power.looked;
  now.off_since = a.power.off_since;
  if (w.hooks.panic) now.panic = w.hooks.panic(s.name, s.latest.started);
  now.may_go_back = may_go_back();
  if (is_for_slot(now.kind)) describe_slot(now);
  return now;
}

// Returns since when all agents have been silent; none: an agent reports, or the silence is too long, or this
// attempt already got back as much time as is allowed. During such a silence a node's state is unknown and
// its time does not run. Checked before the attempt's deadline.
SteadyMs NodeTurn::alone() {
  SteadyMs since = w.others.alone_since();
  const DurationMs left = w.timing.alone_most - a.alone.given_back;
  if (since && (w.now >= since + w.timing.alone_for || left <= 0)) since = {};
  if (a.alone.from && w.now - a.alone.from >= left) since = {};
  if (since && !a.alone.from) a.alone.from = w.now;
  if (since || !a.alone.from) return since;
  const DurationMs gone = std::min({w.now - std::exchange(a.alone.from, {}), w.timing.alone_for, left});
  a.alone.given_back += gone;
  a.deadline += gone;
  return {};
}

// Decides nothing while all agents are silent; then continues with `next`.
void NodeTurn::wait_alone(SteadyMs since, AfterPause next) {
  const SteadyMs until = since + w.timing.alone_for;
  pause(std::min<DurationMs>(2 * kSecond, until - w.now),
        {"all agents are silent: the controller itself may be cut off", "a message from any agent",
         a.weighing ? a.weighing->error.message : a.power.error, "the silence is attributed to the node",
         since, until},
        next);
}

void NodeTurn::consider() {
  if (s.stage != Stage::awaiting) return;
  if (s.action().kind == ActionKind::wake) return wake();
  if (is_for_slot(s.action().kind) ? slot_reached() : trial_over()) return;
  if (must_read_power()) return read_power();
  const SteadyMs alone_since = alone();
  Situation now = situation();
  if (w.now - agent.silent_since >= w.timing.silent_after || w.now >= a.deadline)
    now.alone_since = alone_since;
  Decision decision = advance(now, w.timing);
  switch (decision.what) {
    case Decision::What::look:
      return look();
    case Decision::What::cycle:
      return cut_power(decision.reason);
    case Decision::What::switch_on:
      return power_on();
    case Decision::What::netboot:
      a.power.stayed_off += a.power.seen == PowerState::off;
      return netboot();
    case Decision::What::again:
      return lose_attempt(decision.reason, decision.with_netboot);
    case Decision::What::fail:
      return fail_attempt(fail(Code::conflict, decision.reason), Json());
    case Decision::What::offer: {
      offer();
      const SteadyMs silent = agent.silent_since + w.timing.silent_after;
      decision.wait = {s.action().title, "the agent's result",
                       a.progress.text,  "if the agent is silent, the power state is read",
                       s.latest.started, std::min(silent, a.deadline)};
      break;
    }
    case Decision::What::wait:
      break;
  }
  decision.wait.until = std::max(decision.wait.until, w.now + 1);
  const SteadyMs until =
      decision.check_at > w.now ? std::min(decision.check_at, decision.wait.until) : decision.wait.until;
  set_wait(std::move(decision.wait));
  set_timer(until - w.now);
}

OrderId NodeTurn::own_order() const { return order_id(w.run, s.action().id, s.latest.number); }

wire::WorkOrder NodeTurn::order_for() const {
  const Action& action = s.action();
  wire::WorkOrder order;
  order.id = own_order();
  order.kind = order_kind(action.kind);
  order.params = s.verdicts.follow.is_null() ? action.params.without_shared() : s.verdicts.follow;
  // The order to restart and the inventory after it get no params: the action's params are for the row.
  if (action.kind == ActionKind::return_slot || action.phase == "return") order.params = Json::object();
  order.deadline = action.timeout;
  if (has_preconditions()) order.params.erase("steps");
  order.preconditions = preconditions();
  return order;
}

// The steps of an action that is no order of steps must still hold when the node leaves its system.
bool NodeTurn::has_preconditions() const {
  const Action& action = s.action();
  return action.kind != ActionKind::steps && action.kind != ActionKind::check &&
         action.params.contains("steps");
}

// As they are sent; null: none.
Json NodeTurn::preconditions() const {
  if (!has_preconditions()) return Json();
  Json params = s.action().params.without_shared();
  narrow(params, w.rings.of(s.action().params));
  return params["steps"];
}

// Adapts the steps in `params` to the nodes that are reachable; returns the ids of steps that were removed.
std::vector<std::string> NodeTurn::narrow(Json& params, const RingsOfOrder& rings) const {
  std::optional<std::set<NodeName>> declared;  // a long list, not needed if all nodes have been seen
  const auto never_seen = [&](const NodeName& name) {
    if (name.empty() || !w.others.never_seen(name)) return false;
    if (!declared)
      declared = neighbours_in(
          s.verdicts.follow.is_null() ? s.action().params.without_shared() : s.verdicts.follow, rings);
    return declared->count(name) > 0;
  };
  return narrow_order(params, rings, s.name, [&](const NodeName& name) {
    return (w.others.gone(name) && name != s.name) || s.verdicts.without.count(name) > 0 || never_seen(name);
  });
}

void NodeTurn::offer() {
  if (std::exchange(a.offered, true)) return;
  if (s.action().kind == ActionKind::boot_disk) add(effect::Call::disarm);
  // The action ends with a later boot: the node may have restarted since the action began.
  if (is_for_slot(s.action().kind) && !std::exchange(a.slot.sent, true)) s.latest.boot_before = agent.boot_id;
  wire::WorkOrder order = order_for();
  const bool planned = s.verdicts.follow.is_null();
  RingsOfOrder rings = take_rings(order.params);
  if (planned) rings = w.rings.of(s.action().params);
  for (const auto& step : narrow(order.params, rings))
    step_row({{"step", step},
              {"name", step},
              {"status", "incomplete"},
              {"message", "no other node that the step needs is reachable"},
              {"ms", 0}});
  add(effect::Offer{std::move(order)});
}

void NodeTurn::withdraw() {
  if (std::exchange(a.offered, false)) add(effect::Withdraw{own_order()});
}

}  // namespace muster
