// A run that ends in the middle: a node that is in the system it had is what it was, so that the next plan
// does not install it from the network, with its jobs.
#include "tests/unit/run/in_place.h"

using namespace muster;
using testing::InPlace;
using wire::OrderKind;

namespace {

void cancelled(InPlace& b) {
  b.executor->cancel("cancelled by an operator");
  b.reactor.advance(kSecond);
  CHECK(b.says("n1", "cancelled by an operator"));
  CHECK(b.offered("n1") == "");
  CHECK(b.store.run(1)->state == RunState::cancelled);
  CHECK(b.row("n1").accepted_run == 7);
  CHECK(b.row("n1").config_digest == "sha256:conf-old");
}

// By way of the RAM system, with an agent that does not say which slot it runs from.
struct OldAgent : InPlace {
  explicit OldAgent(const std::string& state = "accepted") : InPlace(std::vector<std::string>{}) {
    for (const std::string name : {"pause", "netboot", "resume"}) {
      Action a = testing::action("n1", name, name == "netboot" ? ActionKind::netboot : ActionKind::steps);
      if (name == "pause") a.max_attempts = 1;
      add(a);
    }
    for (const std::string name : {"resume-old", "look-old"}) {
      const bool last = name == "look-old";
      Action a = testing::action("n1", name, last ? ActionKind::inventory : ActionKind::steps);
      a.phase = last ? "return" : "resume";
      if (last) a.params = {{"state", state}};
      a.when_failed = true;
      add(a);
    }
    executor->set_node("n1", [](NodeRow& row) {
      row.state = NodeState::accepted;
      row.accepted_run = 7;
      row.config_digest = "sha256:conf-old";
    });
    hello("n1", wire::Mode::installed, "n1-old", testing::kOldImage);
    go();
    REQUIRE(on_offer("n1/pause", OrderKind::steps));
  }
};

}  // namespace

TEST_CASE("cancelled beside its jobs, a node is what it was", "[run][slot]") {
  const std::string state = GENERATE("accepted", "degraded");
  InPlace b({"n1"}, state);
  b.go();
  REQUIRE(b.on_offer("n1/write", OrderKind::write_slot));
  CHECK(to_string(b.row("n1").state) == state);
  SECTION("while its slot is written") {}
  SECTION("when that failed, and it is not heard") {
    b.reactor.advance(20 * kMinute);
    REQUIRE(b.executor->log().of("n1/return").attempt == 1);
  }
  cancelled(b);
  CHECK(b.row("n1").state == (state == "accepted" ? NodeState::accepted : NodeState::degraded));
}

TEST_CASE("cancelled once it was taken from its work, a node is for the next plan to look at",
          "[run][slot]") {
  InPlace b;
  b.go();
  SECTION("in its pause") { b.reaches("n1", "pause"); }
  SECTION("before it is given back") {
    b.reaches("n1", "pause");
    b.fails("n1");
    REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));
  }
  SECTION("back from a trial") {
    b.reaches("n1", "configure");
    b.fails("n1");
    b.finish("n1");
    b.old_system("n1", "back");
    REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));
  }
  cancelled(b);
  CHECK(b.row("n1").state == NodeState::degraded);
  CHECK_FALSE(b.says("n1", "on trial"));
  CHECK(b.says(
      "n1",
      "the node was not returned to service in the scheduler and storage: run `muster up` to resume it"));
}

TEST_CASE("cancelled in a trial, a node is one that is at work in the system that it goes back to",
          "[run][slot]") {
  const std::string state = GENERATE("accepted", "degraded", "quarantined");
  InPlace b({"n1"}, state);
  b.go();
  const std::string at = GENERATE("boot", "accept", "commit");
  b.reaches("n1", at);
  cancelled(b);
  CHECK(b.row("n1").state == (state == "quarantined" ? NodeState::quarantined : NodeState::degraded));
  CHECK(b.row("n1").held_by != HeldBy::an_operator);
  CHECK(b.says("n1", "it may run slot b on trial"));
  CHECK(b.says("n1", at == "commit" ? "it is unknown whether the slot was committed" : "not committed"));
  CHECK(b.says("n1", "the node rolls back by itself within 2 h"));
  CHECK(b.says("n1", "not returned to service"));
  b.old_system("n1", "back");
  CHECK_FALSE(b.executor->on_trial("n1"));
}

TEST_CASE("cancelled behind the commit, a node is one that is at work in its new system", "[run][slot]") {
  InPlace b({"n1"}, GENERATE("accepted", "quarantined"));
  b.go();
  b.reaches("n1", "commit");
  SECTION("its answer is there") { b.finish("n1"); }
  SECTION("its answer is not there, and its agent reports the new system as the standing one") {
    b.asks("n1", "new", true, false);
  }
  cancelled(b);
  CHECK(b.row("n1").state == NodeState::degraded);
  CHECK_FALSE(b.says("n1", "on trial"));
  CHECK(b.says("n1", "not returned to service"));
}

TEST_CASE("what a plan did to a system on trial is no acceptance", "[run][slot]") {
  // Planned right behind a start of the controller, before the node's agent was heard.
  testing::RunBench b;
  b.plan.kind = GENERATE(PlanKind::apply, PlanKind::accept);
  b.add(testing::action("n1", "configure", ActionKind::steps));
  b.plan.config_digests["n1"] = "sha256:conf-new";
  b.start();
  b.hello("n1", wire::Mode::installed, "n1-new", testing::kNewImage, "b", true);
  b.finish("n1");
  CHECK(b.store.run(1)->state == RunState::done);
  CHECK(b.row("n1").state == NodeState::degraded);
  CHECK(b.row("n1").accepted_run == 0);
  CHECK(b.row("n1").config_digest == "");
  CHECK(b.row("n1").reason.find("on trial") != std::string::npos);
}

TEST_CASE("a run that is given up after a long absence leaves a node what it was", "[run][slot]") {
  InPlace b;
  b.go();
  SECTION("while its slot was written") {}
  SECTION("in its pause") { b.reaches("n1", "pause"); }
  SECTION("in its trial") { b.reaches("n1", "configure"); }
  const bool paused = b.offered("n1") != b.id("n1/write", 1);
  b.executor.reset();
  b.offers.clear();
  b.reactor.advance(120 * kMinute);
  b.live();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(kSecond);
  CHECK(b.store.run(1)->state == RunState::cancelled);
  CHECK(b.row("n1").state == (paused ? NodeState::degraded : NodeState::accepted));
}

TEST_CASE("a node whose slots are not known is given back when its jobs do not end", "[run][slot]") {
  const std::string state = GENERATE("accepted", "degraded");
  OldAgent b(state);
  b.fails("n1");
  REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));
  b.finish("n1");
  REQUIRE(b.on_offer("n1/look-old", OrderKind::inventory));
  CHECK(b.offers["n1"].params == Json::object());
  b.finish("n1", true, "", {{"facts", {{"system", {{"uuid", "abc"}}}}}});
  const NodeRow now = b.row("n1");
  CHECK(now.state == (state == "accepted" ? NodeState::accepted : NodeState::degraded));
  CHECK(now.accepted_run == 7);
  CHECK(now.config_digest == "sha256:conf-old");
  CHECK(b.says("n1", "pause: "));
  CHECK_FALSE(b.says("n1", "slot"));
  CHECK(b.shown("n1") == "returned");
  b.ended_as(RunState::partial);
  b.no_power();
}

TEST_CASE("a node whose slots are not known, cancelled in its pause and behind it", "[run][slot]") {
  OldAgent b;
  NodeState wanted = NodeState::degraded;
  SECTION("in its pause") {}
  SECTION("before it is given back") { b.fails("n1"); }
  SECTION("behind it") {
    b.finish("n1");
    wanted = NodeState::installing;
  }
  cancelled(b);
  CHECK(b.row("n1").state == wanted);
}
