// In-place re-imaging, turn by turn: what a node that is taken out in the middle of a restart or of a power
// cycle leaves behind.
#include "controller/run/node_run.h"
#include "tests/unit/run/in_place.h"

using namespace muster;
using testing::action;
using testing::InPlace;
using Stage = NodeRun::Stage;

namespace {

struct Turns : Others {
  KnownAgent agent;
  NodeRow row;
  RunRow run;
  Plan plan;
  StepLog log;
  Limits limits{PlanLimits{}};
  ExecutorTiming timing;
  ExecutorHooks hooks;
  Rings rings;
  SteadyMs now{1'000'000'000'000};
  std::vector<Action> actions;
  NodeRun state;
  std::vector<Effect> effects;  // of the last turn

  Turns() {
    run.id = 1;
    plan.kind = PlanKind::reimage;
    actions = {action("n1", "boot", ActionKind::boot_slot,
                      {{"slot", "b"}, {"digest", testing::kNewImage}, {"trial", 1000}}),
               action("n1", "return", ActionKind::return_slot,
                      {{"slot", "a"}, {"digest", testing::kOldImage}, {"state", "accepted"}})};
    state.name = "n1";
    state.actions = {&actions[0]};
    state.rescue = {&actions[1]};
    row.image_digest = testing::kOldImage;
    agent.mode = wire::Mode::installed;
    agent.boot_id = "old";
    agent.slot = "a";
    agent.greeted = true;
    speaks();
  }
  KnownAgent agent_of(const NodeName&) const override { return agent; }
  NodeRow row_of(const NodeName&) const override { return row; }
  bool ever_seen(const NodeName&) const override { return true; }
  bool never_seen(const NodeName&) const override { return false; }
  SteadyMs alone_since() const override { return {}; }
  bool known(const NodeName&) const override { return true; }
  bool gone(const NodeName&) const override { return false; }
  bool gone_since(const NodeName&, SteadyMs) const override { return false; }

  void speaks() { agent.contact = agent.silent_since = agent.spoke = now; }
  void turn(Input input) {
    Turn made =
        take(std::move(state), std::move(input),
             {now, now - kMinute, 1'700'000'000'000, run, plan, log, limits, timing, hooks, *this, rings});
    CHECK_FALSE(made.refused);
    state = std::move(made.state);
    effects = std::move(made.effects);
    for (const Effect& effect : effects)
      if (const auto* rows = std::get_if<effect::Commit>(&effect))
        for (const auto& draft : rows->rows)
          if (const auto* journal = std::get_if<JournalRow>(&draft)) REQUIRE(log.apply(*journal).ok());
  }
  bool calls(effect::Call what) const {
    return std::any_of(effects.begin(), effects.end(), [&](const Effect& effect) {
      const auto* call = std::get_if<effect::Call>(&effect);
      return call && *call == what;
    });
  }
  const effect::Offer* offer() const {
    for (const Effect& effect : effects)
      if (const auto* found = std::get_if<effect::Offer>(&effect)) return found;
    return nullptr;
  }
  void begins() {
    turn(input::Begin{});
    turn(input::Durable{});
  }
  void departs() {
    begins();
    REQUIRE(offer());
    wire::Event finished;
    finished.order = offer()->order.id;
    finished.kind = "finished";
    finished.data = {{"ok", true}};
    turn(input::Said{finished});
    REQUIRE(state.attempt.departed);
  }
  void given_up() {
    turn(input::GiveUp{"another node is lost"});
    CHECK(state.returning);
    turn(input::Durable{});
    CHECK(state.stage == Stage::pending);
    CHECK(state.action().id == "n1/return");
  }
};

}  // namespace

TEST_CASE("who was given up in the middle of a restart is back when it is sure that it stays",
          "[run][slot]") {
  Turns t;
  t.departs();
  t.given_up();
  t.begins();
  CHECK(t.state.stage == Stage::awaiting);  // it may go at any moment
  CHECK_FALSE(t.offer());
  SECTION("it stays") {
    t.now += t.timing.leave_shows;
    t.speaks();
    t.turn(input::Contact{});
    CHECK(t.log.of("n1/return").state == ActionState::succeeded);
  }
  SECTION("it goes, and comes up in the new system: it is restarted once more") {
    t.now += 2 * kMinute;
    t.agent.boot_id = "new", t.agent.slot = "b", t.row.image_digest = testing::kNewImage;
    t.speaks();
    t.turn(input::Greeting{{"n1", wire::Mode::installed, "new", testing::kNewImage, "b"}, true});
    REQUIRE(t.offer());
    CHECK(t.offer()->order.kind == wire::OrderKind::reboot);
    CHECK(t.offer()->order.params == Json::object());
  }
}

TEST_CASE("who is given up in the middle of a power cycle is not left without power", "[run][slot]") {
  Turns t;
  t.departs();
  t.now = t.state.attempt.deadline;
  t.turn(input::Timer{});
  REQUIRE(t.calls(effect::Call::switch_off));
  CHECK_FALSE(t.calls(effect::Call::switch_on));
  SECTION("before it is off") {}
  SECTION("when it is off") { t.turn(input::SwitchedOff{Ok{}}); }
  t.turn(input::GiveUp{"another node is lost"});
  CHECK(t.calls(effect::Call::restore));
}

TEST_CASE("what is heard while the power is cut is about to be gone", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.off_answers = {fail(Code::timeout, "no answer")};
  b.reactor.advance(41 * kMinute);
  REQUIRE(b.switched_off.size() == 1);
  b.old_system("n1", "back");
  CHECK(b.executor->log().of("n1/boot").state == ActionState::intent);
  b.reactor.advance(20 * kSecond);
  CHECK(b.switched_on.size() == 1);
  CHECK(b.executor->log().of("n1/boot").state == ActionState::intent);
  b.old_system("n1", "again");
  b.finish("n1");
  b.is_back("n1");
}

TEST_CASE("a trial is not over because its agent did not say its slot yet", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "configure");  // in which it restarts, while the controller is killed
  b.killed();
  b.hello("n1", wire::Mode::installed, "n1-third", testing::kNewImage);
  CHECK(b.executor->log().of("n1/configure").state == ActionState::intent);
  SECTION("it is in the new system still") {
    b.asks("n1", "third", true);
    CHECK(b.offered("n1") == b.id("n1/configure", 1));
  }
  SECTION("it is back in the old one") {
    b.asks("n1", "third", false);
    CHECK(b.executor->log().of("n1/configure").state == ActionState::abandoned);
    CHECK(b.offered("n1") == b.id("n1/resume-old", 1));
  }
}

TEST_CASE("nothing that is for the old system is done to the new one", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "pause");
  b.fails("n1");
  REQUIRE(b.offered("n1") == b.id("n1/resume-old", 1));
  SECTION("it was only restarted") {
    b.old_system("n1", "again");
    b.finish("n1");
    b.is_back("n1");
  }
  SECTION("the one boot that was set was not taken back") {
    b.new_system("n1", "new");
    CHECK(b.offered("n1") == "");
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.says("n1", "pause: broken"));
    CHECK(b.says("n1", "it runs slot b"));
  }
}
