#include "controller/run/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/contain.h"
#include "base/facts.h"
#include "base/json_dump.h"
#include "base/log.h"
#include "controller/run/narrow.h"

namespace muster {

using Lane = Limits::Lane;

struct Executor::Live {
  std::optional<wire::Mode> mode;
  std::string boot_id;
  bool greeted = false;  // it said what it is to this controller process; else the row's word is all there is
  SteadyMs contact = {};  // last word from it in this process
  SteadyMs spoke =
      {};  // last word of the boot that said hello; a later boot may speak before its hello was looked at
  TimeMs seen = 0;      // the same moment for people
  SteadyMs heard = {};  // where silence is counted from: its last contact, or later when that would be unfair
  SteadyMs returned = {};  // when it was last heard again after silence or a boot
};

struct Executor::Runtime {
  enum class Stage {
    pending,     // its next action has not begun
    committing,  // a row is on its way to the store
    powering,    // a power call is under way
    looking,     // the power state is being read
    awaiting,    // consider() decides
    pausing,     // before another try
    done,
    quarantined,
    not_started,
  };
  std::string name;
  std::vector<const Action*> actions;
  size_t index = 0;
  Stage stage = Stage::pending;
  uint64_t epoch = 0;  // changes when what was under way no longer counts
  bool begun = false;
  // The attempt under way.
  int attempt = 0;
  bool awaiting_ram = false, power_certain = false, with_netboot = false, offered = false, departed = false;
  // Nothing can switch it: its own agent hands over to the RAM system. `leaving`: that order is on offer.
  bool in_band = false, leaving = false;
  const Json* reinstall = nullptr;  // in the plan: its provider installs it anew, instead of a power cycle
  std::optional<Person> person;     // who switches it, where nothing else does
  std::string boot_before;          // boot id of its agent when the attempt began
  SteadyMs power_asked = {}, power_answered = {}, started = {}, deadline = {}, looked = {};
  bool stopping = false;     // its installed system was asked to stop, and the power cycle waits for that
  SteadyMs stop_asked = {};  // once per attempt
  int stayed_off = 0;        // power cycles repeated because power was off after them
  std::optional<PowerState> power;
  SteadyMs off_since = {};  // since when each look showed it off
  std::string power_error;
  DurationMs retry = 0;
  // Of the action under way, over its attempts.
  std::map<std::string, int> excused;  // how many of them did not count, by whose fault they were
  // whom this attempt is tried without, for a second opinion, and why
  std::map<std::string, std::string> without;
  std::vector<Json> results;  // of a check that is followed up: its own, then one of each order that followed
  Json follow;                // params of the order that follows; null: the action's own
  SteadyMs left_at = {};      // quarantined or stood down
  // For people.
  Wait wait;
  Reactor::TimerId timer = 0;
  double done = 0, total = 0, first_done = 0;
  SteadyMs first_at = {}, last_at = {};
  std::string unit, text, reason;

  const Action& action() const { return *actions[index]; }
  bool over() const {
    return stage == Stage::done || stage == Stage::quarantined || stage == Stage::not_started;
  }
};

namespace {

void append(std::vector<Write>& rows, std::vector<Write> more) {
  std::move(more.begin(), more.end(), std::back_inserter(rows));
}

// Worth another try without anybody changing anything?
bool may_pass(Code code) {
  return code == Code::failed || code == Code::timeout || code == Code::unavailable ||
         code == Code::cancelled;
}

std::string text_of(const Json& data, const char* key) {
  const auto it = data.is_object() ? data.find(key) : data.end();
  return data.is_object() && it != data.end() && it->is_string() ? it->get<std::string>() : "";
}
double number_of(const Json& data, const char* key) {
  const auto it = data.is_object() ? data.find(key) : data.end();
  return data.is_object() && it != data.end() && it->is_number() ? it->get<double>() : 0;
}

}  // namespace

std::string order_id(const RunRow& run, const std::string& action, int attempt) {
  return fmt::format("{}-{:x}/{}#{}", run.id, run.started, action, attempt);
}

// ---- plumbing ----

Executor::Executor(Reactor& reactor, ExecutorPorts ports, ExecutorHooks hooks, ExecutorTiming timing)
    : reactor_(reactor),
      ports_(ports),
      hooks_(std::move(hooks)),
      timing_(timing),
      alive_(std::make_shared<bool>(true)),
      began_(reactor.steady()) {}

Executor::~Executor() {
  *alive_ = false;
  if (sign_timer_) reactor_.cancel(sign_timer_);
  for (const auto& [name, node] : nodes_)
    if (node->timer) reactor_.cancel(node->timer);
}

template <typename F>
auto Executor::bound(Runtime& node, F callback) {
  return [this, alive = alive_, name = node.name, epoch = node.epoch, callback](auto... arguments) {
    if (!*alive) return;
    Runtime* found = runtime(name);
    if (!found || found->epoch != epoch) return;
    // Where muster itself is at fault the node must not wait for something that never comes: the others go
    // on, and the run ends.
    if (contain_exceptions("a node's turn", [&] { callback(*found, std::move(arguments)...); })) return;
    if (Runtime* left = runtime(name)) give_up(*left, "a fault of muster: see the controller's log");
  };
}

Executor::Runtime* Executor::runtime(const std::string& node) const {
  const auto it = nodes_.find(node);
  return it == nodes_.end() ? nullptr : it->second.get();
}

Executor::Live& Executor::live(const std::string& node) {
  auto& entry = live_[node];
  if (entry) return *entry;
  entry = std::make_unique<Live>();
  load_rows();
  believe_row(node, *entry);
  return *entry;
}

// What was known of its agent when the controller ended; its own word to this process counts more. An older
// copy of the database knows nothing.
void Executor::believe_row(const std::string& node, Live& agent) const {
  const auto found = rows_.find(node);
  if (found == rows_.end() || agent.contact || unproven(found->second)) return;
  const NodeRow& row = found->second;
  if (const auto mode = wire::mode_from_string(row.mode); mode.ok()) agent.mode = *mode;
  agent.boot_id = row.boot_id;
  if (row.last_seen > 0) agent.heard = steady_of(row.last_seen);
}

// Of before an older copy of the database was put in its place, and not confirmed since.
bool Executor::unproven(const NodeRow& row) const {
  const TimeMs restored = ports_.store.restored();
  return restored > 0 && row.last_seen <= restored;
}

// A time of an earlier process, or of a record. By a clock that was set meanwhile it may lie ahead: it was
// now, at the latest.
SteadyMs Executor::steady_of(TimeMs wall) const {
  return reactor_.steady() - std::max<DurationMs>(reactor_.now() - wall, 0);
}
TimeMs Executor::wall_of(SteadyMs at) const { return reactor_.now() - (reactor_.steady() - at); }

void Executor::load_rows() {
  if (rows_loaded_) return;
  const auto rows = ports_.store.nodes();
  if (!rows.ok()) {
    if (!std::exchange(unread_, true))
      log::error("node rows cannot be read", {{"error", rows.error().message}});
    return;
  }
  rows_loaded_ = true;
  unread_ = false;
  for (const auto& row : *rows) rows_.emplace(row.name, row);
  for (const auto& [name, agent] : live_)
    if (agent) believe_row(name, *agent);
}

// What is not known is not changed: a row made up from nothing would replace the one that could not be read,
// with the machine the name is bound to. The changes wait until the rows could be read.
void Executor::read_later() {
  if (std::exchange(reading_, true)) return;
  reactor_.after(kSecond, [this, alive = alive_] {
    if (!*alive) return;
    reading_ = false;
    load_rows();
    if (!rows_loaded_) return read_later();
    Rows rows;
    for (const auto& [node, change] : std::exchange(held_, {})) rows.push_back(changed_row(node, change));
    write(std::move(rows));
  });
}

NodeRow Executor::node_row(const std::string& node) const {
  const_cast<Executor*>(this)->load_rows();
  NodeRow row;
  row.name = node;
  if (const auto it = rows_.find(node); it != rows_.end()) row = it->second;
  // Contacts are not written one by one.
  if (const auto it = live_.find(node); it != live_.end() && it->second && it->second->contact)
    row.last_seen = it->second->seen;
  return row;
}

std::optional<wire::Mode> Executor::mode_of(const std::string& node) { return live(node).mode; }

std::optional<DurationMs> Executor::silent_for(const std::string& node) const {
  if (const auto it = live_.find(node); it != live_.end() && it->second && it->second->contact)
    return reactor_.steady() - it->second->contact;
  const NodeRow row = node_row(node);
  if (row.last_seen == 0 || unproven(row)) return std::nullopt;
  // By a clock that was set back it was heard in the future: it was not heard by this process, at any rate.
  return std::max<DurationMs>(reactor_.now() - row.last_seen, reactor_.steady() - began_);
}

TimeMs Executor::silent_since(const std::string& node) const {
  const auto it = live_.find(node);
  const SteadyMs last = it != live_.end() && it->second && it->second->contact ? it->second->contact : began_;
  return reactor_.steady() - last < timing_.silent_shown ? 0 : node_row(node).last_seen;
}

bool Executor::outdated(const std::string& node) const {
  if (ports_.store.restored() == 0) return false;
  const_cast<Executor*>(this)->load_rows();
  if (const auto it = live_.find(node); it != live_.end() && it->second && it->second->greeted) return false;
  const auto row = rows_.find(node);
  return row == rows_.end() || unproven(row->second);
}

Executor::Rows Executor::changed(const std::string& node, const std::function<void(NodeRow&)>& change) {
  load_rows();
  // In their order, also when the rows can be read again now.
  if (rows_loaded_ && held_.empty()) return {changed_row(node, change)};
  held_.emplace_back(node, change);
  read_later();
  return {};
}

Write Executor::changed_row(const std::string& node, const std::function<void(NodeRow&)>& change) {
  NodeRow row = node_row(node);
  change(row);
  if (row.state != "quarantined") row.held_by = HeldBy::nobody;
  if (row.state == "quarantined" && row.held_by == HeldBy::nobody) row.held_by = HeldBy::run;
  NodeRow& kept = rows_[node];
  if (kept.product_uuid != row.product_uuid) machines_.reset();
  kept = row;
  return row;
}

void Executor::set_node(const std::string& node, const std::function<void(NodeRow&)>& change) {
  write(changed(node, change));
}

bool Executor::forget(const std::string& node) {
  load_rows();
  if ((active() && runtime(node)) || !rows_loaded_ || !held_.empty()) return false;
  rows_.erase(node);
  machines_.reset();
  live_.erase(node);
  return true;
}

std::shared_ptr<const Machines> Executor::machines() const {
  const_cast<Executor*>(this)->load_rows();
  if (machines_ || !rows_loaded_) return machines_;
  auto made = std::make_shared<Machines>();
  for (const auto& [name, row] : rows_)
    if (row.state != "unadmitted") made->bind(row.product_uuid, name);
  return machines_ = made;
}

// One commit at a time, in order; what comes meanwhile goes into the next. A write that fails (disk full) is
// tried again until it succeeds, and nothing overtakes it: the journal's order is the order of events.
void Executor::write(Rows rows, std::function<void()> then) {
  std::move(rows.begin(), rows.end(), std::back_inserter(unwritten_));
  if (then) after_write_.push_back(std::move(then));
  if (!writing_) flush();
}

void Executor::flush() {
  if (unwritten_.empty() && after_write_.empty()) return;
  writing_ = true;
  auto rows = std::make_shared<Rows>(std::exchange(unwritten_, {}));
  auto then = std::make_shared<std::vector<std::function<void()>>>(std::exchange(after_write_, {}));
  commit(rows, then);
}

void Executor::commit(std::shared_ptr<Rows> rows, std::shared_ptr<std::vector<std::function<void()>>> then) {
  ports_.store.write(*rows, [this, alive = alive_, rows, then](Status status) {
    if (!*alive) return;
    if (!status.ok()) {
      if (!std::exchange(complained_, true))
        log::error("the store cannot be written; trying again every second",
                   {{"error", status.error().message}});
      reactor_.after(kSecond, [this, alive, rows, then] {
        if (*alive) commit(rows, then);
      });
      return;
    }
    writing_ = complained_ = false;
    flush();
    for (const auto& next : *then)
      if (*alive) next();
  });
}

void Executor::observe(const std::string& node, const std::string& kind, Json data) const {
  if (hooks_.observe) hooks_.observe({reactor_.now(), run_.id, node, kind, std::move(data)});
}

// One journal row of the node's current action. `then` runs when it is durable, unless the attempt was given
// up meanwhile.
void Executor::transition(Runtime& node, ActionState to, Json data, std::function<void()> then, Rows extra) {
  const Action& action = node.action();
  JournalRow row;
  row.run = run_.id;
  row.action = action.id;
  row.node = node.name;
  row.attempt = node.attempt;
  row.event = std::string(to_string(to));
  row.time = reactor_.now();
  row.data = std::move(data);
  if (const auto legal = log_.apply(row); !legal.ok()) {
    log::error("internal: " + legal.error().message);
    return;
  }
  observe(node.name, "action",
          {{"action", action.id},
           {"event", row.event},
           {"attempt", row.attempt},
           {"title", action.title},
           {"phase", action.phase},
           {"message", text_of(row.data, "message")}});
  extra.insert(extra.begin(), row);
  if (!then) return write(std::move(extra));
  write(std::move(extra), bound(node, [then](Runtime&) { then(); }));
}

void Executor::set_wait(Runtime& node, Wait wait) {
  const bool news = node.wait.reason != wait.reason || node.wait.awaited != wait.awaited;
  if (!news) wait.since = node.wait.since ? node.wait.since : wait.since;
  node.wait = std::move(wait);
  if (news && !node.wait.reason.empty())
    observe(node.name, "wait", to_json(node.wait, reactor_.now() - reactor_.steady().ms));
}

// ---- a run ----

void Executor::adopt(const Plan& plan, const RunRow& row) {
  for (const auto& [name, node] : nodes_)
    if (node->timer) reactor_.cancel(node->timer);
  plan_ = plan;
  run_ = row;
  ended_ = ending_ = false;
  log_ = StepLog();
  limits_ = Limits(plan_.limits);
  nodes_.clear();
  actions_.clear();
  proven_.clear();
  passed_.assign(plan_.barriers.size(), 0);
  absent_.clear();
  took_.clear();
  load_rows();
  for (const auto& name : plan_.nodes) {
    auto node = std::make_unique<Runtime>();
    node->name = name;
    node->epoch = ++epochs_;
    node->person = ports_.power.by_hand(name);
    nodes_[name] = std::move(node);
  }
  for (const auto& action : plan_.actions) {
    actions_[action.id] = &action;
    Runtime* node = runtime(action.node);
    if (!node) continue;
    node->actions.push_back(&action);
    if (action.kind != ActionKind::netboot || !action.params.is_object()) continue;
    const auto named = action.params.find("reinstall");
    if (named != action.params.end()) node->reinstall = &*named;
  }
  for (auto& [name, node] : nodes_) node->in_band = !node->reinstall && !ports_.power.netboots(name);
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
  write(std::move(rows), [this, done, id = row.id] {
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
  adopt(plan, row);
  const TimeMs last_sign =
      journal.empty() ? row.started : journal.back().time;    // by the clock as it went last
  std::map<std::string, std::map<std::string, int>> excused;  // by action and by whom
  std::map<std::string, std::vector<Json>> results;           // of those that are followed up
  for (const auto& entry : journal) {
    if (auto legal = log_.apply(entry); !legal.ok()) {
      ended_ = true;
      return fail(Code::corrupt, fmt::format("journal of run {}: {}", row.id, legal.error().message));
    }
    Runtime* node = runtime(entry.node);
    if (!node) continue;
    if (entry.event == "succeeded") proven_.insert(entry.action);
    if (entry.event == "intent") node->begun = true;
    if (entry.event == "quarantined") node->stage = Runtime::Stage::quarantined;
    if (entry.event == "not_started") node->stage = Runtime::Stage::not_started;
    if (entry.event == "failed" && !text_of(entry.data, "excused").empty())
      ++excused[entry.action][text_of(entry.data, "excused_by")];
    if (entry.event == "failed" && entry.data.value("follow_up", false))
      results[entry.action].push_back(entry.data.value("result", Json()));
    if (!node->over()) continue;
    node->reason = text_of(entry.data, "reason");
    node->left_at = steady_of(entry.time);
  }
  // Long after, or by a clock that was set back, nothing of it is to be taken up: the cluster may be at work
  // again, and the database may be an old one.
  if (const DurationMs away = reactor_.now() - last_sign;
      away > timing_.abandoned_after || away < -timing_.abandoned_after) {
    const std::string reason =
        away > 0 ? fmt::format(
                       "the controller was away for {} while it was under way, or its database is an older "
                       "copy: nothing goes on by itself after that, plan it again",
                       to_human(away))
                 : fmt::format(
                       "the controller's clock is {} behind its journal: nothing goes on by itself, set it "
                       "and plan it again",
                       to_human(-away));
    log::warning("run given up", {{"run", std::to_string(row.id)}, {"reason", reason}});
    cancel(reason);
    return Ok{};
  }
  sign();  // one that is killed time and again was not away for all of it
  stay_alive();
  for (const auto& [name, node] : nodes_) {
    while (node->index < node->actions.size() && proven_.count(node->action().id)) ++node->index;
    if (node->index < node->actions.size()) {
      node->excused = excused[node->action().id];
      node->results = results[node->action().id];
    }
    if (hooks_.follow_up && !node->results.empty())
      if (const auto next = hooks_.follow_up(node->action(), node->results)) node->follow = next->order;
    if (!node->over()) resume_node(*node);
  }
  observe("", "run", {{"state", "running"}, {"kind", plan_.kind}, {"resumed", true}});
  kick();
  return Ok{};
}

// What was under way when the controller ended. Its outcome is unknown: orders are offered again under the
// same id (the agent knows what it did), power is looked at before it is touched.
void Executor::resume_node(Runtime& node) {
  if (node.index >= node.actions.size()) return;
  const Action& action = node.action();
  const ActionRecord record = log_.of(action.id);
  node.attempt = record.attempt;
  if (record.state == ActionState::fresh) return;
  for (const Json* data : {&record.intent_data, &record.result})
    if (data->is_object() && data->contains("without") && (*data)["without"].is_object())
      for (const auto& [name, why] : (*data)["without"].items())
        node.without[name] = why.is_string() ? why.get<std::string>() : "";
  if (record.state == ActionState::failed || record.state == ActionState::unknown) {
    const bool again = tries_left(node) && record.result.value("retry", true);
    if (again) return begin(node, record.result.value("with_netboot", false));
    return give_up(node, text_of(record.result, "message"));
  }
  const SteadyMs now = reactor_.steady();
  Live& agent = live(node.name);
  // By a clock that was set meanwhile it may have begun in the future, or years ago: at most its whole time
  // has passed, at least none.
  const DurationMs whole = time_for(action), spent = whole + (node.person ? node.person->within : 0);
  node.started = now - std::clamp<DurationMs>(reactor_.now() - record.intent_time, 0, spent);
  node.boot_before = text_of(record.intent_data, "boot_before");
  node.with_netboot = record.intent_data.value("with_netboot", false);
  // When its power came on is in no journal: it has the firmware's whole time from now on.
  const bool boots = node.with_netboot || action.kind == ActionKind::netboot;
  node.deadline =
      boots ? now + plan_.limits.netboot : std::max(node.started + whole, now + timing_.after_resume);
  limits_.begin(lane_of(node), node.name);
  agent.heard = now;
  node.stage = Runtime::Stage::awaiting;
  const bool new_boot = !agent.boot_id.empty() && agent.boot_id != node.boot_before;
  if (action.kind == ActionKind::power_off) return power_off(node);
  if (action.kind == ActionKind::netboot || node.with_netboot) {
    if (agent.mode == wire::Mode::ram && new_boot) return got_ram(node);
    if (!node.person) limits_.begin(Lane::netboot, node.name);
    node.awaiting_ram = true;
    node.power_certain = node.person && record.state == ActionState::started;  // it was switched already
    node.power_asked = node.power_answered = now;
    node.stage = Runtime::Stage::powering;
    set_wait(node, {"the controller restarted in a power cycle", "the boot service", "",
                    node.in_band ? "the order is offered again" : "a look at the power state", now,
                    now + timing_.power_call});
    return rearm(node);
  }
  const NodeRow row = node_row(node.name);
  const bool leaves = action.kind == ActionKind::boot_disk || action.kind == ActionKind::reboot;
  if (leaves && new_boot && agent.mode == wire::Mode::installed &&
      (action.kind == ActionKind::reboot || row.image_digest == text_of(action.params, "digest")))
    return succeed(node, {{"boot_id", agent.boot_id}});
  reactor_.post(bound(node, [this](Runtime& n) { consider(n); }));
}

void Executor::rearm(Runtime& node) {
  ports_.boot.rearm(node.name, bound(node, [this](Runtime& n, Status armed) {
                      const SteadyMs now = reactor_.steady();
                      if (!armed.ok() && now < n.deadline)
                        return pause(n, kSecond,
                                     {"the controller restarted in a power cycle", "the boot service",
                                      armed.error().message, "asking it again", now, now + kSecond},
                                     [this](Runtime& m) { rearm(m); });
                      // The agent knows the order if it had it, and does not carry it out twice.
                      if (n.in_band) return order_leave(n);
                      // It goes on with what it began, or begins what it was only about to.
                      if (n.reinstall) return switch_on(n);
                      if (n.person && !n.power_certain) return ask_to_netboot(n, n.started);
                      n.stage = Runtime::Stage::awaiting;
                      consider(n);
                    }));
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
  write({row});
}

void Executor::cancel(const std::string& reason) {
  if (!active()) return;
  for (const auto& [name, node] : nodes_)
    if (!node->over()) stand_down(*node, reason);
  finish_run("cancelled", reason);
}

JournalRow Executor::quarantine_row(const std::string& node, const std::string& reason,
                                    const std::string& action) const {
  JournalRow row;
  row.run = run_.id;
  row.node = node;
  row.event = "quarantined";
  row.time = reactor_.now();
  row.data = {{"reason", reason}, {"action", action}};
  return row;
}

void Executor::quarantine(const std::string& node, const std::string& reason) {
  Runtime* found = active() ? runtime(node) : nullptr;
  if (found && !found->over()) return give_up(*found, reason);
  if (found && found->stage == Runtime::Stage::done) {
    // It came through, others did not yet: the run's end must not overrule this.
    found->stage = Runtime::Stage::quarantined;
    found->reason = reason;
    found->left_at = reactor_.steady();
    write({quarantine_row(node, reason, "")});
  }
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
    for (const auto& [name, node] : nodes_) quarantined += node->stage == Runtime::Stage::quarantined;
    for (const auto& name : plan_.nodes)
      if (Runtime* node = runtime(name); node && node->stage == Runtime::Stage::pending) {
        kick_node(*node, quarantined);
        quarantined += node->stage == Runtime::Stage::quarantined;
      }
    size_t over = 0, good = 0;
    for (const auto& [name, node] : nodes_) {
      over += node->over();
      good += node->stage == Runtime::Stage::done;
    }
    if (over == nodes_.size()) finish_run(good == nodes_.size() ? "done" : good ? "partial" : "failed");
  });
}

void Executor::kick_node(Runtime& node, int quarantined) {
  if (node.index >= node.actions.size()) {
    // Only after a crash between the last result and the node's own row, or for a node without actions.
    node.stage = Runtime::Stage::committing;
    return write(settled(node), bound(node, [this](Runtime& n) {
                   n.stage = Runtime::Stage::done;
                   kick();
                 }));
  }
  if (!node.begun && limits_.budget_spent(quarantined)) {
    stand_down(node, fmt::format("not started: {} nodes are quarantined and the failure budget is {}",
                                 quarantined, plan_.limits.failure_budget));
    return kick();
  }
  if (!ready(node)) return;
  const Lane lane = lane_of(node);
  if (!limits_.may_begin(lane))
    return set_wait(node, {"the limit of the plan is reached",
                           "a free place for " + node.action().title,
                           "",
                           "it starts",
                           reactor_.steady(),
                           {}});
  limits_.begin(lane, node.name);
  begin(node, false);
}

// Whether nobody has to wait for this action any more. `never`: why it will not happen, for those that need
// it. A node that waits for a person is waited for by those only that need it.
bool Executor::settled_for(const std::string& id, bool hard, std::string& never) const {
  if (proven_.count(id)) return true;
  const auto action = actions_.find(id);
  const Runtime* other = action == actions_.end() ? nullptr : runtime(action->second->node);
  if (!hard && other && other->person && other->stage == Runtime::Stage::powering) return true;
  if (other && (!other->over() || other->stage == Runtime::Stage::done)) return false;
  if (hard)
    never = fmt::format("needs {}, which will not happen{}", id,
                        other ? ": " + other->name + " " + other->reason : "");
  return !hard;
}

bool Executor::ready(Runtime& node) {
  const auto wait_for = [&](const std::string& reason, const std::string& awaited, const std::string& id) {
    set_wait(node, {reason,
                    awaited,
                    id + ": " + std::string(to_string(log_.of(id).state)),
                    node.action().title,
                    reactor_.steady(),
                    {}});
    return false;
  };
  const Action& mine = node.action();
  for (const auto& dependency : mine.after) {
    std::string never;
    if (settled_for(dependency.action, dependency.hard, never)) continue;
    if (!never.empty()) return give_up(node, never), false;
    const Action& other = *actions_.at(dependency.action);
    return wait_for("waiting for " + other.node, other.node + ": " + other.title, other.id);
  }
  if (mine.behind < 0 || static_cast<size_t>(mine.behind) >= plan_.barriers.size()) return true;
  // What is settled once stays so: each member is looked at until then, not again for every node that waits.
  const auto& members = plan_.barriers[static_cast<size_t>(mine.behind)];
  size_t& passed = passed_[static_cast<size_t>(mine.behind)];
  std::string never;
  while (passed < members.size() && settled_for(members[passed], false, never)) ++passed;
  if (passed == members.size()) return true;
  const auto open = actions_.find(members[passed]);
  // Not by whose name: thousands that wait would each tell of every single one that comes.
  return wait_for("waiting for the other nodes",
                  "all nodes: " + (open == actions_.end() ? members[passed] : open->second->title),
                  members[passed]);
}

void Executor::finish_run(const std::string& state, const std::string& reason) {
  if (ended_) return;
  if (!hooks_.conclude || state == "cancelled") return end_run(state, reason);
  if (std::exchange(ending_, true)) return;
  // Behind every row of the run, so that the conclusion sees them all.
  write({}, [this, state, reason, id = run_.id] {
    if (run_.id == id && !ended_) end_run(state, reason);
  });
}

// Degraded nodes keep working; those that fail in the light of the others are quarantined like any other.
void Executor::conclude(Rows& rows) {
  Conclusion conclusion = hooks_.conclude(run_);
  size_t quarantined = 0;
  for (const auto& verdict : conclusion.nodes) {
    Runtime* node = runtime(verdict.name);
    if (!node || node->stage != Runtime::Stage::done) continue;
    const char* state = verdict.quarantine ? "quarantined" : "degraded";
    append(rows, changed(verdict.name, [state, reason = verdict.reason](NodeRow& row) {
             row.state = state;
             row.reason = reason;
           }));
    observe(verdict.name, "node", {{"state", state}, {"reason", verdict.reason}});
    if (!verdict.quarantine) continue;
    ++quarantined;
    node->stage = Runtime::Stage::quarantined;
    node->reason = verdict.reason;
    rows.push_back(quarantine_row(verdict.name, verdict.reason, ""));
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
  write(std::move(rows), [this, ended = run_] {
    if (hooks_.ended) hooks_.ended(ended);
  });
}

// ---- one attempt ----

void Executor::begin(Runtime& node, bool with_netboot) {
  const Action& action = node.action();
  const bool first = !std::exchange(node.begun, true);
  end_attempt(node);
  limits_.begin(lane_of(node), node.name);
  node.attempt = log_.of(action.id).attempt + 1;
  node.started = reactor_.steady();
  node.deadline = node.started +
                  (with_netboot ? plan_.limits.netboot
                                : time_for(action));  // the order's own begins when the RAM system is there
  node.boot_before = live(node.name).boot_id;
  node.with_netboot = with_netboot;
  node.stage = Runtime::Stage::committing;
  set_wait(node, {});
  Rows extra;
  const bool installs = plan_.kind != "discover" && plan_.kind != "accept" && plan_.kind != "wake" &&
                        !plan_.only_serves(node.name);
  if (first && installs)
    append(extra,
           changed(node.name, [state = plan_.kind == "drain" ? "draining" : "installing"](NodeRow& row) {
             row.state = state;
             row.reason.clear();
           }));
  // In the same transaction: whoever goes on with this attempt must not take a token of the power-on before
  // for one of this.
  if (with_netboot || action.kind == ActionKind::netboot) extra.push_back(DeleteJoinTokens{node.name});
  Json data = {{"boot_before", node.boot_before}, {"with_netboot", with_netboot}};
  if (!node.without.empty()) data["without"] = node.without;
  transition(
      node, ActionState::intent, std::move(data), [this, &node] { effect(node); }, std::move(extra));
}

void Executor::effect(Runtime& node) {
  const ActionKind kind = node.action().kind;
  if (kind == ActionKind::netboot || node.with_netboot) return netboot(node);
  if (kind == ActionKind::power_off) return power_off(node);
  node.stage = Runtime::Stage::awaiting;
  if (kind == ActionKind::wake) return consider(node);
  // An agent that was silent before gets its time from now on.
  Live& agent = live(node.name);
  if (agent.heard < node.started - timing_.silent_after) agent.heard = node.started;
  consider(node);
}

DurationMs Executor::time_for(const Action& action) const {
  return action.timeout + (is_order(action.kind) ? timing_.order_grace : 0);
}

// Forgets what was under way. Lanes are held until the action is over; only the power cycle's is given back
// here.
void Executor::end_attempt(Runtime& node) {
  node.epoch = ++epochs_;
  if (node.timer) reactor_.cancel(std::exchange(node.timer, 0));
  withdraw(node);
  withdraw_stop(node);
  withdraw_leave(node);
  if (node.stage == Runtime::Stage::powering) ports_.power.forget(node.name);
  if (node.awaiting_ram) ports_.boot.disarm(node.name);
  if (node.index < node.actions.size() && node.action().kind != ActionKind::netboot)
    limits_.end(Lane::netboot, node.name);
  node.awaiting_ram = node.power_certain = node.with_netboot = node.departed = false;
  node.power_asked = node.power_answered = node.looked = node.stop_asked = {};
  node.stayed_off = 0;
  node.power.reset();
  node.off_since = {};
  node.power_error.clear();
  node.retry = 0;
  node.done = node.total = node.first_done = 0;
  node.first_at = node.last_at = {};
  node.text.clear();
}

bool Executor::claim_or_pause(Runtime& node) {
  if (limits_.holds(Lane::netboot, node.name)) return true;
  const SteadyMs now = reactor_.steady();
  if (limits_.may_begin(Lane::netboot)) {
    limits_.begin(Lane::netboot, node.name);
    return true;
  }
  const DurationMs delay = 2 * kSecond;
  node.deadline += delay;  // its time to boot begins with its power-on
  pause(node, delay,
        {"the limit of the plan is reached", "a free place for a power cycle", "", "power cycle", now,
         now + delay},
        [this](Runtime& n) { netboot(n); });
  return false;
}

void Executor::netboot(Runtime& node) {
  const SteadyMs now = reactor_.steady();
  if (now >= node.deadline)
    return lose_attempt(node, "no power cycle within its time; " + node.power_error, true);
  if (node.person) return netboot_by_hand(node);
  if (!claim_or_pause(node)) return;
  if (node.in_band) return leave(node);
  if (should_stop(node)) return stop_in_order(node);
  node.epoch = ++epochs_;
  node.stage = Runtime::Stage::powering;
  node.awaiting_ram = true;
  node.power_certain = false;
  node.power.reset();
  set_wait(node, {"power cycle into the RAM system", "the BMC's answer", node.power_error,
                  "a look at the power state", now, now + timing_.power_call});
  ports_.boot.arm(node.name, bound(node, [this](Runtime& n, Status armed) {
                    if (!armed.ok())
                      return on_powered(n, fail(Code::unavailable, "boot service: " + armed.error().message));
                    const SteadyMs armed_at = reactor_.steady(), at = limits_.reserve_power_on(armed_at);
                    if (at <= armed_at) return switch_on(n);
                    n.deadline += at - armed_at;
                    pause(n, at - armed_at,
                          {"power-ons are staggered", "its turn", "", "power cycle", armed_at, at},
                          [this](Runtime& m) { switch_on(m); });
                  }));
}

// ---- a system that runs is stopped in order ----

// One that is off, silent, or in RAM has nothing to lose by losing its power. Of one that said nothing to
// this process of the controller that is not known, whatever its row says: it may be at work and cut off. It
// is asked, too, and has its time if it is not off.
bool Executor::should_stop(const Runtime& node) const {
  if (node.stop_asked) return false;
  const auto found = live_.find(node.name);
  if (found == live_.end() || !found->second->contact) return ever_seen(node.name);
  const Live& agent = *found->second;
  return (!agent.mode || *agent.mode != wire::Mode::ram) &&
         reactor_.steady() - agent.contact < timing_.silent_after;
}

bool Executor::ever_seen(const std::string& name) const {
  const NodeRow row = node_row(name);
  return !rows_loaded_ || !row.mode.empty() || !row.image_digest.empty() || ports_.store.restored() > 0;
}

wire::WorkOrder Executor::stop_order(const Runtime& node) const {
  wire::WorkOrder order;
  order.id = order_id(node) + "-stop";
  order.kind = "power_off";
  order.params = Json::object();
  order.deadline = timing_.stop_wait;
  return order;
}

// What is in its page cache, and what its daemons hold, is on its disks before the power goes. What counts is
// that the BMC sees it off; a word of the agent, which is on its way down, is not waited for.
void Executor::stop_in_order(Runtime& node) {
  node.epoch = ++epochs_;
  node.stopping = true;
  node.stop_asked = reactor_.steady();
  ports_.link.offer(node.name, stop_order(node));
  await_stop(node);
}

void Executor::await_stop(Runtime& node) {
  node.stage = Runtime::Stage::looking;
  const Wait wait{fmt::format("stopping {} in order, up to {}", node.name, to_human(timing_.stop_wait)),
                  "power is off",
                  "",
                  "it is switched off",
                  node.stop_asked,
                  node.stop_asked + timing_.stop_wait};
  set_wait(node, wait);
  ports_.power.state(
      node.name, bound(node, [this, wait](Runtime& n, Result<PowerState> state) {
        if (state.ok() && *state == PowerState::off) return end_stop(n, "stopped in order");
        const DurationMs left = wait.until - reactor_.steady();
        if (left <= 0)
          return end_stop(
              n, fmt::format("did not stop within {}, is switched off", to_human(timing_.stop_wait)));
        pause(n, std::min(left, timing_.stop_look), wait, [this](Runtime& m) { await_stop(m); });
      }));
}

void Executor::end_stop(Runtime& node, const std::string& outcome) {
  observe(node.name, "power", {{"action", outcome}});
  withdraw_stop(node);
  node.deadline += reactor_.steady() - node.stop_asked;
  netboot(node);
}

void Executor::withdraw_stop(Runtime& node) {
  if (std::exchange(node.stopping, false)) ports_.link.withdraw(node.name, stop_order(node).id);
}

// ---- a node that nothing can switch hands over by itself ----

wire::WorkOrder Executor::leave_order(const Runtime& node) const {
  wire::WorkOrder order;
  order.id = order_id(node) + "-kexec";
  order.kind = "kexec";
  order.deadline = timing_.leave_ready;
  return order;
}

void Executor::leave(Runtime& node) {
  // In the RAM system already, whatever the last attempt died of: nothing is to be booted.
  if (live(node.name).mode == wire::Mode::ram) return got_ram(node);
  node.epoch = ++epochs_;
  node.stage = Runtime::Stage::powering;
  node.awaiting_ram = true;
  node.power_certain = false;
  const SteadyMs now = reactor_.steady();
  set_wait(node, {"its own system is to hand over to the RAM system", "the boot service", node.power_error,
                  "the order to its agent", now, now + timing_.power_call});
  ports_.boot.arm(node.name, bound(node, [this](Runtime& n, Status armed) {
                    if (!armed.ok())
                      return on_powered(n, fail(Code::unavailable, "boot service: " + armed.error().message));
                    order_leave(n);
                  }));
}

void Executor::order_leave(Runtime& node) {
  node.stage = Runtime::Stage::powering;
  ports_.boot.leave_order(node.name, bound(node, [this](Runtime& n, Result<Json> params) {
                            if (!params.ok()) return on_powered(n, std::move(params).error());
                            wire::WorkOrder order = leave_order(n);
                            order.params = std::move(*params);
                            n.stage = Runtime::Stage::awaiting;
                            n.leaving = true;
                            n.power_asked = reactor_.steady();
                            ports_.link.offer(n.name, std::move(order));
                            consider(n);
                          }));
}

void Executor::withdraw_leave(Runtime& node) {
  if (std::exchange(node.leaving, false)) ports_.link.withdraw(node.name, leave_order(node).id);
}

// Ready, and on its way from now on; or refused, with nothing done.
void Executor::on_left(Runtime& node, const wire::Event& event) {
  if (event.kind == "log") observe(node.name, "log", event.data);
  if (event.kind != "finished" || node.power_certain) return;
  const bool good = event.data.is_object() && event.data.contains("ok") && event.data["ok"] == true;
  if (!good) {
    // What the agent answered it answers to this order for good: to ask again is another attempt.
    const Code code = code_from_string(text_of(event.data, "code"));
    return on_powered(node, fail(may_pass(code) ? Code::failed : code, text_of(event.data, "message")));
  }
  node.leaving = false;
  ports_.link.let_go(node.name, event.order);  // withdrawn it would stay
  const std::string way = event.data.contains("result") ? text_of(event.data["result"], "way") : "";
  observe(node.name, "power",
          {{"action", fmt::format("hands over to the RAM system ({})", way.empty() ? "kexec" : way)}});
  on_powered(node, Ok{});
}

// ---- a person switches it ----

// Who waits for a person holds no place that another node could have.
Lane Executor::lane_of(const Runtime& node) const {
  const ActionKind kind = node.action().kind;
  const bool switched = kind == ActionKind::netboot || kind == ActionKind::wake;
  return node.person && switched ? Lane::free : Limits::lane_of(kind);
}

// It is at work until they come: nothing is stopped before.
void Executor::netboot_by_hand(Runtime& node) {
  const SteadyMs now = reactor_.steady();
  const Live& agent = live(node.name);
  // In the RAM system already, whatever the last attempt died of: nobody has to go there.
  if (agent.mode == wire::Mode::ram && agent.contact && now - agent.contact < timing_.silent_after)
    return got_ram(node);
  node.epoch = ++epochs_;
  node.stage = Runtime::Stage::powering;
  node.awaiting_ram = true;
  node.power_certain = false;
  ports_.boot.arm(node.name, bound(node, [this, now](Runtime& n, Status armed) {
                    if (!armed.ok())
                      return on_powered(n, fail(Code::unavailable, "boot service: " + armed.error().message));
                    ask_to_netboot(n, now);
                  }));
}

// `since`: when they were asked first, perhaps by an earlier life of this controller. What ends it is the
// machine's request for its RAM system, the operator's word, or the RAM system's hello (got_ram).
void Executor::ask_to_netboot(Runtime& node, SteadyMs since) {
  ask_person(
      node, "restart it, booting from the network", since,
      [this](const std::string& name, PowerPort::Done done) { ports_.power.netboot(name, std::move(done)); },
      [this](Runtime& n, Status result) {
        if (result.ok()) {
          n.power_asked = reactor_.steady();
          n.deadline = n.power_asked + plan_.limits.netboot;
          observe(n.name, "power", {{"action", "switched by hand"}});
          if (log_.of(n.action().id).state == ActionState::intent)
            transition(n, ActionState::started, {{"by_hand", true}});
        }
        on_powered(n, std::move(result));
      });
}

void Executor::ask_person(Runtime& node, const std::string& task, SteadyMs since,
                          const std::function<void(const std::string&, PowerPort::Done)>& ask,
                          const std::function<void(Runtime&, Status)>& then) {
  const SteadyMs now = reactor_.steady(), until = std::max(since + node.person->within, now + 1);
  const std::string& where = node.person->where;
  node.stage = Runtime::Stage::powering;
  limits_.end(Limits::lane_of(node.action().kind), node.name);
  set_wait(node, {fmt::format("by hand until {}: {}{}", to_iso8601(wall_of(until)), task,
                              where.empty() ? "" : " (" + where + ")"),
                  "its effect, or `muster power done " + node.name + "`", node.power_error,
                  "quarantine: nobody came", since, until});
  ask(node.name, bound(node, [this, then](Runtime& n, Status result) {
        if (n.timer) reactor_.cancel(std::exchange(n.timer, 0));
        limits_.begin(lane_of(n), n.name);
        then(n, std::move(result));
      }));
  if (node.timer) reactor_.cancel(node.timer);
  node.timer = reactor_.after(
      until - now, bound(node, [this, task](Runtime& n) {
        n.timer = 0;
        fail_attempt(
            n,
            fail(Code::denied, fmt::format("nobody did it within {}: {}", to_human(n.person->within), task)),
            Json());
      }));
  kick();  // whoever waited for all nodes does not wait for this one
}

void Executor::switch_on(Runtime& node) {
  node.stage = Runtime::Stage::powering;
  node.power_asked = reactor_.steady();
  if (node.reinstall) return reinstall(node);
  set_wait(node, {"power cycle into the RAM system", "the BMC's answer", node.power_error,
                  "a look at the power state", node.power_asked, node.power_asked + timing_.power_call});
  ports_.power.netboot(node.name,
                       bound(node, [this](Runtime& n, Status result) { on_powered(n, std::move(result)); }));
}

// The time for a boot begins when the provider's system was told to hand over.
void Executor::reinstall(Runtime& node) {
  set_wait(node,
           {"its provider installs a system anew, from which the RAM system is started",
            "the new system, over SSH", node.power_error, "another try, then quarantine", node.power_asked,
            std::max(node.deadline, node.power_asked + node.actions.front()->timeout)});
  ports_.power.reinstall(node.name, *node.reinstall, bound(node, [this](Runtime& n, Status result) {
                           n.deadline = reactor_.steady() + plan_.limits.netboot;
                           on_powered(n, std::move(result));
                         }));
}

void Executor::on_powered(Runtime& node, Status result) {
  node.stage = Runtime::Stage::awaiting;
  node.power_answered = reactor_.steady();
  if (result.ok()) {
    node.power_certain = true;
    node.power_error.clear();
    node.power = PowerState::on;
    return consider(node);
  }
  withdraw_leave(node);
  const Error& error = result.error();
  const std::string what = node.in_band ? "it cannot hand over to the RAM system: " : "power: ";
  node.power_error = error.message;
  if (error.code == Code::timeout) return consider(node);  // unknown: look
  if (error.code == Code::failed || error.code == Code::conflict)
    return lose_attempt(node, what + error.message, true);
  if (error.code != Code::unavailable)
    return fail_attempt(node, fail(error.code, what + error.message), Json());
  const SteadyMs now = reactor_.steady();
  node.retry = node.retry ? std::min(node.retry * 2, timing_.retry_last) : timing_.retry_first;
  pause(node, node.retry,
        {node.in_band ? "it cannot hand over to the RAM system now"
                      : "the BMC does not take the power cycle now",
         node.in_band ? "its agent's answer" : "an answer of the BMC", error.message, "it is asked again",
         now, now + node.retry},
        [this](Runtime& n) { netboot(n); });
}

void Executor::power_off(Runtime& node) {
  node.epoch = ++epochs_;
  if (node.person)
    return ask_person(
        node, "switch it off", node.started,
        [this](const std::string& name, PowerPort::Done done) {
          ports_.power.power_off(name, std::move(done));
        },
        [this](Runtime& n, Status result) {
          if (result.ok()) return succeed(n, Json::object());
          fail_attempt(n, fail(result.error().code, "power: " + result.error().message), Json());
        });
  node.stage = Runtime::Stage::powering;
  set_wait(node, {"power off", "the BMC's answer", node.power_error, "a look at the power state",
                  reactor_.steady(), reactor_.steady() + timing_.power_call});
  ports_.power.power_off(
      node.name, bound(node, [this](Runtime& n, Status result) {
        if (result.ok()) return succeed(n, Json::object());
        if (result.error().code == Code::timeout || result.error().code == Code::unavailable) {
          if (reactor_.steady() >= n.deadline)
            return lose_attempt(n, "power: " + result.error().message, false);
          return pause(n, timing_.look_again,
                       {"power off", "the BMC's answer", result.error().message, "it is asked again",
                        reactor_.steady(), reactor_.steady() + timing_.look_again},
                       [this](Runtime& m) { power_off(m); });
        }
        fail_attempt(n, fail(result.error().code, "power: " + result.error().message), Json());
      }));
}

// ---- a silent node is looked for ----

// Nothing is done to one that is on but to wait: what it does there is not known.
void Executor::wake(Runtime& node) {
  const SteadyMs now = reactor_.steady();
  const Live& agent = live(node.name);
  if (agent.contact && now - agent.contact < timing_.silent_after)
    return succeed(node, {{"boot_id", agent.boot_id}});
  if (node.person && node.stayed_off == 0) return wake_by_hand(node);
  if (now >= node.deadline) {
    const TimeMs since = node_row(node.name).last_seen;
    return fail_attempt(
        node,
        fail(Code::conflict, fmt::format("{}; {}; `muster reimage {}` installs it anew",
                                         since > 0 ? "silent since " + to_iso8601(since) : "not heard",
                                         power_text(situation(node)), node.name)),
        Json());
  }
  if (!node.person && (!node.looked || now >= node.looked + timing_.wake_look)) return look(node);
  if (node.power == PowerState::off && node.stayed_off < timing_.power_tries) return power_on(node);
  const SteadyMs until =
      node.person ? node.deadline : std::min(node.deadline, node.looked + timing_.wake_look);
  set_wait(node, {"it is silent", "a sign of life of its agent", power_text(situation(node)), "quarantine",
                  node.started, node.deadline});
  if (node.timer) reactor_.cancel(node.timer);
  node.timer = reactor_.after(until - now, bound(node, [this](Runtime& n) {
                                n.timer = 0;
                                consider(n);
                              }));
}

void Executor::wake_by_hand(Runtime& node) {
  node.epoch = ++epochs_;
  ++node.stayed_off;
  ask_person(
      node, "switch it on", node.started,
      [this](const std::string& name, PowerPort::Done done) { ports_.power.power_on(name, std::move(done)); },
      [this](Runtime& n, Status result) {
        n.stage = Runtime::Stage::awaiting;
        n.deadline = reactor_.steady() + n.action().timeout;  // a boot's length from then on
        n.power_error = result.ok() ? "" : result.error().message;
        consider(n);
      });
}

void Executor::power_on(Runtime& node) {
  node.epoch = ++epochs_;
  ++node.stayed_off;
  const SteadyMs at = limits_.reserve_power_on(reactor_.steady());
  node.deadline = std::max(node.deadline, at + node.action().timeout);  // a boot's length from then on
  pause(node, at - reactor_.steady(),
        {"power on", "the BMC's answer", node.power_error, "a look at the power state", reactor_.steady(),
         at + timing_.power_call},
        [this](Runtime& n) {
          n.stage = Runtime::Stage::powering;
          ports_.power.power_on(n.name, bound(n, [this](Runtime& m, Status result) {
                                  m.stage = Runtime::Stage::awaiting;
                                  m.looked = reactor_.steady();
                                  m.power_error = result.ok() ? "" : result.error().message;
                                  m.power.reset();
                                  consider(m);
                                }));
        });
}

void Executor::look(Runtime& node) {
  node.epoch = ++epochs_;
  node.stage = Runtime::Stage::looking;
  const SteadyMs now = reactor_.steady();
  set_wait(node, {"looking at the power state", "the BMC's answer", node.power_error, "a decision", now,
                  now + timing_.power_call});
  ports_.power.state(node.name, bound(node, [this](Runtime& n, Result<PowerState> state) {
                       n.stage = Runtime::Stage::awaiting;
                       n.looked = std::max(reactor_.steady(), n.power_asked + 1);
                       n.power.reset();
                       n.power_error = state.ok() ? "" : state.error().message;
                       if (state.ok()) n.power = *state;
                       if (n.power != PowerState::off)
                         n.off_since = {};
                       else if (!n.off_since)
                         n.off_since = n.looked;
                       consider(n);
                     }));
}

void Executor::pause(Runtime& node, DurationMs delay, Wait wait, std::function<void(Runtime&)> then) {
  node.stage = Runtime::Stage::pausing;
  set_wait(node, std::move(wait));
  if (node.timer) reactor_.cancel(node.timer);
  node.timer = reactor_.after(delay, bound(node, [then](Runtime& n) {
                                n.timer = 0;
                                then(n);
                              }));
}

Situation Executor::situation(const Runtime& node) const {
  const auto found = live_.find(node.name);
  Situation s;
  s.kind = node.action().kind;
  s.in_band = node.in_band;
  s.by_hand = node.person.has_value();
  s.awaiting_ram = node.awaiting_ram;
  s.power_certain = node.power_certain;
  s.power_asked = node.power_asked;
  s.power_answered = node.power_answered;
  s.stayed_off = node.stayed_off;
  s.now = reactor_.steady();
  s.started = node.started;
  s.deadline = node.deadline;
  if (found != live_.end()) {
    s.mode = found->second->mode;
    s.heard = found->second->heard;
    s.contact = found->second->spoke;
    s.same_system = !node.boot_before.empty() && found->second->boot_id == node.boot_before;
  }
  s.departed = node.departed;
  // An inventory right behind a netboot is of the RAM system that this plan started itself.
  const bool of_ram = s.kind == ActionKind::inventory && node.index > 0 &&
                      node.actions[node.index - 1]->kind == ActionKind::netboot;
  s.may_netboot = of_ram || s.kind == ActionKind::netboot || s.kind == ActionKind::image ||
                  s.kind == ActionKind::boot_disk;
  s.power = node.power;
  s.power_error = node.power_error;
  s.looked = node.looked;
  s.off_since = node.off_since;
  if (hooks_.panic) s.panic = hooks_.panic(node.name, node.started);
  return s;
}

void Executor::consider(Runtime& node) {
  if (node.stage != Runtime::Stage::awaiting) return;
  live(node.name);
  if (node.action().kind == ActionKind::wake) return wake(node);
  Decision decision = advance(situation(node), timing_);
  switch (decision.what) {
    case Decision::What::look:
      return look(node);
    case Decision::What::netboot:
      node.stayed_off += node.power == PowerState::off;
      return netboot(node);
    case Decision::What::again:
      return lose_attempt(node, decision.reason, decision.with_netboot);
    case Decision::What::fail:
      return fail_attempt(node, fail(Code::conflict, decision.reason), Json());
    case Decision::What::offer: {
      offer(node);
      const SteadyMs silent = live(node.name).heard + timing_.silent_after;
      decision.wait = {node.action().title, "the agent's result",
                       node.text,           "a look at the power state when it is silent",
                       node.started,        std::min(silent, node.deadline)};
      break;
    }
    case Decision::What::wait:
      break;
  }
  const SteadyMs now = reactor_.steady();
  decision.wait.until = std::max(decision.wait.until, now + 1);
  const SteadyMs until =
      decision.check_at > now ? std::min(decision.check_at, decision.wait.until) : decision.wait.until;
  set_wait(node, std::move(decision.wait));
  if (node.timer) reactor_.cancel(node.timer);
  node.timer = reactor_.after(until - now, bound(node, [this](Runtime& n) {
                                n.timer = 0;
                                consider(n);
                              }));
}

wire::WorkOrder Executor::order_for(const Runtime& node) const {
  const Action& action = node.action();
  wire::WorkOrder order;
  order.id = order_id(node);
  order.kind = std::string(to_string(action.kind));
  order.params = node.follow.is_null() ? action.params : node.follow;
  order.deadline = action.timeout;
  return order;
}

std::string Executor::order_id(const Runtime& node) const {
  return muster::order_id(run_, node.action().id, node.attempt);
}

// Does not take part now: quarantined in this run, or outside of it and not accepted; or found absent and not
// heard since.
bool Executor::gone(const std::string& name) const {
  if (const auto absent = absent_.find(name); absent != absent_.end()) {
    const auto agent = live_.find(name);
    if (agent == live_.end() || agent->second->heard <= absent->second) return true;
  }
  if (const Runtime* node = runtime(name))
    return node->stage == Runtime::Stage::quarantined || node->stage == Runtime::Stage::not_started;
  const auto row = rows_.find(name);
  return row != rows_.end() && row->second.state != "accepted" && row->second.state != "degraded";
}

bool Executor::gone_since(const std::string& name, SteadyMs time) const {
  if (!gone(name)) return false;
  const auto absent = absent_.find(name);
  const Runtime* node = runtime(name);
  return std::max(absent == absent_.end() ? SteadyMs{} : absent->second, node ? node->left_at : SteadyMs{}) >=
         time;
}

// Nothing is recorded of it and nobody heard of it: a declared node that no run was about yet, or no node.
bool Executor::never_seen(const std::string& name) const {
  if (!rows_loaded_ || ports_.store.restored() > 0 || runtime(name) || rows_.count(name)) return false;
  const auto agent = live_.find(name);
  return agent == live_.end() || !agent->second->contact;
}

void Executor::offer(Runtime& node) {
  if (std::exchange(node.offered, true)) return;
  if (node.action().kind == ActionKind::boot_disk) ports_.boot.disarm(node.name);
  wire::WorkOrder order = order_for(node);
  const auto declared = neighbours_in(order.params);
  for (const auto& step : narrow_order(order.params, node.name, [&](const std::string& name) {
         return gone(name) || node.without.count(name) > 0 || (declared.count(name) && never_seen(name));
       })) {
    JournalRow row;
    row.run = run_.id;
    row.action = node.action().id;
    row.node = node.name;
    row.attempt = node.attempt;
    row.event = "step";
    row.time = reactor_.now();
    row.data = {{"step", step},
                {"name", step},
                {"status", "incomplete"},
                {"message", "no other live node to do it with"},
                {"ms", 0}};
    observe(node.name, "step", row.data);
    write({row});
  }
  ports_.link.offer(node.name, std::move(order));
}

void Executor::withdraw(Runtime& node) {
  if (!std::exchange(node.offered, false)) return;
  ports_.link.withdraw(node.name, order_id(node));
}

bool Executor::expects(const std::string& name, const std::string& order) const {
  const Runtime* node = active() ? runtime(name) : nullptr;
  return node && !node->over() && node->index < node->actions.size() &&
         (order == order_id(*node) ||
          (node->awaiting_ram && node->in_band && order == leave_order(*node).id));
}

// ---- what agents say ----

void Executor::on_contact(const std::string& name, const Presence& present) {
  Live& agent = live(name);
  const SteadyMs now = reactor_.steady();
  const DurationMs gap = now - agent.heard;
  // Of one that this process hears for the first time nobody knows whether it was away meanwhile.
  if (gap >= timing_.silent_after || !agent.contact) agent.returned = now;
  const bool other_boot =
      !present.boot_id.empty() && present.boot_id != agent.boot_id;  // its hello comes with this
  if (!agent.greeted) {
    // It said hello to an earlier process. What became of it since, no row knows as well as the agent itself.
    if (present.mode) return on_hello({name, *present.mode, present.boot_id, present.image_digest});
    // An agent of an older version says its boot alone. The boot of which the row tells runs the system of
    // which the row tells.
    const auto row = rows_.find(name);
    const bool known =
        row != rows_.end() && !present.boot_id.empty() && present.boot_id == row->second.boot_id;
    if (const auto mode = wire::mode_from_string(known ? row->second.mode : ""); known && mode.ok())
      return on_hello({name, *mode, present.boot_id, row->second.image_digest});
    if (other_boot) agent.mode.reset();
  }
  hear(agent);
  if (other_boot) return;
  agent.spoke = agent.contact;
  Runtime* node = active() ? runtime(name) : nullptr;
  if (node && node->stage == Runtime::Stage::awaiting && (gap >= timing_.silent_after || !node->offered))
    consider(*node);
}

void Executor::hear(Live& agent) {
  agent.heard = agent.contact = reactor_.steady();
  agent.seen = reactor_.now();
}

void Executor::on_hello(const Hello& hello) {
  Live& agent = live(hello.node);
  const bool new_boot = agent.boot_id != hello.boot_id;
  agent.mode = hello.mode;
  agent.boot_id = hello.boot_id;
  agent.greeted = true;
  if (new_boot) agent.returned = reactor_.steady();
  hear(agent);
  agent.spoke = agent.contact;
  write(changed(hello.node, [hello, now = agent.seen](NodeRow& row) {
    row.mode = std::string(wire::to_string(hello.mode));
    row.boot_id = hello.boot_id;
    row.last_seen = now;
    if (hello.mode != wire::Mode::ram) row.image_digest = hello.image_digest;
  }));
  Runtime* node = active() ? runtime(hello.node) : nullptr;
  if (!node || node->over() || node->index >= node->actions.size()) return;
  hello_during(*node, hello, new_boot);
}

void Executor::hello_during(Runtime& node, const Hello& hello, bool new_boot) {
  using St = Runtime::Stage;
  if (node.stage == St::pending || node.stage == St::committing) return;
  const Action& action = node.action();
  const bool ram = hello.mode == wire::Mode::ram;
  const bool since = hello.boot_id != node.boot_before;
  if (node.stopping) {
    if (node.awaiting_ram && ram && since) {  // what the power cycle before this one was for
      withdraw_stop(node);
      return got_ram(node);
    }
    if (new_boot) end_stop(node, "was restarted meanwhile");  // the order was for the system that ran before
    return;
  }
  if (node.awaiting_ram) {
    if (ram && since) return got_ram(node);
    if (node.person && node.stage == St::powering && since && new_boot)
      node.wait.observed = "it came up from its disk, not from the network";
    // It restarted, with or without having heard the order: that one is for a system that is gone.
    if (node.in_band && !ram && since && new_boot && (node.power_certain || !node.boot_before.empty()))
      return lose_attempt(node,
                          node.power_certain
                              ? "the RAM system did not reach the controller; the old system is back"
                              : "it restarted into its old system before it handed over to the RAM system",
                          true);
    if (!ram && since && new_boot && node.power_certain)
      return lose_attempt(node, "it came up in its installed system instead of the RAM system", true);
    return consider(node);
  }
  if (action.kind == ActionKind::boot_disk && !ram) {
    if (hello.image_digest == text_of(action.params, "digest"))
      return succeed(node, {{"boot_id", hello.boot_id}});
    return lose_attempt(node,
                        fmt::format("it came up with image '{}' instead of '{}'", hello.image_digest,
                                    text_of(action.params, "digest")),
                        true);
  }
  if (action.kind == ActionKind::reboot && !ram && since) return succeed(node, {{"boot_id", hello.boot_id}});
  if (mode_needed(action.kind) == wire::Mode::ram && ram && new_boot && node.offered)
    return lose_attempt(node, "the RAM system was started anew", false);
  if (action.kind == ActionKind::boot_disk && ram && new_boot && node.departed)
    return lose_attempt(node, "it came back to the RAM system instead of its disk", false);
  consider(node);
}

void Executor::got_ram(Runtime& node) {
  if (node.person && node.stage == Runtime::Stage::powering) {
    ports_.power.forget(node.name);
    limits_.begin(lane_of(node), node.name);
  }
  node.epoch = ++epochs_;
  withdraw_leave(node);
  node.awaiting_ram = node.with_netboot = false;
  ports_.boot.disarm(node.name);  // it has all it needs; the next netboot, and the next token, take another
                                  // power cycle of a plan
  node.power_error.clear();
  if (node.action().kind == ActionKind::netboot) return succeed(node, {{"boot_id", live(node.name).boot_id}});
  limits_.end(Lane::netboot, node.name);
  live(node.name).heard = reactor_.steady();
  node.deadline = reactor_.steady() + time_for(node.action());
  node.stage = Runtime::Stage::awaiting;
  consider(node);
  kick();
}

void Executor::on_event(const std::string& name, const wire::Event& event) {
  hear(live(name));
  Runtime* node = active() ? runtime(name) : nullptr;
  if (!node || node->over() || node->index >= node->actions.size()) return;
  if (node->leaving && event.order == leave_order(*node).id) return on_left(*node, event);
  if (!node->offered) return;
  if (event.order != order_id(*node)) return;  // of an attempt that no longer counts
  const std::string& action = node->action().id;
  if (event.kind == "started") {
    if (log_.of(action).state == ActionState::intent) transition(*node, ActionState::started, Json::object());
  } else if (event.kind == "progress") {
    on_progress(*node, event.data);
  } else if (event.kind == "step") {
    JournalRow row;
    row.run = run_.id;
    row.action = action;
    row.node = name;
    row.attempt = node->attempt;
    row.event = "step";
    row.time = reactor_.now();
    row.data = event.data;
    write({row});
    observe(name, "step", event.data);
  } else if (event.kind == "log") {
    observe(name, "log", event.data);
  } else if (event.kind == "finished") {
    on_finished(*node, event);
  }
}

void Executor::on_progress(Runtime& node, const Json& data) {
  const double done = number_of(data, "done");
  const SteadyMs now = reactor_.steady();
  if (!node.first_at || done < node.done || text_of(data, "unit") != node.unit) {
    node.first_at = now;
    node.first_done = done;
  }
  node.done = done;
  node.total = number_of(data, "total");
  node.unit = text_of(data, "unit");
  node.text = text_of(data, "text");
  node.last_at = now;
  Json seen = data.is_object() ? data : Json::object();
  seen["action"] = node.action().id;
  observe(node.name, "progress", std::move(seen));
}

Status Executor::accept_inventory(Runtime& node, const Json& result, Rows& rows) {
  const Json facts = result.is_object() && result.contains("facts") ? result["facts"] : result;
  TRY(const HardwareFacts read, hardware_facts_from_json(facts));
  const bool rebinds = plan_.kind == "admit" || plan_.kind == "reimage";
  append(rows, changed(node.name, [text = dump_ascii(facts), now = reactor_.now(), rebinds,
                                   system = read.system](NodeRow& row) {
           row.facts = text;
           row.facts_time = now;
           if (row.product_uuid.empty() || rebinds) row.product_uuid = system.uuid;
           if (!system.serial.empty()) row.system_serial = system.serial;
         }));
  return Ok{};
}

void Executor::on_finished(Runtime& node, const wire::Event& event) {
  const Action& action = node.action();
  Json result = event.data.is_object() && event.data.contains("result") ? event.data["result"] : Json();
  // A node's words are hostile: what is not exactly `true` is not good.
  const bool good = event.data.is_object() && event.data.contains("ok") && event.data["ok"] == true;
  if (!good && action.kind != ActionKind::check)
    return fail_attempt(node,
                        fail(code_from_string(text_of(event.data, "code")), text_of(event.data, "message")),
                        std::move(result));
  if (action.kind == ActionKind::boot_disk || action.kind == ActionKind::reboot) {
    withdraw(node);
    node.departed = true;
    return consider(node);
  }
  Rows rows;
  if (action.kind == ActionKind::inventory)
    if (auto taken = accept_inventory(node, result, rows); !taken.ok())
      return fail_attempt(node, taken.error(), Json());
  if (!node.follow.is_null()) return void(follow_up(node, result));
  if (action.kind == ActionKind::check) {
    Status verdict = Ok{};
    if (hooks_.judge)
      verdict = hooks_.judge(action, result);
    else if (!good)
      verdict = fail(code_from_string(text_of(event.data, "code")), text_of(event.data, "message"));
    if (!verdict.ok())
      return fail_attempt(node, fail(Code::failed, verdict.error().message), std::move(result));
    if (follow_up(node, result)) return;
  }
  succeed(node, std::move(result), std::move(rows));
}

// ---- how attempts end ----

void Executor::succeed(Runtime& node, Json result, Rows extra) {
  const Action& action = node.action();
  took_[action.kind].push_back(reactor_.steady() - node.started);
  const std::string id = action.id;
  end_attempt(node);
  limits_.end(Lane::netboot, node.name);
  limits_.end(Limits::lane_of(action.kind), node.name);
  node.stage = Runtime::Stage::committing;
  set_wait(node, {});
  const bool last = node.index + 1 == node.actions.size();
  if (last)
    for (auto& row : settled(node, result)) extra.push_back(std::move(row));
  transition(
      node, ActionState::succeeded, {{"result", std::move(result)}},
      [this, &node, id, last] {
        proven_.insert(id);
        for (const auto& [other, why] : std::exchange(node.without, {}))
          accuse(other, fmt::format("{} failed on {} with it, and succeeded without it: {}",
                                    node.action().title, node.name, why));
        node.excused.clear();
        node.results.clear();
        node.follow = nullptr;
        ++node.index;
        node.stage = last ? Runtime::Stage::done : Runtime::Stage::pending;
        kick();
      },
      std::move(extra));
}

// What keeps a node from being accepted before all are compared. `last`: result of its last action, which is
// not in the log yet.
std::string Executor::reservation(const Runtime& node, const Json& last) const {
  for (size_t i = 0; hooks_.reservation && i < node.actions.size(); ++i) {
    const Action& action = *node.actions[i];
    if (action.kind != ActionKind::check) continue;
    const Json& logged = log_.of(action.id).result;
    const Json& result =
        i == node.index || !logged.is_object() || !logged.contains("result") ? last : logged["result"];
    if (std::string why = hooks_.reservation(action, result); !why.empty()) return why;
  }
  return "";
}

// The node's own row when all its actions succeeded.
Executor::Rows Executor::settled(Runtime& node, const Json& last) {
  if (plan_.kind == "wake") return woken(node);
  if (plan_.only_serves(node.name)) return {};  // it is what it was
  const bool discovered = plan_.kind == "discover", drained = plan_.kind == "drain";
  const std::string doubt = reservation(node, last);
  const std::string state = discovered      ? "discovered"
                            : drained       ? "drained"
                            : doubt.empty() ? "accepted"
                                            : "degraded";
  const bool measured = !discovered && !drained && plan_.kind != "undrain";
  const auto digest = plan_.config_digests.find(node.name);
  Rows rows = changed(node.name, [state, doubt, measured, run = run_.id,
                                  config = digest == plan_.config_digests.end()
                                               ? std::nullopt
                                               : std::optional(digest->second)](NodeRow& row) {
    row.state = state;
    row.reason = doubt;
    if (!measured) return;
    row.accepted_run = run;
    if (config) row.config_digest = *config;
  });
  observe(node.name, "node", {{"state", state}, {"reason", doubt}});
  return rows;
}

// It answers, and nothing else was done: it is what it was, but for one that was given up because it did not.
Executor::Rows Executor::woken(const Runtime& node) {
  return changed(node.name, [](NodeRow& row) {
    if (row.state != "quarantined") return;
    row.state = "discovered";
    row.reason.clear();
  });
}

// Steps about other nodes are judged when it is known whether those were there.
void Executor::fail_attempt(Runtime& node, const Error& error, Json result) {
  FailedProbe probe = failed_probe(node, result);
  if (!may_pass(error.code) || probe.others.empty()) return end_failed(node, error, std::move(result), {});
  withdraw(node);
  weigh(node, error, std::make_shared<const Json>(std::move(result)), probe);
}

// Whom the failed steps of this attempt are about. Who was gone before it began was left out of it.
FailedProbe Executor::failed_probe(const Runtime& node, const Json& result) const {
  FailedProbe probe;
  probe.started = node.started;
  probe.failed = reactor_.steady();
  probe.watched = began_;
  const Json& params = node.action().params;
  if (!params.is_object() || !params.contains("steps") || !result.is_object() || !result.contains("steps"))
    return probe;
  std::set<std::string> bad;
  for (const Json& step : result["steps"])
    if (const std::string status = text_of(step, "status"),
        outcome = text_of(step.value("result", Json()), "outcome");
        status == "failed" || status == "incomplete" || outcome == "failed" || outcome == "corrupt")
      bad.insert(text_of(step, "step"));
  const auto declared = neighbours_in(params);
  const auto about = involved(params, node.name, [&](const std::string& name) {
    return node.without.count(name) > 0 || (gone(name) && !gone_since(name, node.started)) ||
           (declared.count(name) && never_seen(name));
  });
  std::set<std::string> names;
  for (const Json& step : params["steps"]) {
    if (!step.value("mandatory", true) || !bad.count(step.value("id", ""))) continue;
    const auto found = about.find(step.value("id", ""));
    if (found != about.end()) {
      names.insert(found->second.names.begin(), found->second.names.end());
      if (node.without.empty() && !found->second.after_next.empty()) probe.next = found->second.next;
    }
    if (params.value("stop_on_failure", true)) break;  // those after it did not run
  }
  for (const auto& name : names)
    if (runtime(name) || live_.count(name) || rows_.count(name))
      probe.others.push_back({name, false, {}, {}});
  if (names.size() != 1) probe.next.clear();
  return probe;
}

void Executor::weigh(Runtime& node, const Error& error, std::shared_ptr<const Json> result,
                     const FailedProbe& before) {
  FailedProbe probe = before;
  probe.now = reactor_.steady();
  probe.tries_left = tries_left(node);
  for (auto& other : probe.others) {
    const Live& agent = live(other.name);
    other.gone = gone(other.name);
    other.heard = agent.contact;  // not `heard`, which may be moved where silence is counted from
    other.returned = agent.returned;
    const auto excuses = node.excused.find(other.name);
    other.excuses = excuses == node.excused.end() ? 0 : excuses->second;
  }
  const Blame blame = judge_probe(probe, timing_);
  switch (blame.what) {
    case Blame::What::wait: {
      const DurationMs look_again = std::min<DurationMs>(2 * kSecond, blame.until - probe.now);
      return pause(
          node, look_again,
          {"whether " + blame.node + " is there decides who is to blame", "a sign of life of " + blame.node,
           error.message, "another try, or the blame for " + blame.node, probe.failed, blame.until},
          [this, error, result, probe](Runtime& n) { weigh(n, error, result, probe); });
    }
    case Blame::What::accuse:
      accuse(blame.node,
             fmt::format("{} while {} had to do with it: {}", blame.reason, node.name, error.message));
      absent_[blame.node] = probe.now;
      return weigh(node, error, result, probe);
    case Blame::What::ask:
      node.without[blame.node] = error.message;
      [[fallthrough]];
    case Blame::What::excuse:
    case Blame::What::stands:
      return end_failed(node, error, *result, blame);
  }
}

// Takes a node out because of what others saw. One that has nothing to do in this run is left as it is.
void Executor::accuse(const std::string& name, const std::string& reason) {
  Runtime* node = runtime(name);
  if (node && !node->over()) return give_up(*node, reason);
  log::warning("a node that this run does not work on misbehaves", {{"node", name}, {"reason", reason}});
}

bool Executor::tries_left(const Runtime& node) const {
  int counted = node.attempt;
  for (const auto& [name, times] : node.excused) counted -= times;
  return counted < node.action().max_attempts;
}

// Another order of the same check, or its end with what they all found; false: there is nothing to follow up.
// Its rounds are attempts that do not count: after a crash they are read from the journal, and the next one
// is the same.
bool Executor::follow_up(Runtime& node, const Json& result) {
  if (!hooks_.follow_up || node.action().kind != ActionKind::check) return false;
  node.results.push_back(result);
  auto next = hooks_.follow_up(node.action(), node.results);
  if (!next && node.results.size() == 1) return node.results.clear(), false;
  node.without.clear();  // whoever it was tried without is one of those that are looked at
  if (!next || next->order.is_null()) {
    succeed(node, next ? std::move(next->result) : node.results.front());
    return true;
  }
  ++node.excused[""];  // nobody's fault
  const std::string why = fmt::format("who is guilty is looked for, round {}", node.results.size());
  end_attempt(node);
  node.follow = std::move(next->order);
  node.stage = Runtime::Stage::committing;
  set_wait(node, {});
  transition(node, ActionState::failed,
             {{"code", "failed"},
              {"message", why},
              {"result", result},
              {"retry", true},
              {"excused", why},
              {"follow_up", true}},
             [this, &node] { begin(node, false); });
  return true;
}

void Executor::end_failed(Runtime& node, const Error& error, Json result, const Blame& blame) {
  const std::string& excuse = blame.reason;
  if (!excuse.empty()) ++node.excused[blame.node];
  const bool retry = may_pass(error.code) && (!excuse.empty() || tries_left(node));
  if (!retry && follow_up(node, result)) return;
  const std::string message = error.message;
  Json data = {{"code", std::string(to_string(error.code))},
               {"message", message},
               {"result", std::move(result)},
               {"retry", retry}};
  if (!excuse.empty()) data["excused"] = excuse, data["excused_by"] = blame.node;
  if (!node.without.empty()) data["without"] = node.without;
  end_attempt(node);
  node.stage = Runtime::Stage::committing;
  set_wait(node, {});
  transition(node, ActionState::failed, std::move(data), [this, &node, retry, message] {
    if (!retry) return give_up(node, message);
    const SteadyMs now = reactor_.steady();
    pause(node, 5 * kSecond,
          {"a short pause after a failure", "another try", message, "another try", now, now + 5 * kSecond},
          [this](Runtime& n) { begin(n, false); });
  });
}

// The outcome is unknown and cannot be known: what it did is found out by doing it again (every action that
// gets here is repeatable).
void Executor::lose_attempt(Runtime& node, const std::string& reason, bool with_netboot) {
  const Action& action = node.action();
  const bool retry = tries_left(node) && action.repeatable;
  const bool netboot_first = with_netboot && action.kind != ActionKind::netboot;
  end_attempt(node);
  node.stage = Runtime::Stage::committing;
  set_wait(node, {});
  const std::string message =
      retry || action.max_attempts == 1
          ? reason
          : fmt::format("{} (attempt {} of {})", reason, node.attempt, action.max_attempts);
  transition(node, ActionState::unknown,
             {{"message", message}, {"with_netboot", netboot_first}, {"retry", retry}},
             [this, &node, retry, netboot_first, message] {
               if (retry) return begin(node, netboot_first);
               give_up(node, message);
             });
}

void Executor::give_up(Runtime& node, const std::string& reason) {
  if (node.over()) return;
  const std::string why = (node.index < node.actions.size() ? node.action().title + ": " : "") + reason;
  end_attempt(node);
  limits_.end(Lane::netboot, node.name);
  limits_.end(Lane::imaging, node.name);
  ports_.boot.disarm(node.name);
  Rows rows{quarantine_row(node.name, why, node.index < node.actions.size() ? node.action().id : "")};
  append(rows, changed(node.name, [why](NodeRow& changed_row) {
           changed_row.state = "quarantined";
           changed_row.reason = why;
         }));
  log::warning("node quarantined", {{"node", node.name}, {"reason", why}});
  node.reason = why;
  node.left_at = reactor_.steady();
  node.attempt = node.index < node.actions.size() ? log_.of(node.action().id).attempt : 0;
  node.stage = Runtime::Stage::quarantined;
  set_wait(node, {});
  observe(node.name, "node", {{"state", "quarantined"}, {"reason", why}});
  const bool open =
      node.index < node.actions.size() && log_.of(node.action().id).state != ActionState::succeeded;
  if (open)
    transition(node, ActionState::abandoned, {{"message", why}}, {}, std::move(rows));
  else
    write(std::move(rows));
  kick();
}

// Out of the run without blame: never started, or the run was cancelled.
void Executor::stand_down(Runtime& node, const std::string& reason) {
  end_attempt(node);
  ports_.boot.disarm(node.name);
  node.reason = reason;
  node.left_at = reactor_.steady();
  node.stage = Runtime::Stage::not_started;
  set_wait(node, {});
  JournalRow row;
  row.run = run_.id;
  row.node = node.name;
  row.event = "not_started";
  row.time = reactor_.now();
  row.data = {{"reason", reason}};
  Rows rows{row};
  append(rows, changed(node.name, [reason](NodeRow& changed_row) { changed_row.reason = reason; }));
  write(std::move(rows));
  observe(node.name, "node", {{"state", "not_started"}, {"reason", reason}});
}

// ---- what operators see ----

Json Executor::node_progress(const Runtime& node) const {
  using St = Runtime::Stage;
  const char* state = node.stage == St::done          ? "done"
                      : node.stage == St::quarantined ? "quarantined"
                      : node.stage == St::not_started ? "not_started"
                      : node.stage == St::pending     ? "waiting"
                                                      : "running";
  Json out = {{"node", node.name},
              {"state", state},
              {"reason", node.reason},
              {"index", node.index},
              {"of", node.actions.size()}};
  if (node.index < node.actions.size()) {
    const Action& action = node.action();
    out["action"] = action.id;
    out["phase"] = action.phase;
    out["title"] = action.title;
    out["attempt"] = node.attempt;
    out["since"] = wall_of(node.started);
  }
  if (node.total > 0) out["percent"] = std::min(100.0, 100.0 * node.done / node.total);
  if (!node.unit.empty()) out["unit"] = node.unit;
  if (!node.text.empty()) out["text"] = node.text;
  if (node.last_at > node.first_at && node.done > node.first_done) {
    const double rate =
        (node.done - node.first_done) * 1000.0 / static_cast<double>(node.last_at - node.first_at);
    out["rate"] = rate;
    if (node.total > node.done)
      out["eta_ms"] = static_cast<int64_t>((node.total - node.done) / rate * 1000.0);
  }
  if (!node.wait.reason.empty()) out["wait"] = to_json(node.wait, reactor_.now() - reactor_.steady().ms);
  return out;
}

Json Executor::progress() const {
  Json nodes = Json::array();
  for (const auto& name : plan_.nodes)
    if (const Runtime* node = runtime(name)) nodes.push_back(node_progress(*node));
  return {{"run", run_.id},          {"kind", plan_.kind},  {"state", run_.id ? run_.state : "none"},
          {"started", run_.started}, {"ended", run_.ended}, {"plan", run_.plan_digest},
          {"nodes", nodes}};
}

Json Executor::why(const std::string& name) const {
  const NodeRow row = node_row(name);
  Json out = {{"node", name}, {"state", row.state}, {"reason", row.reason}};
  const TimeMs silent = silent_since(name);
  if (silent > 0) out["silent_since"] = silent;
  const Runtime* node = run_.id ? runtime(name) : nullptr;
  if (!node) return out;
  out.update(node_progress(*node));
  if (node->reason.empty()) out["reason"] = node->wait.reason.empty() ? row.reason : node->wait.reason;
  if (node->index < node->actions.size()) {
    if (const auto it = took_.find(node->action().kind); it != took_.end() && !it->second.empty()) {
      auto sorted = it->second;
      std::sort(sorted.begin(), sorted.end());
      out["others_took_ms"] = sorted[sorted.size() / 2];
    }
  }
  return out;
}

}  // namespace muster
