// What is noted of a night, above all of one in which nothing happened; and nodes that cannot go on.
#include "tests/unit/bringup/rollout_service_fixture.h"

using namespace muster;
using namespace muster::rollout;
using namespace muster::rollout::service_test;

namespace {

struct NightWorld : World {
  explicit NightWorld(size_t nodes) : World(nodes) { REQUIRE(approve().ok()); }
  // The rest of the window and a little more, and the end of each run.
  Json night_is_over() {
    for (DurationMs at = 0; at <= cluster.spec.window; at += 30 * kMinute) {
      reactor.advance(30 * kMinute);
      if (!cluster.runs.empty() && !run().over) end_run();
    }
    reactor.advance(2 * RolloutService::kAgain);
    return status()["last_window"];
  }
  Json night() {
    REQUIRE(start().value()["begun"] == true);
    return night_is_over();
  }
  std::string problem() { return rollout_problem(*service->record()); }
};

}  // namespace

TEST_CASE("rollout night: one in which all nodes are updated", "[rollout][service][night]") {
  NightWorld w(5);
  CHECK(w.status()["last_window"].is_null());
  const Json night = w.night();
  CHECK(night["outcome"] == "done");
  CHECK(night["batches"] == 3);
  CHECK(night["updated"] == 5);
  CHECK(night["idle_windows"] == 0);
  CHECK(w.problem() == "");
  CHECK(w.night()["outcome"] == "done");  // nothing was needed
  CHECK(w.status()["last_window"]["batches"] == 0);
  CHECK(w.status()["last_window"]["idle_windows"] == 0);
}

TEST_CASE("rollout night: nights in which nodes wait for one that is away are counted",
          "[rollout][service][night]") {
  NightWorld w(4);
  w.cluster.spec.max_unavailable = 1;
  w.cluster.node("n3").state = NodeState::quarantined;
  w.cluster.node("n3").held_by = HeldBy::an_operator;
  REQUIRE(w.approve().ok());
  for (int i = 1; i <= 4; ++i) {
    const Json night = w.night();
    CHECK(night["outcome"] == "nothing");
    CHECK(night["why"] == "nodes");
    CHECK(night["night"] == i);
    CHECK(night["left"] == Json({{"held", 1}, {"unavailable", 3}}));
    CHECK(night["idle_windows"] == i);
    CHECK(w.problem() != "");
    w.kill();
    CHECK(w.status()["last_window"] == night);
  }
  w.cluster.node("n3").state = NodeState::accepted;
  w.cluster.node("n3").held_by = HeldBy::nobody;
  const Json night = w.night();
  CHECK(night["outcome"] == "done");
  CHECK(night["idle_windows"] == 0);
  CHECK(w.problem() == "");
}

TEST_CASE("rollout night: one in which the planner refused all is over at once",
          "[rollout][service][night]") {
  NightWorld w(3);
  w.cluster.refuse = {"n0", "n1", "n2"};
  REQUIRE(w.start().ok());
  Json night = w.status()["last_window"];
  CHECK(night["outcome"] == "nothing");
  CHECK(night["why"] == "refused");
  CHECK(night["detail"].get<std::string>().find("storage-needed") != std::string::npos);
  const auto ended = night["ended"].get<TimeMs>();
  CHECK(w.night_is_over()["ended"] == ended);  // noted once
  CHECK(w.night()["idle_windows"] == 2);
}

TEST_CASE("rollout night: a start behind one that is over, in its window, is another try",
          "[rollout][service][night]") {
  for (const bool by_timer : {false, true}) {
    NightWorld w(3);
    w.cluster.refuse = {"n0", "n1", "n2"};
    REQUIRE(w.start().ok());
    REQUIRE(w.status()["last_window"]["outcome"] == "nothing");
    const auto until = w.status()["window_until"].get<TimeMs>();
    w.cluster.refuse.clear();
    w.reactor.advance(30 * kMinute);
    REQUIRE(w.cluster.runs.empty());
    const Json again = w.start({0, by_timer}).value();
    CHECK(again["begun"] == true);
    CHECK(again["night"] == 2);
    // Only the timer's start is a window of its own.
    const DurationMs longer = again["window_until"].get<TimeMs>() - until;
    CHECK((by_timer ? longer >= 30 * kMinute && longer < 31 * kMinute : longer == 0));
    CHECK(w.cluster.runs.size() == 1);
    CHECK(w.start({0, by_timer}).value()["begun"] == false);  // a batch is under way
    CHECK(w.night_is_over()["outcome"] == "done");
  }
}

TEST_CASE("rollout night: another run, or a controller that cannot plan, takes all of it",
          "[rollout][service][night]") {
  NightWorld w(3);
  w.cluster.other_run = 99;
  CHECK(w.night()["why"] == "other-run");
  w.cluster.other_run = 0;
  w.cluster.cannot_plan["n0"] = fail(Code::unavailable, "no worker");
  const Json night = w.night();
  CHECK(night["outcome"] == "nothing");
  CHECK(night["why"] == "error");
  CHECK(night["detail"] == "no worker");
  CHECK(night["idle_windows"] == 2);
  w.cluster.cannot_plan.clear();
  REQUIRE(w.start().ok());
  w.cluster.broken = fail(Code::unavailable, "the nodes cannot be read");
  CHECK(w.status()["last_window"]["night"] == 2);
  w.reactor.advance(w.cluster.spec.window);
  w.end_run();
  w.reactor.advance(2 * RolloutService::kAgain);
  CHECK(w.service->record()->last_window->night == 3);
  CHECK(w.service->record()->last_window->why == "error");
}

TEST_CASE("rollout night: one that a void approval refuses is noted, and is a problem until an approval",
          "[rollout][service][night]") {
  for (const bool begun : {false, true}) {
    NightWorld w(3);
    if (begun) REQUIRE(w.night()["outcome"] == "done");
    const int64_t before = begun ? 1 : 0;
    ++w.cluster.now.spec_revision;              // a label was added
    CHECK(code_of(w.start()) == Code::denied);  // its operator reads why
    CHECK(w.problem() == "");
    for (int64_t i = 1; i <= 2; ++i) {
      w.reactor.advance(24 * 60 * kMinute);
      CHECK(code_of(w.start({0, true})) == Code::denied);
      const Json night = w.status()["last_window"];
      CHECK(night["outcome"] == "nothing");
      CHECK(night["why"] == "approval");
      CHECK(night["detail"] != "");
      CHECK(night["night"] == before + i);
      CHECK(night["idle_windows"] == i);
      CHECK(w.problem() != "");
      w.reactor.advance(60 * kMinute);
      w.kill();
      CHECK(w.status()["last_window"] == night);
    }
    CHECK(w.cluster.runs.size() == (begun ? 2U : 0U));
    REQUIRE(w.approve().ok());
    CHECK(w.problem() == "");
    REQUIRE(w.start().ok());
    CHECK(w.problem() == "");
    w.night_is_over();
  }
}

TEST_CASE("rollout night: failed nodes within the budget, and a failed canary", "[rollout][service][night]") {
  NightWorld w(5);
  w.cluster.spec.failure_budget = 2;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  w.cluster.outcome["n1"] = {Outcome::returned, "x"};
  w.reactor.advance(w.cluster.spec.window);  // the window ends while the second batch is under way
  CHECK(w.status()["last_window"].is_null());
  w.end_run();
  w.reactor.advance(2 * RolloutService::kAgain);
  const Json night = w.status()["last_window"];
  CHECK(w.state() == "batches");
  CHECK(night["outcome"] == "partial");
  CHECK(night["why"] == "failed");
  CHECK(night["failed"] == 1);
  CHECK(night["updated"] == 2);
  CHECK(w.problem() != "");

  NightWorld canary(3);
  canary.cluster.outcome["n0"] = {Outcome::quarantined, "x"};
  REQUIRE(canary.start().ok());
  canary.end_run();
  CHECK(canary.status()["last_window"]["outcome"] == "stopped");
  CHECK(canary.status()["last_window"]["why"] == "canary-failed");
  CHECK(canary.problem() != "");
}

TEST_CASE("rollout night: a window that is too short for all is progress; a pause is none",
          "[rollout][service][night]") {
  NightWorld w(9);
  w.cluster.spec.window = 61 * kMinute;
  Json night = w.night();
  CHECK(night["outcome"] == "progress");
  CHECK(night["why"] == "window");
  CHECK(w.problem() == "");
  REQUIRE(w.start().ok());
  REQUIRE(w.pause().ok());
  CHECK(w.night_is_over()["outcome"] == "paused");
  CHECK(w.problem() != "");
}

TEST_CASE("rollout night: of a window of days there is one each day", "[rollout][service][night]") {
  NightWorld w(30);
  w.cluster.spec.window = 7 * 24 * 60 * kMinute;
  REQUIRE(w.start().ok());
  for (int hours = 0; hours < 21; ++hours) {
    w.reactor.advance(60 * kMinute);
    if (hours % 7 == 6) w.end_run();
  }
  w.reactor.advance(2 * RolloutService::kAgain);
  CHECK(w.status()["last_window"]["night"] == 1);
  CHECK(w.status()["last_window"]["outcome"] == "progress");
  CHECK(w.status()["window_open"] == true);
  CHECK_FALSE(w.run().over);  // and the batches go on
}

TEST_CASE("rollout night: a slot that cannot be written ahead is said", "[rollout][service][night]") {
  NightWorld w(9);
  w.cluster.spec.window = 61 * kMinute;
  w.cluster.unwritten["n8"] = "no space left";
  const Json night = w.night();
  CHECK(night["outcome"] == "partial");
  CHECK(night["why"] == "prefetch");
  CHECK(w.problem() != "");
  w.cluster.unwritten.clear();
  w.cluster.spec.window = 8 * 60 * kMinute;
  CHECK(w.night()["outcome"] == "done");
}

TEST_CASE("rollout service: a refusal that names another node leaves out only the node that needs it",
          "[rollout][service]") {
  World w(6);
  w.cluster.refuse_beside = "n2";
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  for (int i = 0; i < 5 && w.state() == "batches" + std::string(); ++i) w.end_run();
  while (!w.run().over) w.end_run();
  CHECK_FALSE(w.service->record()->row->paused);
  CHECK(w.service->record()->row->done.size() == 5);
  CHECK(w.service->record()->row->postponed.at("n2").refused);
  CHECK(w.service->record()->left.at("n2") == "refused: storage-needed: storage1: as the test says");
}

TEST_CASE("rollout service: a node of the next batch that is refused does not hold this one",
          "[rollout][service]") {
  World w(6);
  w.cluster.refuse = {"n3"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n1", "n2"});
  CHECK(w.cluster.orders.back().prefetch == Names{"n4"});
}

TEST_CASE("rollout service: a batch that cannot be planned leaves out its nodes, and the others go on",
          "[rollout][service]") {
  World w(6);
  w.cluster.cannot_plan["n2"] = fail(Code::failed, "no such profile");
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  while (!w.run().over) w.end_run();
  CHECK(w.state() == "batches");
  CHECK(w.service->record()->row->done.size() == 4);
  CHECK(w.service->record()->left.at("n2").find("no such profile") != std::string::npos);
  CHECK(w.status()["last_window"]["outcome"] == "progress");
  w.cluster.cannot_plan.clear();
  w.reactor.advance(w.cluster.spec.window);
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1", "n2"});
}

TEST_CASE("rollout skip: a skipped node is left out until its time, and is shown", "[rollout][service]") {
  World w(3);
  const auto skip = [&](const std::string& node, const std::string& reason, TimeMs until = 0) {
    return w.request([&](auto done) { w.service->skip(node, {reason, "ada", 0, until}, done); });
  };
  const auto unskip = [&](const std::string& node) {
    return w.request([&](auto done) { w.service->unskip(node, done); });
  };
  CHECK(code_of(skip("n0", "demo")) == Code::conflict);
  REQUIRE(w.approve().ok());
  CHECK(code_of(skip("n9", "demo")) == Code::not_found);
  CHECK(code_of(skip("n0", "")) == Code::invalid);
  CHECK(code_of(skip("n0", "demo", w.reactor.now())) == Code::invalid);
  w.cluster.node("n2").role = "login";
  CHECK(code_of(skip("n2", "demo")) == Code::invalid);
  w.cluster.node("n2").role = "gpu";
  CHECK(code_of(unskip("n0")) == Code::not_found);

  const TimeMs until = w.reactor.now() + 24 * 60 * kMinute;
  REQUIRE(skip("n0", "demo", until).ok());
  REQUIRE(skip("n1", "RAM on order").ok());
  const Json plan = w.request([&](auto done) { w.service->plan(done); }).value();
  CHECK(plan["nodes"][0]["reason"] == "skipped");
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n2"});
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.status()["last_window"]["outcome"] == "done");
  CHECK(w.status()["skips"][0]["until"] == until);
  CHECK(w.status()["skips"][0]["by"] == "ada");
  CHECK(w.service->record()->left.at("n1").starts_with("skipped: RAM on order"));
  w.reactor.advance(24 * 60 * kMinute);
  CHECK(w.status()["skips"].size() == 1);
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n0"});
  REQUIRE(unskip("n1").ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n1"});
}
