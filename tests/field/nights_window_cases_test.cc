// Windows of a rollout, its nights, and its starts, through RolloutService and `muster rollout start --wait`.
#include "cli/cli_context.h"
#include "cli/rollout_wait.h"
#include "tests/field/case.h"
#include "tests/unit/bringup/rollout_service_fixture.h"

using namespace muster;
using namespace muster::rollout;
using namespace muster::rollout::service_test;

namespace {

constexpr DurationMs kHour = 60 * kMinute;

struct NightlyCluster : World {
  explicit NightlyCluster(size_t nodes) : World(nodes) {
    cluster.spec.window = 6 * kHour;
    cluster.now.rebuilt_images = true;
    REQUIRE(approve().ok());
  }
  // For so long, with runs of three hours; returns the hours after now at which batches began.
  std::vector<DurationMs> begun_within(DurationMs span) {
    std::vector<DurationMs> out;
    size_t runs = cluster.runs.size();
    for (DurationMs at = 0; at < span; at += kHour) {
      if (cluster.runs.size() > runs) out.push_back(at);
      runs = cluster.runs.size();
      reactor.advance(kHour);
      if (at / kHour % 3 == 2 && runs > 0 && !run().over) end_run();
    }
    return out;
  }
  // What the timer's unit does, from now until the night is over: its exit code.
  int unit(DurationMs late = 0) {
    cli::WindowCalls calls;
    calls.start = [this](DurationMs since) {
      auto answer = start({since, true});
      if (answer.ok()) opened = reactor.steady();
      return answer;
    };
    calls.status = [this]() -> Result<Json> { return status(); };
    calls.now = [this] { return reactor.steady(); };
    calls.sleep = [this](DurationMs span, const std::string&) {
      reactor.advance(span);
      on_time(reactor.steady() - began);
    };
    began = reactor.steady();
    const auto night = cli::wait_for_window(calls, {late, 23 * kHour});
    if (!night.ok()) return cli::exit_for(night.error());
    return night->exit;
  }
  std::function<void(DurationMs)> on_time = [](DurationMs) {};
  SteadyMs began, opened;
};

}  // namespace

FIELD_CASE("clock-ahead-window") {
  for (const DurationMs ahead : {DurationMs{0}, kDay, 365 * kDay}) {
    CAPTURE(ahead / kDay);
    NightlyCluster w(40);
    w.reactor.set_clock(ahead);
    REQUIRE(w.start().ok());
    w.reactor.advance(kMinute);
    w.reactor.set_clock(-ahead);
    const auto begun = w.begun_within(30 * kHour);
    CHECK(begun == std::vector<DurationMs>{3 * kHour});
    CHECK(w.status()["window_open"] == false);
    CHECK(w.start().value()["begun"] == true);
  }
}

FIELD_CASE("hwclock-hour-ahead") {
  NightlyCluster w(40);
  REQUIRE(w.start().ok());  // that clock shows 22:00
  w.reactor.set_clock(-kHour);
  w.reactor.advance(kMinute);
  w.end_run();
  CHECK(w.cluster.runs.size() == 1);
  w.reactor.advance(kHour - kMinute);
  REQUIRE(w.start().value()["begun"] == true);  // it is 22:00
  CHECK(w.status()["window_until"] == w.service->record()->window.opened + 6 * kHour);
  CHECK_FALSE(w.begun_within(30 * kHour).empty());
}

FIELD_CASE("silent-nights: one node that is held takes all the room") {
  NightlyCluster w(6);
  w.cluster.spec.max_unavailable = 1;
  w.cluster.node("n5").state = NodeState::quarantined;
  w.cluster.node("n5").held_by = HeldBy::an_operator;
  REQUIRE(w.approve().ok());
  for (int i = 1; i <= 4; ++i) {
    CHECK(w.unit() == cli::kPartial);
    w.reactor.advance(16 * kHour);
    CHECK(w.status()["last_window"]["why"] == "nodes");
    CHECK(w.status()["last_window"]["idle_windows"] == i);
  }
  CHECK(w.cluster.runs.empty());
  CHECK(rollout_problem(*w.service->record()) != "");
}

FIELD_CASE("silent-nights: the planner refuses all, and failed nodes within the budget") {
  NightlyCluster w(6);
  w.cluster.refuse = {"n0", "n1", "n2", "n3", "n4", "n5"};
  for (int i = 1; i <= 4; ++i) {
    CHECK(w.unit() == cli::kPartial);
    w.reactor.advance(22 * kHour);
    CHECK(w.status()["last_window"]["why"] == "refused");
    CHECK(w.status()["last_window"]["idle_windows"] == i);
  }
  w.cluster.refuse.clear();
  w.cluster.spec.failure_budget = 3;
  w.cluster.spec.window = 2 * kHour;
  REQUIRE(w.approve().ok());
  w.cluster.outcome["n1"] = {Outcome::returned, "x"};
  w.on_time = [&](DurationMs at) {
    if (at % (50 * kMinute) < 5 * kSecond && !w.cluster.runs.empty() && !w.run().over) w.end_run();
  };
  CHECK(w.unit() == cli::kPartial);
  CHECK(w.state() == "batches");
  CHECK(w.status()["last_window"]["failed"] == 1);
}

FIELD_CASE("never-updated-unnoticed") {
  NightlyCluster w(4);
  const auto next_night = [&] {
    const int code = w.unit();
    w.reactor.advance(kDay);
    return code;
  };
  w.cluster.other_run = 99;  // an operator's, that never ends
  CHECK(next_night() == cli::kPartial);
  w.cluster.other_run = 0;
  for (const char* name : {"n0", "n1", "n2", "n3"}) w.cluster.refuse.insert(name);
  w.cluster.now.images["gpu"].digest = "newer";  // each night has a build of its own
  CHECK(next_night() == cli::kPartial);
  w.cluster.now.images["gpu"].digest = "newest";
  w.cluster.refuse.clear();
  for (const char* name : {"n0", "n1", "n2", "n3"})
    w.cluster.cannot_plan[name] = fail(Code::unavailable, "no worker");
  CHECK(next_night() == cli::kPartial);
  CHECK(w.status()["last_window"]["idle_windows"] == 3);
  CHECK(rollout_problem(*w.service->record()) != "");
  CHECK(w.cluster.runs.empty());
}

FIELD_CASE("start-tried-once: the nodes cannot be read yet") {
  NightlyCluster w(3);
  w.cluster.broken = fail(Code::unavailable, "the state of the nodes cannot be read");
  w.on_time = [&](DurationMs at) {
    if (at > 2 * kMinute) w.cluster.broken.reset();
    if (at > kHour && !w.cluster.runs.empty() && !w.run().over) w.end_run();
  };
  CHECK(w.unit() == cli::kAccepted);
  CHECK(w.cluster.runs.size() == 2);
}

FIELD_CASE("start-tried-once: last night's run of another build is still under way") {
  NightlyCluster w(8);
  REQUIRE(w.start().ok());
  w.reactor.advance(kDay);
  w.cluster.now.images["gpu"].digest = "newer";
  size_t after = 0;
  w.on_time = [&](DurationMs at) {
    if (at > kHour && at < kHour + kMinute && w.cluster.runs.size() == 1 && !w.run().over) w.end_run();
    if (at > 4 * kHour && !w.run().over) w.end_run();
    if (at < 6 * kHour) after = w.cluster.runs.size();
  };
  CHECK(w.unit() == cli::kAccepted);
  CHECK(w.opened - w.began > kHour);
  CHECK(w.cluster.runs.size() > 1);
  CHECK(w.cluster.runs.size() == after);  // nothing began later than six hours after 22:00
  CHECK(w.service->record()->window.length < 5 * kHour);
}

FIELD_CASE("start-tried-once: what an operator must end is not tried again") {
  NightlyCluster w(3);
  REQUIRE(w.start().ok());
  REQUIRE(w.pause().ok());
  w.end_run();
  w.reactor.advance(kDay);
  CHECK(w.unit() == cli::kRefused);
  CHECK(w.reactor.steady() - w.began < kMinute);
}
