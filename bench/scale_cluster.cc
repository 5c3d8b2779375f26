#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/json_dump.h"
#include "bench/cluster.h"
#include "bench/scale.h"
#include "controller/bringup/conclude.h"
#include "controller/bringup/planning_snapshot.h"
#include "controller/store/sqlite_store.h"

namespace muster::bench {
namespace {

constexpr DurationMs kLookEvery = 50 * kSecond;
constexpr DurationMs kBound = 1000 * 60 * kMinute;  // of virtual time; more is a hang
constexpr int kNodesAsked = 4;                      // each time

std::string database_path(const TempDir& folder) { return folder.path("muster.db"); }

}  // namespace

// ---- the clock and the store ----

void ScaleClock::hand_in(Task task) {
  {
    const std::lock_guard hold(mutex_);
    handed_in_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ScaleClock::wait_for_store() {
  std::vector<Task> tasks;
  {
    std::unique_lock hold(mutex_);
    wake_.wait(hold, [this] { return !handed_in_.empty(); });
    tasks.swap(handed_in_);
  }
  for (const Task& task : tasks) {
    watch.run("the end of a write", task);
    count();
  }
}

bool ScaleClock::step(int64_t end) {
  const bool ran = SimReactor::step(end);
  count();
  return ran;
}

void ScaleClock::by_worker(const std::string& name, const Task& work) {
  const int64_t began = thread_cpu_time();
  work();
  seconds_["worker: " + name] += static_cast<double>(thread_cpu_time() - began) / 1e9;
}

void ScaleClock::count() { seconds_[watch.last().name] += watch.last().ms / 1000; }

void TimedStore::write(std::vector<Write> batch, Done done) {
  on_their_way_.push_back(clock_.steady());
  // They become durable in their order.
  store_.write(std::move(batch), [this, done = std::move(done)](Status written) {
    on_their_way_.pop_front();
    done(std::move(written));
  });
}

double Spread::at(double share) const {
  if (all_.empty()) return 0;
  std::vector<double> sorted = all_;
  std::sort(sorted.begin(), sorted.end());
  const auto place = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(place, sorted.size() - 1)];
}

// ---- the controller ----

ScaleCluster::ScaleCluster(int nodes) : surroundings_(cluster_of(nodes)), spec_(surroundings_.spec) {
  surroundings_.spec = {};
  surroundings_.playbooks.clear();
  if (const auto read = shelf_.shipped(); !read.ok()) give_up(read.error().message);
  clock_.watch.on_slow(
      [this](const std::string& name, DurationMs took) { slow_[name] = std::max(slow_[name], took); });
  auto opened = open_sqlite_store(
      database_path(folder_), [this](Reactor::Task task) { clock_.hand_in(std::move(task)); }, clock_.now());
  if (!opened.ok()) give_up(opened.error().message);
  database_ = std::move(*opened);
  store_ = std::make_unique<TimedStore>(*database_, clock_);
  hub_ =
      std::make_unique<LinkHub>(clock_, *store_, [](const Json& params) -> Result<Json> { return params; });
  current_ = std::make_unique<CurrentSpec>(*store_);
  executor_ = std::make_unique<Executor>(clock_, ExecutorPorts{*store_, *this, *this, *hub_}, hooks());
  real_ = acceptance_hooks({*current_, *executor_, *store_, authority_.report_key(),
                            [this](Reactor::Task work, Reactor::Task done) {
                              work_.push_back({std::move(work), std::move(done)});
                            }});
  causes_ = std::make_unique<CurrentCauses>(
      CurrentCauses::Parts{parts(), images_, authority_}, []() -> const rollout::Record* { return nullptr; },
      [] { return std::vector<Cause>(); });
  hub_->connect(
      {[this](const Hello& hello) { executor_->on_hello(hello); },
       [this](const NodeName& node, const wire::Event& event) { executor_->on_event(node, event); },
       [this](const NodeName& node, const Presence& present) { executor_->on_contact(node, present); },
       [this](const NodeName& node, const OrderId& order) { return executor_->expects(node, order); }});
  for (const auto& node : spec_.nodes)
    machines_[node.name] = std::make_unique<Machine>(clock_, *hub_, random_, node);
}

ScaleCluster::~ScaleCluster() = default;

// Those of the daemon, for what they cost. Their verdicts are left out: these machines measure nothing.
ExecutorHooks ScaleCluster::hooks() {
  ExecutorHooks made;
  made.judge = [this](const Action& action, const Json& result) {
    (void)real_.judge(action, result);
    return Status(Ok{});
  };
  made.reservation = [this](const Action& action, const Json& result) {
    (void)real_.reservation(action, result);
    return std::string();
  };
  made.follow_up = [this](const Action& action, const std::vector<Json>& results) {
    (void)real_.follow_up(action, results);
    return std::optional<FollowUp>();
  };
  made.conclude = [this](const RunRow& run, ExecutorHooks::Concluded done) {
    real_.conclude(run, [done = std::move(done)](Conclusion conclusion) {
      conclusion.nodes.clear();
      done(std::move(conclusion));
    });
  };
  made.ended = [this](const RunRow& run) { ended_ = run; };
  return made;
}

// What the daemon's other threads do: it takes time, and no handler waits for it.
void ScaleCluster::do_work() {
  while (!work_.empty()) {
    const auto [work, done] = std::move(work_.front());
    work_.pop_front();
    clock_.by_worker("views and conclusions", work);
    clock_.post([this, then = done] {
      clock_.label("what a worker made");
      then();
    });
  }
}

// As the daemon looks at them (Bringup::look): by their rows and their agents.
PlanningSnapshot ScaleCluster::snapshot() {
  clock_.label("what a plan is made from");
  PlanningSnapshot out;
  out.spec = current_->get().value();
  out.playbooks = shelf_.shipped().value();
  out.in = surroundings_;
  for (const auto& node : out.spec->spec.nodes) {
    const NodeRow row = executor_->node_row(node.name);
    NodeObservation& seen = out.in.nodes[node.name];
    out.looked_at[node.name] = {row.facts, written_since(row.disk_written, row.facts_time)};
    seen.mode = executor_->mode_of(node.name);
    const auto silent = executor_->silent_for(node.name);
    seen.online = silent && *silent < kMinute && seen.mode;
    seen.state = row.state;
    seen.image_digest = row.image_digest;
    seen.config_digest = row.config_digest;
    seen.product_uuid = row.product_uuid;
  }
  return out;
}

// A worker's thread makes and stores a plan. The looks before and behind that, and the run, are the
// reactor's.
void ScaleCluster::carry_out(const std::string& what) {
  std::optional<PlanningSnapshot> seen;
  clock_.post([&] { seen = snapshot(); });
  run_until([&] { return seen.has_value(); });
  MadePlanPtr made;
  clock_.by_worker("plans", [&] {
    auto planned = make_plan_of(*seen, [](const MadePlan& plan) { return render_plan(*plan.plan, false); });
    if (!planned.ok()) give_up(planned.error().message);
    made = std::move(planned).value();
  });
  for (const auto& refusal : made->refusals) give_up(refusal.node + " " + refusal.message);
  PlanRow row{made->digest, std::string(to_string(made->plan->kind)), made->plan->spec_revision, clock_.now(),
              std::move(made->json)};
  if (row.kind != what) give_up(fmt::format("a plan to {}, and not to {}", row.kind, what));
  store(std::move(row));
  ended_.reset();
  clock_.post([&] {
    clock_.label("approve");
    if (const auto changed = changed_inputs(made->inputs, inputs_of(snapshot())); !changed.empty())
      give_up("between plan and approval: " + in_one_line(changed));
    clock_.label("approve");
    executor_->start(made->plan, Digest(made->digest), "bench", [](Result<int64_t> id) {
      if (!id.ok()) give_up(id.error().message);
    });
  });
  run_until([this] { return ended_.has_value(); });
  if (ended_->state != RunState::done)
    give_up(fmt::format("the run to {} ended as {}", what, to_string(ended_->state)));
}

void ScaleCluster::store(Write row) {
  std::vector<Write> rows;
  rows.push_back(std::move(row));
  bool stored = false;
  store_->write(std::move(rows), [&stored](Status written) {
    if (!written.ok()) give_up(written.error().message);
    stored = true;
  });
  run_until([&] { return stored; });
}

void ScaleCluster::run_until(const std::function<bool()>& over) {
  const SteadyMs end = clock_.steady() + kBound;
  while (!over()) {
    do_work();
    const SteadyMs oldest = store_->oldest();
    if (clock_.step((oldest ? oldest + kCommit : end).ms)) continue;
    if (!oldest) give_up("the run does not finish");
    clock_.wait_for_store();
  }
}

// ---- what operators look at meanwhile ----

void ScaleCluster::timed(const std::string& name, const std::function<Json()>& call) {
  clock_.post([this, name, call] {
    clock_.label(name);
    const int64_t began = thread_cpu_time();
    const size_t bytes = dump_json(call()).size();
    calls_[name].add(static_cast<double>(thread_cpu_time() - began) / 1e6);
    if (bytes < 2) give_up(name + ": nothing");
  });
}

void ScaleCluster::look() {
  clock_.after(kLookEvery, [this] {
    if (executor_->active()) {
      const NodesView nodes(parts());
      timed("status", [nodes] { return nodes.status(); });
      timed("causes", [this] { return causes_json(causes_->look()); });
      // Made by a worker: nothing else waits for it.
      work_.push_back({[this, row = store_->run(executor_->run_id()), plan = executor_->shared_plan()] {
                         const int64_t began = thread_cpu_time();
                         const auto view = viewer_.view(*store_->archive(), row.value(), plan);
                         if (!view.ok()) give_up(view.error().message);
                         calls_["run view"].add(static_cast<double>(thread_cpu_time() - began) / 1e6);
                       },
                       [] {}});
      for (int i = 0; i < kNodesAsked; ++i)
        timed("why", [this, nodes] {
          const auto last = static_cast<int64_t>(spec_.nodes.size()) - 1;
          return nodes.why(spec_.nodes[static_cast<size_t>(random_.range(0, last))].name, images_);
        });
    }
    look();
  });
}

Json ScaleCluster::bring_up() {
  const std::string text = spec_text(static_cast<int>(spec_.nodes.size()));
  store(SpecRow{1, clock_.now(), text, sha256(text), ""});
  look();
  carry_out("discover");
  carry_out("install");
  return {{"virtual_s", (clock_.steady() - begin_) / kSecond},
          {"events", clock_.steps()},
          {"longest_ms", clock_.watch.longest().ms},
          {"longest", clock_.watch.longest().name},
          {"slow", slow_},
          {"seconds", clock_.seconds()},
          {"calls", calls()}};
}

Json ScaleCluster::calls() const {
  Json out = Json::object();
  for (const auto& [name, spread] : calls_)
    out[name] = {{"count", spread.count()}, {"p99_ms", spread.at(0.99)}, {"most_ms", spread.at(1)}};
  return out;
}

// ---- results ----

Json ScaleCluster::read_back() {
  std::map<std::string, size_t> reported;
  for (const auto& [name, machine] : machines_) reported[name] = machine->steps();
  machines_.clear();
  causes_.reset();
  executor_.reset();
  current_.reset();
  hub_.reset();
  store_.reset();
  database_.reset();
  ManualReactor reactor;
  auto opened = open_sqlite_store(database_path(folder_), reactor);
  if (!opened.ok()) give_up(opened.error().message);
  Store& store = **opened;
  size_t accepted = 0, steps = 0;
  for (const auto& row : store.nodes().value_or({})) accepted += row.state == NodeState::accepted;
  std::map<std::string, size_t> written;
  StepLog log;
  const RunRow run = store.run(0).value_or({});
  for (const auto& row : store.journal(run.id).value_or({})) {
    if (const auto legal = log.apply(row); !legal.ok()) give_up(legal.error().message);
    if (row.event == "step") ++written[row.node], ++steps;
  }
  for (const auto& [id, record] : log.all())
    if (record.state != ActionState::succeeded)
      give_up(fmt::format("{} is {} in the database", id, to_string(record.state)));
  for (const auto& [name, count] : reported)
    if (written[name] != count)
      give_up(fmt::format("{} reported {} steps, {} are in the database", name, count, written[name]));
  return {{"accepted", accepted},
          {"steps", reported.empty() ? 0 : steps / reported.size()},
          {"state", to_string(run.state)}};
}

// ---- the world ----

void ScaleCluster::netboot(const NodeName& node, PowerPort::Done done) {
  clock_.after(random_.range(2, 8) * kSecond, [this, node, done = std::move(done)] {
    machines_.at(node)->power_cycle();
    done(Ok{});
  });
}
void ScaleCluster::power_off(const NodeName&, PowerPort::Done done) {
  clock_.after(kSecond, [done = std::move(done)] { done(Ok{}); });
}
void ScaleCluster::power_on(const NodeName&, PowerPort::Done done) {
  clock_.after(kSecond, [done = std::move(done)] { done(Ok{}); });
}
void ScaleCluster::state(const NodeName&, std::function<void(Result<PowerState>)> done) {
  clock_.after(kSecond, [done = std::move(done)] { done(PowerState::on); });
}
void ScaleCluster::arm(const NodeName&, std::function<void(Status)> done) {
  clock_.after(1, [done = std::move(done)] { done(Ok{}); });
}
void ScaleCluster::rearm(const NodeName& node, std::function<void(Status)> done) {
  arm(node, std::move(done));
}
void ScaleCluster::leave_order(const NodeName& node, std::function<void(Result<Json>)> done) {
  clock_.post([node, done = std::move(done)] { done(fail(Code::invalid, node + " has a BMC")); });
}

}  // namespace muster::bench
