// The loop of a rollout: what begins when, and what stops it.
#include "tests/unit/bringup/rollout_service_fixture.h"

using namespace muster;
using namespace muster::rollout;
using namespace muster::rollout::service_test;

TEST_CASE("rollout service: nothing begins without an approval, and what is shown is what is approved",
          "[rollout][service]") {
  World w(3);
  CHECK(w.state() == "none");
  CHECK(code_of(w.start()) == Code::denied);
  CHECK(code_of(w.request([&](auto done) { w.service->approve({"other", "ada"}, done); })) == Code::conflict);
  REQUIRE(w.approve().ok());
  CHECK(w.state() == "approved");
  CHECK(w.cluster.runs.empty());
  CHECK(w.status()["approval"]["by"] == "ada");
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n0"});
}

TEST_CASE("rollout service: a canary, then batches, then it is done, and each node is taken once",
          "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().value()["begun"] == true);
  CHECK(w.state() == "canary");
  CHECK(w.run().nodes == Names{"n0"});
  CHECK(w.cluster.orders.back().prefetch.empty());
  CHECK(w.cluster.orders.back().failure_budget == 0);
  w.end_run();
  CHECK(w.state() == "batches");
  CHECK(w.run().nodes == Names{"n1", "n2"});
  CHECK(w.cluster.orders.back().prefetch == Names{"n3", "n4"});
  w.end_run();
  CHECK(w.run().nodes == Names{"n3", "n4"});
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.cluster.runs.size() == 3);
  for (const auto& [node, times] : w.cluster.taken) CHECK(times == 1);
  CHECK(w.service->record()->runs.size() == 3);
  CHECK(w.service->record()->before.size() == 5);
}

TEST_CASE("rollout service: a failed canary stops it until another approval", "[rollout][service]") {
  World w(4);
  w.cluster.outcome["n0"] = {Outcome::returned, "acceptance"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.state() == "stopped");
  CHECK(w.status()["stop"] == "canary-failed");
  CHECK(w.cluster.runs.size() == 1);
  CHECK(code_of(w.start()) == Code::denied);  // of the next night
  CHECK(code_of(w.pause()) == Code::conflict);
  w.cluster.outcome.clear();
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: more failures than the budget stop it", "[rollout][service]") {
  World w(5);
  w.cluster.spec.failure_budget = 1;
  w.cluster.outcome["n1"] = {Outcome::returned, "x"};
  w.cluster.outcome["n3"] = {Outcome::quarantined, "x"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.cluster.orders.back().failure_budget == 1);
  w.end_run();
  CHECK(w.cluster.orders.back().failure_budget == 0);
  w.end_run();
  CHECK(w.status()["stop"] == "budget");
  CHECK(code_of(w.start()) == Code::denied);
}

TEST_CASE("rollout service: a pause ends after the batch under way", "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  CHECK(code_of(w.pause()) == Code::conflict);
  REQUIRE(w.start().ok());
  REQUIRE(w.pause().ok());
  CHECK(w.state() == "paused");
  w.end_run();
  CHECK(w.cluster.runs.size() == 1);
  CHECK(w.service->record()->row->done.size() == 1);
  CHECK(code_of(w.start()) == Code::denied);
  REQUIRE(w.resume().ok());
  CHECK(code_of(w.resume()) == Code::conflict);
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: a pause while a batch is planned keeps its run from beginning",
          "[rollout][service]") {
  World w(3);
  w.cluster.hold_plan = true;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  Result<Json> paused = fail(Code::failed, "no answer");
  w.service->pause("ada", [&](Result<Json> answer) { paused = std::move(answer); });
  w.cluster.held_plan();
  w.settle();
  CHECK(paused.ok());
  CHECK(w.cluster.runs.empty());
  CHECK(w.state() == "paused");
}

TEST_CASE("rollout service: a second start in a window changes nothing; one behind it is another night",
          "[rollout][service]") {
  World w(4);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  const Json again = w.start().value();
  CHECK(again["begun"] == false);
  CHECK(again["night"] == 1);
  CHECK(w.cluster.runs.size() == 1);
  w.reactor.advance(w.cluster.spec.window);
  w.end_run();
  CHECK(w.cluster.runs.size() == 1);  // no batch begins behind the window
  CHECK(w.status()["waits_for"] == "window");
  const Json next_night = w.start().value();
  CHECK(next_night["begun"] == true);
  CHECK(next_night["night"] == 2);
  CHECK(next_night["id"] == 1);
  CHECK(w.run().nodes == Names{"n1", "n2"});  // its canary was proven in the night before
}

TEST_CASE("rollout service: in a window of days each day's start is another night", "[rollout][service]") {
  World w(5);
  w.cluster.spec.window = 7 * 24 * 60 * kMinute;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.reactor.advance(10 * 60 * kMinute);
  CHECK(w.start().value()["begun"] == false);
  w.reactor.advance(14 * 60 * kMinute);
  CHECK(w.start().value()["begun"] == true);
  CHECK(w.service->record()->night == 2);
  CHECK(w.cluster.runs.size() == 1);  // that of the first night is still under way
  w.end_run();
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: an operator's run goes first", "[rollout][service]") {
  World w(3);
  w.cluster.other_run = 99;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.empty());
  CHECK(w.status()["waits_for"] == "other-run");
  w.cluster.other_run = 0;
  w.service->poke();
  w.settle();
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: an operator's run that begins while a batch is planned goes first",
          "[rollout][service]") {
  World w(3);
  w.cluster.cannot_start = fail(Code::conflict, "run 99 is still active");
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.empty());
  CHECK_FALSE(w.service->record()->row->batch);
  w.cluster.cannot_start.reset();
  w.reactor.advance(RolloutService::kAgain + 1000);
  REQUIRE(w.cluster.runs.size() == 1);
  CHECK(w.run().by.starts_with("rollout 1/2, "));  // a batch's number is used once
}

TEST_CASE("rollout service: another spec stops it, and voids the approval", "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.now.spec_revision = 2;
  w.cluster.now.spec_digest = "spec2";
  w.service->poke();
  w.settle();
  CHECK(w.state() == "canary");  // its run goes on
  w.end_run();
  CHECK(w.status()["stop"] == "target-changed");
  CHECK(w.status()["not_covered"] != "");
  CHECK(code_of(w.start()) == Code::denied);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: a spec without the section, or an image that is not built, stops it",
          "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.broken = fail(Code::invalid, "no rollout");
  w.end_run();
  CHECK(w.status()["stop"] == "target-changed");
  CHECK(code_of(w.start()) == Code::invalid);
}

TEST_CASE("rollout service: a canary that failed is not forgotten with the section", "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.outcome["n0"] = {Outcome::returned, "panic"};
  w.cluster.broken = fail(Code::invalid, "no rollout");
  w.end_run();
  CHECK(w.status()["stop"] == "canary-failed");
  w.cluster.broken.reset();
  CHECK(code_of(w.start()) == Code::denied);
}

TEST_CASE("rollout service: an image built again is covered where the spec says so, with a canary of its own",
          "[rollout][service]") {
  for (const bool covered : {false, true}) {
    World w(3);
    w.cluster.now.rebuilt_images = covered;
    REQUIRE(w.approve().ok());
    REQUIRE(w.start().ok());
    w.cluster.now.images["gpu"].digest = "newer";
    w.end_run();
    CHECK(w.status()["stop"] == "target-changed");
    const auto again = w.start();
    REQUIRE(again.ok() == covered);
    if (!covered) continue;
    CHECK(again.value()["id"] == 2);
    CHECK(w.state() == "canary");
    CHECK(w.run().nodes.size() == 1);
    w.end_run();
    w.cluster.now.images["gpu"] = {"newest", "recipe2"};  // of another recipe
    w.end_run();
    CHECK(code_of(w.start()) == Code::denied);
  }
}

TEST_CASE("rollout service: the plan has the notes for the operator", "[rollout][service]") {
  World w(2);
  w.cluster.notes = {"n1: as the test says"};
  const auto plan = w.request([&](auto done) { w.service->plan(done, {}); });
  REQUIRE(plan.ok());
  CHECK((*plan)["notes"] == Json{"n1: as the test says"});
}
