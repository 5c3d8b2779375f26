// Rollouts over the API: what is shown of a stored one, and requests that an operator makes.
#include "controller/rollout/rollout_record.h"
#include "tests/fakes/muster_command.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Listener;
using muster::testing::muster_command;
using testing::Controller;

namespace {

// A controller that finds this record when it starts.
struct WithRollout : Controller {
  explicit WithRollout(const rollout::Record& record) {
    std::promise<bool> written;
    on_reactor([&] {
      services().store.write({RolloutRow{record.id, 1, to_text(record)}},
                             [&](Status done) { written.set_value(done.ok()); });
    });
    REQUIRE(written.get_future().get());
    restart();
    open();
  }
  testing::Ran muster(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--socket", socket()});
    return muster_command(arguments);
  }
};

rollout::Record record_with(rollout::WindowOutcome outcome) {
  rollout::Record record;
  record.id = 3;
  record.night = 4;
  record.row = rollout::begun(3, "target");
  record.window = {1'700'000'000'000, 6 * 60 * kMinute, {"an earlier boot", 5}, 0, 1};
  record.window_until = end_of(record.window);
  record.last_window = {3, 4, outcome, "nodes", "3 unavailable (n0)", 1'700'000'000'000, 1'700'021'600'000};
  record.last_window->idle_before = 2;
  record.last_window->left["unavailable"] = 3;
  record.skips["n1"] = {"demo", "ada", 5, 0};
  return record;
}

}  // namespace

TEST_CASE("api: what came of a rollout's last window is in its status, and in that of the cluster",
          "[api][rollout]") {
  for (const bool idle : {true, false}) {
    WithRollout c(record_with(idle ? rollout::WindowOutcome::nothing : rollout::WindowOutcome::done));
    const Json shown = c.get("/v1/rollout");
    CHECK(shown["window_open"] == false);
    CHECK(shown["last_window"]["outcome"] == (idle ? "nothing" : "done"));
    CHECK(shown["last_window"]["idle_windows"] == (idle ? 3 : 0));
    CHECK(shown["last_window"]["left"] == Json({{"unavailable", 3}}));
    CHECK(shown["skips"][0]["reason"] == "demo");
    CHECK(c.get("/v1/status")["problems"].contains("rollout") == idle);
    const auto ran = c.muster({"rollout", "status"});
    CHECK(ran.exit == 0);
    CHECK(ran.out.find("3 unavailable (n0)") != std::string::npos);
    CHECK(ran.out.find("demo") != std::string::npos);
    CHECK((c.muster({"status"}).out.find("! rollout") != std::string::npos) == idle);
  }
}

TEST_CASE("api: an image that a night did not build is in the rollout's status, and in that of the cluster",
          "[api][rollout]") {
  rollout::Record record = record_with(rollout::WindowOutcome::nothing);
  record.last_window->unbuilt["gpu"] = "the mirror does not answer";
  record.last_window->building = 24 * kMinute;
  record.window.builds["gpu"] = {3, 1'700'000'000'000, 1'700'001'440'000, "the mirror does not answer"};
  WithRollout c(record);
  const Json shown = c.get("/v1/rollout");
  CHECK(shown["last_window"]["unbuilt"] == Json({{"gpu", "the mirror does not answer"}}));
  CHECK(shown["last_window"]["building_ms"] == 24 * kMinute);
  CHECK(shown["preparing"] == false);
  CHECK(shown["builds"][0]["image"] == "gpu");
  CHECK(shown["builds"][0]["tries"] == 3);
  CHECK(c.get("/v1/status")["problems"].contains("rollout"));
  CHECK(c.muster({"rollout", "status"}).out.find("the mirror does not answer") != std::string::npos);
}

TEST_CASE("api: a node is skipped and taken in again, and a start is refused with its code",
          "[api][rollout]") {
  WithRollout c(record_with(rollout::WindowOutcome::done));
  CHECK(c.muster({"rollout", "unskip", "n2"}).exit == 2);
  REQUIRE(c.muster({"rollout", "unskip", "n1"}).exit == 0);
  CHECK(c.get("/v1/rollout")["skips"].empty());
  CHECK(c.muster({"rollout", "skip", "n1", "--reason", "demo"}).exit == 2);  // no spec declares it
  CHECK(c.muster({"rollout", "skip", "n1", "--reason", "x", "--until", "2001-01-01"}).exit == 2);
  CHECK(c.call(Listener::local, "POST", "/v1/rollout/skip", "no json").status == 422);
  CHECK(c.muster({"rollout", "start", "--wait"}).exit == 2);  // the same
  CHECK(c.call(Listener::local, "POST", "/v1/rollout/start", R"({"late_ms": 5, "by_timer": true})").status ==
        404);
  Controller empty;
  CHECK(empty.call(Listener::local, "POST", "/v1/rollout/skip", R"({"node": "n1", "reason": "x"})").status ==
        409);
  CHECK(empty.get("/v1/rollout")["state"] == "none");
}
