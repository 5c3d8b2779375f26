#include "tests/sim/controller.h"

#include <algorithm>

#include "controller/nodes/states.h"

namespace muster::sim {
namespace {

constexpr DurationMs kLongPoll = 25 * kSecond;
constexpr int kMostCalmRuns = 6;  // a node that cannot be accepted is installed no more often
constexpr DurationMs kSilent = ExecutorTiming().silent_after;

PlaybookStep make_step(const std::string& name, const std::string& phase, int stage = 1,
                       const std::string& on = "all") {
  PlaybookStep s;
  s.name = name;
  s.phase = phase;
  s.module = "file";
  s.params = {{"path", "/etc/" + name}, {"content", "{{node.name}}"}};
  s.stage = stage;
  s.on = on;
  return s;
}

Spec make_spec(const Options& o) {
  Spec spec;
  spec.cluster = "sim";
  spec.lab = true;
  spec.network.provisioning.cidr = "10.20.0.0/16";
  spec.images["cpu"] = {"cpu", "debian-12", "cloud", {}};
  spec.roles["cpu"] = {"base", "shared"};
  spec.acceptance_profile = "sim";
  spec.limits.parallel_imaging = o.parallel_imaging;
  spec.limits.parallel_netboot = o.parallel_netboot;
  spec.limits.power_stagger = o.stagger;
  for (int i = 0; i < o.nodes; ++i) {
    NodeSpec node;
    node.name = NodeName(fmt::format("n{:03}", i + 1));
    node.role = "cpu";
    node.image = "cpu";
    node.address = fmt::format("10.20.{}.{}", (i + 11) / 250, (i + 11) % 250);
    DiskGroup os;
    os.name = "os";
    os.match.model = "SIM OS";
    os.policy = DiskPolicy::format;
    node.disks["os"] = os;
    spec.nodes.push_back(node);
  }
  return spec;
}

std::map<std::string, Playbook> make_playbooks() {
  std::map<std::string, Playbook> out;
  PlaybookStep probe = make_step("probe", "cluster");
  probe.params = {{"host", "{{next.address}}"}, {"next_live", true}};
  out["base"] = {
      "base",
      "",
      {make_step("hostname", "node"), make_step("hosts", "node"), make_step("time", "node"), probe}};
  out["shared"] = {
      "shared", "", {make_step("master", "cluster", 1, "leader"), make_step("chunk", "cluster", 2)}};
  out["acceptance/sim"] = {
      "acceptance/sim", "", {make_step("dgemm", "node"), make_step("allreduce", "cluster", 2, "leader")}};
  return out;
}

}  // namespace

// Everything that dies with the process. Callbacks of the machines (BMC answers) check `alive`.
struct SimController::Life : LinkPort, BootPort, PowerPort {
  struct Waiter {
    std::set<std::string> have;
    ControllerLink::Orders answer;
    Reactor::TimerId timer = 0;
  };
  struct Stream {
    std::string boot, incarnation;
    uint64_t taken = 0, durable = 0;
  };

  Life(SimController& c)
      : home(c),
        early(c.watched_, c.world_.reactor),
        unmarked(c.watched_),
        store(c.world_.options.plant == "early"      ? static_cast<Store&>(early)
              : c.world_.options.plant == "unmarked" ? static_cast<Store&>(unmarked)
                                                     : c.watched_) {
    ExecutorHooks hooks;
    hooks.observe = [this](const RunEvent& e) { observe(e); };
    hooks.ended = [this](const RunRow& run) { home.ended(run); };
    executor = std::make_unique<Executor>(home.world_.reactor, ExecutorPorts{store, *this, *this, *this},
                                          std::move(hooks));
  }
  ~Life() override {
    *alive = false;
    for (auto& [node, waiter] : waiters) home.world_.reactor.cancel(waiter.timer);
  }
  World& world() { return home.world_; }

  void observe(const RunEvent& e) {
    if (e.kind == "action")
      world().trace(e.node,
                    fmt::format("{} #{} {} {}", e.data.value("action", ""), e.data.value("attempt", 0),
                                e.data.value("event", ""), e.data.value("message", "")));
    if (e.kind == "action" && e.data.value("event", "") == "succeeded")
      home.checkers_.on_succeeded(e.data.value("action", ""), e.data.value("attempt", 0));
    if (e.kind == "node" && e.data.value("state", "") == "quarantined")
      home.checkers_.on_quarantined(e.node, e.data.value("reason", ""));
    if (e.kind == "node")
      world().trace(e.node, e.data.value("state", "") + ": " + e.data.value("reason", ""));
  }

  // LinkPort
  void offer(const NodeName& node, wire::WorkOrder order) override {
    if (order.kind == wire::OrderKind::power_off && home.world_.options.plant == "hard") return;
    home.checkers_.on_offer(node, order);
    if (home.maybe_die_at_effect()) return;
    offers[node][order.id] = order;
    const auto it = waiters.find(node);
    if (it != waiters.end() && !it->second.have.count(order.id)) release(node);
  }
  void withdraw(const NodeName& node, const OrderId& id) override {
    if (!offers[node].erase(id)) return;
    const auto it = waiters.find(node);
    if (it != waiters.end() && it->second.have.count(id)) release(node, {{}, {id}});
  }
  void let_go(const NodeName& node, const OrderId& id) override { offers[node].erase(id); }
  wire::PollReply news(const std::string& node, const std::set<std::string>& have) {
    wire::PollReply out;
    for (const auto& [id, order] : offers[node])
      if (!have.count(id)) out.orders.push_back(order);
    for (const auto& id : have)
      if (!offers[node].count(id) && !executor->expects(NodeName(node), OrderId(id)))
        out.withdrawn.push_back(id);
    return out;
  }
  void release(const std::string& node) {
    const auto it = waiters.find(node);
    if (it != waiters.end()) release(node, news(node, it->second.have));
  }
  void release(const std::string& node, wire::PollReply reply) {
    const auto it = waiters.find(node);
    if (it == waiters.end()) return;
    Waiter waiter = std::move(it->second);
    waiters.erase(it);
    world().reactor.cancel(waiter.timer);
    waiter.answer(std::move(reply));
  }

  // BootPort
  void arm(const NodeName& node, std::function<void(Status)> done) override {
    world().reactor.after(world().random.range(1, 50), [this, life = alive, node, done] {
      if (!*life) return;
      armed.insert(node);
      done(Ok{});
    });
  }
  void rearm(const NodeName& node, std::function<void(Status)> done) override { arm(node, std::move(done)); }
  // Every machine of the simulation has a BMC.
  void leave_order(const NodeName& node, std::function<void(Result<Json>)> done) override {
    world().reactor.post([node, done] { done(fail(Code::invalid, node + " has a BMC")); });
  }
  void disarm(const NodeName& node) override { armed.erase(node); }

  void hear(const std::string& node) {
    const TimeMs now = world().now();
    const std::string& boot = home.node(node).boot_id();
    if (now - received[node] >= kSilent || boots[node] != boot) since[node] = now;
    received[node] = now;
    boots[node] = boot;
  }
  // Long enough for the executor to know it, whatever it waited for in between.
  bool runs(const std::string& node) {
    const TimeMs now = world().now();
    return home.node(node).answers() && boots[node] == home.node(node).boot_id() &&
           now - received[node] < kSilent && now - since[node] > 2 * kMinute;
  }

  // PowerPort
  template <typename T>
  std::function<void(T)> mine(std::function<void(T)> done) {
    return [life = alive, done](T value) {
      if (*life) done(std::move(value));
    };
  }
  void netboot(const NodeName& node, PowerPort::Done done) override {
    home.checkers_.on_power(node, *executor);
    home.checkers_.on_cycle(node, *executor, runs(node));
    if (home.maybe_die_at_effect()) return;
    home.node(node).netboot(mine<Status>(std::move(done)));
    if (home.world_.options.plant == "outside" && node != "n001") home.checkers_.on_power("n999", *executor);
  }
  void forget(const NodeName&) override {}  // here every call reaches its BMC at once
  void power_off(const NodeName& node, PowerPort::Done done) override {
    if (home.world_.options.in_place) {
      home.checkers_.on_cut(node, *executor, runs(node));
      return home.node(node).power_off(mine<Status>(std::move(done)));
    }
    world().reactor.after(10, [done = mine<Status>(std::move(done))] { done(Ok{}); });
  }
  void power_on(const NodeName& node, PowerPort::Done done) override {
    home.checkers_.on_wake(node, *executor);
    home.node(node).power_on(mine<Status>(std::move(done)));
  }
  void state(const NodeName& node, std::function<void(Result<PowerState>)> done) override {
    home.node(node).power_state(mine<Result<PowerState>>(std::move(done)));
  }

  SimController& home;
  EarlyStore early;
  UnmarkedStore unmarked;
  Store& store;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::unique_ptr<Executor> executor;
  std::map<std::string, std::map<std::string, wire::WorkOrder>> offers;
  std::map<std::string, Waiter> waiters;
  std::map<std::string, std::vector<Stream>> streams;
  std::map<std::string, TimeMs> received, since;  // last contact; the first of its boot, or after silence
  std::map<std::string, std::string> boots;
  std::set<std::string> armed;
  bool dying = false;
};

SimController::SimController(World& world)
    : world_(world),
      store_(world.reactor, [&world] { return world.random.range(1, 30); }),
      checkers_(world, store_),
      watched_(store_, [this](const std::vector<Write>& rows) { checkers_.written(rows); }),
      spec_(make_spec(world.options)) {
  world.answers = [this](const std::string& address, bool begins) {
    const auto found = std::find_if(spec_.nodes.begin(), spec_.nodes.end(),
                                    [&](const NodeSpec& n) { return n.address == address; });
    if (found == spec_.nodes.end()) return false;
    SimNode& node = *nodes_.at(found->name);
    if (begins && world_.chance(world_.options.probed_dies)) {
      if (world_.random.chance(0.5))
        node.lose_power();
      else
        node.cut_network(world_.random.range(5, 120) * kSecond);
    }
    return node.answers();
  };
}
SimController::~SimController() { life_.reset(); }

void SimController::add_node(std::unique_ptr<SimNode> node) { nodes_[node->name()] = std::move(node); }
Executor* SimController::executor() { return life_ ? life_->executor.get() : nullptr; }
bool SimController::armed(const std::string& node) const { return life_ && life_->armed.count(node) > 0; }

void SimController::start() {
  if (world_.options.in_place)
    for (auto& [name, node] : nodes_) node->preinstall(kImage);
  begin_life();
}

void SimController::begin_life() {
  world_.trace("", "controller starts");
  world_.reactor.label("the controller's start");
  life_ = std::make_unique<Life>(*this);
  const auto run = store_.run(0);
  if (!run.ok() || run->state != RunState::running) return next_command();
  // A whole journal is read, before which no request could be answered: not what R1 is about.
  const Status resumed = world_.reactor.watch.elsewhere([&] { return life_->executor->resume(run->id); });
  if (!resumed.ok()) return world_.violated("S5", "resume: " + resumed.error().message);
  world_.reactor.watch.elsewhere([&] { checkers_.after_restart(*life_->executor); });
}

void SimController::kill() {
  if (!life_) return;
  world_.trace("", "controller killed");
  world_.reactor.label("the controller's death");
  life_.reset();
  operator_.lose_command();
  store_.crash(world_.random.chance(0.5) ? MemStore::Unsynced::lost : MemStore::Unsynced::kept);
  world_.reactor.watch.elsewhere([this] { checkers_.controller_died(); });
  world_.reactor.after(world_.random.range(1, 30) * kSecond, [this] {
    if (!life_) begin_life();
  });
}

// A crash right before an effect: its intent is durable, it never happened.
bool SimController::maybe_die_at_effect() {
  if (life_->dying) return true;
  if (!world_.chance(world_.options.killed_at_effect)) return false;
  const bool before = world_.random.chance(0.5);
  life_->dying = before;
  world_.reactor.after(before ? 0 : world_.random.range(0, 50), [this, life = life_->alive] {
    if (*life) kill();
  });
  return before;
}

// ---- the operator ----

PlannerInput SimController::input() const {
  PlannerInput in;
  in.spec = spec_;
  in.revision = 1;
  in.authority = "sha256:sim";
  in.lab = true;
  in.playbooks = make_playbooks();
  in.images["cpu"] = {image_, "/images/cpu/manifest.json"};
  for (const auto& node : spec_.nodes) {
    const NodeRow row = life_->executor->node_row(node.name);
    NodeObservation seen;
    if (!row.facts.empty())
      if (auto json = parse_json(row.facts); json.ok())
        if (auto facts = hardware_facts_from_json(*json); facts.ok()) seen.facts = *facts;
    seen.mode = life_->executor->mode_of(node.name);
    const auto silent = life_->executor->silent_for(node.name);
    seen.online = silent && *silent < kMinute && seen.mode;
    seen.state = row.state;
    seen.image_digest = row.image_digest;
    seen.config_digest = row.config_digest;
    seen.product_uuid = row.product_uuid;
    in.nodes[node.name] = std::move(seen);
  }
  in.request = operator_.request();
  return in;
}

void SimController::next_command() {
  // Long enough for agents to be heard after a restart.
  world_.reactor.after(kMinute, [this, life = life_->alive] {
    if (!*life || life_->executor->active()) return;
    if (world_.options.in_place) return begin_in_place();
    operator_.give_command(world_.now());
    make_next_plan();
  });
}

void SimController::make_next_plan() {
  world_.reactor.label("the operator's next plan");
  // In the daemon a worker's thread makes it, digests it, and writes it as JSON.
  world_.reactor.watch.elsewhere([this] { plan_and_start(); });
}

void SimController::plan_and_start() {
  auto made = make_plan(input());
  if (!made.ok()) return world_.violated("planner", made.error().message);
  if (!made->refusals.empty())
    return world_.violated("planner", made->refusals[0].node + ": " + made->refusals[0].message);
  if (!operator_.takes(made->plan)) return command_ended();
  checkers_.approve(made->plan);
  const char* verb = operator_.request().kind == RequestKind::reimage ? "reimage" : "up";
  world_.trace("", fmt::format("muster {}: {}", verb, to_string(made->plan.kind)));
  life_->executor->start(made->plan, "sim", [](Result<int64_t>) {});
}

void SimController::command_ended() {
  if (operator_.nothing_left() && image_ == kImage) {
    // Once, what the image is made of changes: every node, accepted and at work, is re-imaged.
    image_ = "sha256:image-cpu-2";
    operator_.installs_another_image();
  }
  // Long enough after the last fault that "online" is the truth.
  finished_ =
      operator_.nothing_left() && !world_.faults && operator_.given_at() > faults_ended_ + 2 * kMinute;
  if (!finished_) next_command();
}

void SimController::ended(const RunRow& run) {
  ++runs_;
  world_.trace("", fmt::format("run {} ended as {}", run.id, to_string(run.state)));
  checkers_.at_run_end(*life_->executor, run);
  if (world_.options.in_place) return void(finished_ = true);
  const Plan& plan = life_->executor->plan();
  const bool works = plan.kind != PlanKind::discover && plan.kind != PlanKind::wake;
  if (!world_.faults && works && ++calm_runs_ >= kMostCalmRuns) {
    finished_ = true;
    return;
  }
  if (!operator_.goes_on(plan, run.state)) return command_ended();
  world_.reactor.after(kSecond, [this, life = life_->alive] {
    if (*life && !life_->executor->active()) make_next_plan();
  });
}

void SimController::calm() {
  world_.faults = false;
  faults_ended_ = world_.now();
  world_.trace("", "faults end");
}

void SimController::check_end() {
  if (world_.options.in_place) return check_in_place();
  for (auto& [name, node] : nodes_) {
    const NodeRow row = life_->executor->node_row(NodeName(name));
    if (row.state == NodeState::accepted) {
      if (!node->runs_installed(image_))
        world_.violated("L1", name + " is accepted, but does not run its image");
      if (node->dead || node->bad) world_.violated("L1", name + " is accepted, though it cannot be");
      if (node->applied() < 3)
        world_.violated("L1", name + " is accepted, but not all of its steps were applied");
    } else if (!node->dead && !node->bad) {
      const auto& leader = nodes_.begin()->second;
      if (leader->dead || leader->bad) continue;  // explained: what needs the leader cannot be
      world_.violated("L1", fmt::format("{} could have been accepted and is {}: {}", name,
                                        to_string(row.state), row.reason));
    } else if (row.reason.empty()) {
      world_.violated("L1", fmt::format("{} is {} without a reason", name, to_string(row.state)));
    }
  }
}

// ---- the agent link, as controller/link/link_hub.cc does it ----

void SimController::request(const std::string& node, std::vector<std::string> have, const Presence& present,
                            ControllerLink::Orders answer) {
  Life& life = *life_;
  life.hear(node);
  life.executor->on_contact(NodeName(node), present);
  life.release(node);
  std::set<std::string> known(have.begin(), have.end());
  auto reply = life.news(node, known);
  if (!reply.orders.empty() || !reply.withdrawn.empty()) return answer(std::move(reply));
  Life::Waiter waiter{std::move(known), std::move(answer), 0};
  waiter.timer = world_.reactor.after(kLongPoll, [this, node] { life_->release(node); });
  life.waiters[node] = std::move(waiter);
}

void SimController::take(const std::string& node, wire::EventBatch batch, ControllerLink::Acked answer) {
  Life& life = *life_;
  life.hear(node);
  life.executor->on_contact(NodeName(node));
  auto& streams = life.streams[node];
  auto stream = std::find_if(streams.begin(), streams.end(), [&](const Life::Stream& s) {
    return s.boot == batch.boot_id && s.incarnation == batch.incarnation;
  });
  if (stream == streams.end())
    stream = streams.insert(streams.end(), {batch.boot_id, batch.incarnation, 0, 0});
  for (auto& event : batch.events) {
    if (event.seq <= stream->taken) continue;
    stream->taken = event.seq;
    if (event.kind == "hello")
      life.executor->on_hello({NodeName(node),
                               wire::mode_from_string(event.data.value("mode", "")).value_or(wire::Mode::ram),
                               batch.boot_id, Digest(event.data.value("image_digest", "")),
                               event.data.value("slot", ""), event.data.value("trial", false)});
    if (world_.options.plant == "blind" && event.kind == "finished" && event.data.value("ok", false) == false)
      event.data.erase("result");
    if (world_.options.plant == "stale" && !life.offers[node].empty())
      event.order = OrderId(life.offers[node].begin()->first);
    life.executor->on_event(NodeName(node), event);
  }
  const uint64_t up_to = stream->taken;
  store_.write({EventRow{0, world_.reactor.now(), 0, NodeName(node), "contact", "{}"}},
               [answer, up_to, alive = life.alive](Status written) {
                 if (!*alive) return;
                 if (written.ok())
                   answer(up_to);
                 else
                   answer(written.error());
               });
}

}  // namespace muster::sim
