// One node's turns as values: no reactor, no ports, no store.
#include "controller/run/node_run.h"

#include <algorithm>
#include <set>

#include "controller/executor/executor.h"
#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

using testing::action;
using Stage = NodeRun::Stage;

constexpr Stage kStages[] = {Stage::pending, Stage::committing,  Stage::powering,
                             Stage::looking, Stage::awaiting,    Stage::pausing,
                             Stage::done,    Stage::quarantined, Stage::not_started};

struct World : Others {
  KnownAgent agent;
  NodeRow row;
  std::set<std::string> out;
  bool seen = false;
  SteadyMs alone = {};
  RunRow run;
  Plan plan;
  StepLog log;
  Limits limits{PlanLimits{}};
  ExecutorTiming timing;
  ExecutorHooks hooks;
  Rings rings;
  SteadyMs now{1'000'000'000'000};

  World() {
    run.id = 1;
    plan.kind = PlanKind::install;
    plan.nodes = {"n1"};
  }
  KnownAgent agent_of(const NodeName&) const override { return agent; }
  NodeRow row_of(const NodeName&) const override { return row; }
  bool ever_seen(const NodeName&) const override { return seen; }
  bool never_seen(const NodeName&) const override { return false; }
  SteadyMs alone_since() const override { return alone; }
  bool known(const NodeName&) const override { return true; }
  bool gone(const NodeName& name) const override { return out.count(name) > 0; }
  bool gone_since(const NodeName& name, SteadyMs) const override { return out.count(name) > 0; }

  Around around() const {
    return {now, now - kMinute, 1'700'000'000'000, run, plan, log, limits, timing, hooks, *this, rings};
  }
  // As the executor: what is committed is in the log.
  Turn turn(NodeRun state, Input input) {
    Turn made = take(std::move(state), std::move(input), around());
    for (const Effect& effect : made.effects)
      if (const auto* rows = std::get_if<effect::Commit>(&effect))
        for (const auto& draft : rows->rows)
          if (const auto* journal = std::get_if<JournalRow>(&draft)) REQUIRE(log.apply(*journal).ok());
    return made;
  }
  // The agent of the boot that the node is awaited to leave or to come up with.
  void speaks(wire::Mode mode, const std::string& boot) {
    agent.mode = mode;
    agent.boot_id = boot;
    agent.greeted = true;
    agent.contact = agent.silent_since = agent.spoke = now;
  }
};

struct Case {
  World world;
  std::vector<Action> actions;
  NodeRun state;

  explicit Case(ActionKind kind, Json params = Json::object()) {
    actions = {action("n1", "it", kind, std::move(params)), action("n1", "next", ActionKind::steps)};
    world.plan.actions = actions;
    state.name = "n1";
    for (const Action& a : actions) state.actions.push_back(&a);
  }
  // The effects of this input; the state goes on.
  std::vector<Effect> does(Input input) {
    Turn turn = world.turn(state, std::move(input));
    CHECK_FALSE(turn.refused);
    state = std::move(turn.state);
    return std::move(turn.effects);
  }
  void begin() {
    does(input::Begin{});
    REQUIRE(state.stage == Stage::committing);
  }
  // Its power cycle is on its way.
  void cycle() {
    begin();
    does(input::Durable{});
    does(input::Armed{Ok{}});
    REQUIRE(state.stage == Stage::powering);
  }
};

std::vector<effect::Call> calls(const std::vector<Effect>& effects) {
  std::vector<effect::Call> found;
  for (const Effect& effect : effects)
    if (const auto* call = std::get_if<effect::Call>(&effect)) found.push_back(*call);
  return found;
}
template <typename E>
const E* first(const std::vector<Effect>& effects) {
  for (const Effect& effect : effects)
    if (const auto* found = std::get_if<E>(&effect)) return found;
  return nullptr;
}
// The event of the first journal row; "": none.
std::string event(const std::vector<Effect>& effects) {
  const auto* commit = first<effect::Commit>(effects);
  const auto* row = commit ? std::get_if<JournalRow>(&commit->rows.at(0)) : nullptr;
  return row ? row->event : "";
}

std::vector<Input> every_input() {
  wire::Event event;
  event.order = "another order";
  return {input::Begin{},
          input::Settle{},
          input::Resume{},
          input::Durable{},
          input::Timer{},
          input::Armed{Ok{}},
          input::Rearmed{Ok{}},
          input::LeaveOrder{Json::object()},
          input::Cycled{Ok{}},
          input::SwitchedOff{Ok{}},
          input::SwitchedOn{Ok{}},
          input::PowerSeen{PowerState::on},
          input::Contact{},
          input::Greeting{{"n1", wire::Mode::ram, "boot9", ""}, true},
          input::Said{event},
          input::GiveUp{"broken"},
          input::StandDown{"cancelled"}};
}

// Which stages take which input; `ignored` by those of the others that do not refuse it.
struct Expected {
  std::set<Stage> taken, ignored;
};
Expected expected(const Input& input) {
  const std::set<Stage> over = {Stage::done, Stage::quarantined, Stage::not_started};
  std::set<Stage> quiet = over;
  quiet.insert({Stage::pending, Stage::committing});
  const std::set<Stage> at_work = {Stage::powering, Stage::looking, Stage::awaiting, Stage::pausing};
  std::set<Stage> in_it = at_work;
  in_it.insert({Stage::pending, Stage::committing});
  struct Of {
    Expected operator()(const input::Begin&) { return {{Stage::pending}, {}}; }
    Expected operator()(const input::Settle&) { return {{Stage::pending}, {}}; }
    Expected operator()(const input::Resume&) { return {{Stage::pending}, {}}; }
    Expected operator()(const input::Durable&) { return {{Stage::committing}, {}}; }
    Expected operator()(const input::Timer&) {
      return {{Stage::powering, Stage::awaiting, Stage::pausing}, {}};
    }
    Expected operator()(const input::PowerSeen&) { return {{Stage::looking}, {}}; }
    Expected operator()(const input::Contact&) {
      std::set<Stage> rest(std::begin(kStages), std::end(kStages));
      rest.erase(Stage::awaiting);
      return {{Stage::awaiting}, rest};
    }
    Expected operator()(const input::Greeting&) { return {at_work, quiet}; }
    Expected operator()(const input::Said&) { return {at_work, quiet}; }
    Expected operator()(const input::GiveUp&) { return {in_it, over}; }
    Expected operator()(const input::StandDown&) { return {in_it, over}; }
    Expected operator()(const input::Armed&) { return {{Stage::powering}, {}}; }
    Expected operator()(const input::Rearmed&) { return {{Stage::powering}, {}}; }
    Expected operator()(const input::LeaveOrder&) { return {{Stage::powering}, {}}; }
    Expected operator()(const input::Cycled&) { return {{Stage::powering}, {}}; }
    Expected operator()(const input::SwitchedOff&) { return {{Stage::powering}, {}}; }
    Expected operator()(const input::SwitchedOn&) { return {{Stage::powering}, {}}; }
    const std::set<Stage>&over, &quiet, &at_work, &in_it;
  };
  return std::visit(Of{over, quiet, at_work, in_it}, input);
}

}  // namespace

TEST_CASE("each stage takes, ignores or refuses each input", "[run]") {
  const auto inputs = every_input();
  REQUIRE(inputs.size() == std::variant_size_v<Input>);
  for (const Stage stage : kStages)
    for (size_t i = 0; i < inputs.size(); ++i) {
      INFO("stage " << static_cast<int>(stage) << ", input " << i);
      REQUIRE(inputs[i].index() == i);
      const Expected rule = expected(inputs[i]);
      const Rule wanted = rule.taken.count(stage)     ? Rule::take
                          : rule.ignored.count(stage) ? Rule::ignore
                                                      : Rule::refuse;
      CHECK(rule_for(stage, inputs[i]) == wanted);
      if (wanted == Rule::take) continue;
      Case c(ActionKind::netboot);
      c.state.stage = stage;
      c.state.epoch = 7;
      const Turn turn = c.world.turn(c.state, inputs[i]);
      CHECK(turn.refused == (wanted == Rule::refuse));
      CHECK(turn.effects.empty());
      CHECK(turn.state.stage == stage);
      CHECK(turn.state.epoch == 7);
    }
}

TEST_CASE("no port is called for an attempt before its intent is durable", "[run]") {
  for (const ActionKind kind :
       {ActionKind::netboot, ActionKind::inventory, ActionKind::image, ActionKind::boot_disk,
        ActionKind::steps, ActionKind::check, ActionKind::reboot, ActionKind::power_off, ActionKind::wake,
        ActionKind::write_slot, ActionKind::boot_slot, ActionKind::return_slot}) {
    INFO(to_string(kind));
    Case c(kind);
    const auto effects = c.does(input::Begin{});
    CHECK(c.state.stage == Stage::committing);
    CHECK(event(effects) == "intent");
    CHECK(first<effect::Commit>(effects)->awaited);
    CHECK(calls(effects).empty());
    CHECK_FALSE(first<effect::Offer>(effects));
    CHECK(c.state.latest.number == 1);
  }
}

TEST_CASE("a power cycle, turn by turn", "[run]") {
  Case c(ActionKind::netboot);
  c.begin();
  CHECK(calls(c.does(input::Durable{})) == std::vector{effect::Call::arm});
  CHECK(c.state.stage == Stage::powering);
  CHECK(calls(c.does(input::Armed{Ok{}})) == std::vector{effect::Call::cycle});
  c.does(input::Cycled{Ok{}});
  CHECK(c.state.stage == Stage::awaiting);
  CHECK(c.state.attempt.power.certain);
  c.world.speaks(wire::Mode::ram, "boot1");
  const auto effects = c.does(input::Greeting{{"n1", wire::Mode::ram, "boot1", ""}, true});
  CHECK(event(effects) == "succeeded");
  CHECK(c.state.stage == Stage::committing);
  const auto end = c.does(input::Durable{});
  CHECK(first<effect::Succeeded>(end)->action == "n1/it");
  CHECK(first<effect::Kick>(end));
  CHECK(c.state.stage == Stage::pending);
  CHECK(c.state.index == 1);
}

TEST_CASE("what a BMC's answer makes of a power cycle", "[run]") {
  struct Row {
    Status answer;
    Stage stage;
    std::string event;
  };
  const Row rows[] = {{Ok{}, Stage::awaiting, ""},
                      {fail(Code::timeout, "no answer"), Stage::looking, ""},  // unknown: looked at
                      {fail(Code::unavailable, "busy"), Stage::pausing, ""},   // nothing happened: again
                      {fail(Code::failed, "it broke"), Stage::committing, "unknown"},  // another attempt
                      {fail(Code::conflict, "locked"), Stage::committing, "unknown"},
                      {fail(Code::denied, "password"), Stage::committing, "failed"}};  // for good
  for (const Row& row : rows) {
    INFO(static_cast<int>(row.stage) << row.event);
    Case c(ActionKind::netboot);
    c.cycle();
    const auto effects = c.does(input::Cycled{row.answer});
    CHECK(c.state.stage == row.stage);
    CHECK(event(effects) == row.event);
    CHECK((calls(effects) == std::vector{effect::Call::look}) == (row.stage == Stage::looking));
  }
}

TEST_CASE("power that was seen off is switched on again, so many times", "[run]") {
  Case c(ActionKind::netboot);
  c.cycle();
  for (int again = 1; again < c.world.timing.power_tries; ++again) {
    c.does(input::Cycled{fail(Code::timeout, "no answer")});
    REQUIRE(c.state.stage == Stage::looking);
    c.world.now += kSecond;
    CHECK(calls(c.does(input::PowerSeen{PowerState::off})) == std::vector{effect::Call::arm});
    CHECK(c.state.attempt.power.stayed_off == again);
    c.does(input::Armed{Ok{}});
  }
  c.does(input::Cycled{fail(Code::timeout, "no answer")});
  c.world.now += kSecond;
  CHECK(event(c.does(input::PowerSeen{PowerState::off})) == "failed");
}

TEST_CASE("a system that runs is stopped in order before its power is cycled", "[run]") {
  Case c(ActionKind::netboot);
  c.world.speaks(wire::Mode::installed, "old");
  c.begin();
  auto effects = c.does(input::Durable{});
  REQUIRE(first<effect::Offer>(effects));
  CHECK(first<effect::Offer>(effects)->order.kind == wire::OrderKind::power_off);
  CHECK(calls(effects) == std::vector{effect::Call::look});
  c.does(input::PowerSeen{PowerState::on});
  CHECK(c.state.stage == Stage::pausing);
  c.does(input::Timer{});
  effects = c.does(input::PowerSeen{PowerState::off});
  CHECK(first<effect::Withdraw>(effects));
  CHECK(calls(effects) == std::vector{effect::Call::arm});
}

TEST_CASE("an order that failed is tried again, then its node is given up", "[run]") {
  Case c(ActionKind::steps);
  wire::Event said;
  said.kind = "finished";
  said.data = {{"ok", false}, {"code", "failed"}, {"message", "broken"}};
  c.world.speaks(wire::Mode::installed, "boot1");
  c.begin();
  for (int attempt = 1; attempt <= 2; ++attempt) {
    REQUIRE(first<effect::Offer>(c.does(input::Durable{})));
    said.order = order_id(c.world.run, "n1/it", attempt);
    CHECK(event(c.does(input::Said{said})) == "failed");
    if (attempt == 2) break;
    c.does(input::Durable{});
    CHECK(c.state.stage == Stage::pausing);
    CHECK(event(c.does(input::Timer{})) == "intent");
  }
  const auto effects = c.does(input::Durable{});
  CHECK(event(effects) == "abandoned");
  CHECK(c.state.stage == Stage::quarantined);
  CHECK_FALSE(c.state.reason.empty());
  CHECK(first<effect::Kick>(effects));
}

TEST_CASE("whatever ends an attempt takes back what it had under way", "[run]") {
  for (const bool with_faulty_part : {true, false}) {
    const Input end =
        with_faulty_part ? Input{input::GiveUp{"broken"}} : Input{input::StandDown{"cancelled"}};
    Case steps(ActionKind::steps);
    steps.world.speaks(wire::Mode::installed, "boot1");
    steps.begin();
    steps.does(input::Durable{});
    const uint64_t before = steps.state.epoch;
    auto effects = steps.does(end);
    CHECK(first<effect::Withdraw>(effects)->order == order_id(steps.world.run, "n1/it", 1));
    CHECK(first<effect::StopTimer>(effects));
    CHECK(steps.state.epoch > before);  // no answer that is on its way counts
    CHECK(steps.state.over());
    Case power(ActionKind::netboot);
    power.cycle();
    const auto called = calls(power.does(end));
    CHECK(std::count(called.begin(), called.end(), effect::Call::forget) == 1);
    CHECK(std::count(called.begin(), called.end(), effect::Call::disarm) >= 1);
  }
}

TEST_CASE("a failure that is being weighed is not overtaken by a look at the power", "[run]") {
  const Json step = {{"id", "probe"}, {"params", {{"peers", {"n1", "n2"}}, {"peers_live", true}}}};
  Case c(ActionKind::steps, {{"steps", {step}}, {"ring", {"n1", "n2"}}});
  c.world.speaks(wire::Mode::installed, "boot1");
  c.begin();
  c.does(input::Durable{});
  c.world.now += c.world.timing.silent_after;
  REQUIRE(calls(c.does(input::Timer{})) == std::vector{effect::Call::look});
  const uint64_t look = c.state.epoch;
  wire::Event said;
  said.order = order_id(c.world.run, "n1/it", 1);
  said.kind = "finished";
  said.data = {{"ok", false},
               {"code", "failed"},
               {"message", "n2 does not answer"},
               {"result", {{"steps", {{{"step", "probe"}, {"status", "failed"}}}}}}};
  c.does(input::Said{said});
  REQUIRE(c.state.attempt.weighing);
  CHECK(c.state.stage == Stage::pausing);
  CHECK(c.state.epoch > look);
}

TEST_CASE("the time that a silence of all gives back is bounded, of each and of all together", "[run]") {
  Case c(ActionKind::steps);
  c.world.plan.actions[0].timeout = c.actions[0].timeout = 24 * 60 * kMinute;
  c.world.speaks(wire::Mode::installed, "boot1");
  c.begin();
  c.does(input::Durable{});
  REQUIRE(c.state.attempt.offered);
  const auto go_on = [&] {
    if (c.state.stage == Stage::looking) return c.does(input::PowerSeen{PowerState::on});
    return c.does(input::Timer{});
  };
  const SteadyMs first = c.state.attempt.deadline;
  const auto silence = [&](DurationMs span) {
    c.world.alone = c.world.now;
    for (const SteadyMs end = c.world.now + span; c.world.now < end;) {
      c.world.now += kMinute;
      go_on();
    }
    c.world.alone = {};
    c.world.speaks(wire::Mode::installed, "boot1");
    while (c.state.stage == Stage::looking) go_on();
    go_on();
    return c.state.attempt.deadline - first;
  };
  const ExecutorTiming& timing = c.world.timing;
  const DurationMs once = silence(6 * 60 * kMinute);  // most of it was the node's own
  CHECK(once > timing.alone_for - 2 * kMinute);
  CHECK(once <= timing.alone_for);
  CHECK(silence(5 * kMinute) - once > 3 * kMinute);
  DurationMs last = 0;
  for (int i = 0; i < 10; ++i) last = silence(14 * kMinute);
  CHECK(last == timing.alone_most);
  CHECK(c.state.latest.number == 1);
}

TEST_CASE("a controller that comes back looks at a power cycle before it touches it", "[run]") {
  Case c(ActionKind::netboot);
  c.cycle();
  Case back(ActionKind::netboot);
  back.world.log = c.world.log;
  CHECK(calls(back.does(input::Resume{})) == std::vector{effect::Call::rearm});
  CHECK(calls(back.does(input::Rearmed{Ok{}})) == std::vector{effect::Call::look});
  CHECK(back.state.latest.number == 1);
}

TEST_CASE("a wait goes on as long as it is the same", "[run]") {
  NodeRun node;
  CHECK(note_wait(node, {"booting", "hello", "", "quarantine", SteadyMs{1000}, SteadyMs{5000}}));
  CHECK_FALSE(note_wait(node, {"booting", "hello", "on", "quarantine", SteadyMs{2000}, SteadyMs{6000}}));
  CHECK(node.shown.wait.since == SteadyMs{1000});
  CHECK(node.shown.wait.observed == "on");
  CHECK(note_wait(node, {"booting", "an answer", "", "", SteadyMs{3000}, {}}));
  CHECK(node.shown.wait.since == SteadyMs{3000});
}
