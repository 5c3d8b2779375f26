// Nights that build their images first: when, what if a build fails, is lost or takes too long, and a
// controller that is killed in one.
#include "tests/unit/bringup/rollout_service_fixture.h"

using namespace muster;
using namespace muster::rollout;
using namespace muster::rollout::service_test;

namespace {

constexpr DurationMs kOneHour = 60 * kMinute, kOneDay = 24 * kOneHour;

// Images are built daily; the one that was approved is a day old.
struct Nightly : World {
  explicit Nightly(size_t nodes) : World(nodes) {
    cluster.spec.rebuild = cluster.now.rebuild = Rebuild::daily;
    cluster.now.rebuilt_images = true;
    cluster.built_at["gpu"] = reactor.now() - kOneDay;
    REQUIRE(approve().ok());
  }
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
  void tries_pass() { reactor.advance((kBuildTries - 1) * (kBuildAgain + 2 * RolloutService::kAgain)); }
};

const Error kMirrorDown = fail(Code::failed, "the mirror does not answer");

}  // namespace

TEST_CASE("rollout builds: each night builds its images, and all nodes get them", "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  CHECK(w.start().value()["preparing"] == true);
  CHECK(w.cluster.builds == Names{"gpu"});
  CHECK(w.status()["waits_for"] == "images");
  CHECK(w.status()["builds"][0]["tries"] == 1);
  w.reactor.advance(30 * kMinute);
  CHECK(w.cluster.runs.empty());
  w.end_build();
  CHECK(w.status()["preparing"] == false);
  CHECK(w.run().nodes == Names{"n0"});
  const Json night = w.night_is_over();
  CHECK(night["outcome"] == "done");
  CHECK(night["updated"] == 3);
  CHECK(night["building_ms"].get<DurationMs>() >= 30 * kMinute);
  CHECK(night["unbuilt"].empty());
  w.cluster.hold_build = false;
  for (int nights = 2; nights <= 4; ++nights) {
    w.reactor.advance(kOneDay - w.cluster.spec.window - kOneHour);
    CHECK(w.night()["outcome"] == "done");
    CHECK(w.cluster.builds.size() == static_cast<size_t>(nights));
    for (const auto& [node, times] : w.cluster.taken) CHECK(times == nights);
    CHECK(w.service->record()->id == nights);  // each with a report of its own
  }
  CHECK(record_from_text(w.store.rollout(2)->text)->row->stage == Stage::done);
}

TEST_CASE("rollout builds: the window ends when it was to end, whatever its builds take",
          "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  const auto until = w.start().value()["window_until"].get<TimeMs>();
  w.reactor.advance(2 * kOneHour);
  w.end_build();
  CHECK(w.status()["window_until"] == until);
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout builds: one that fails is tried again, and then the night goes on with the present image",
          "[rollout][service]") {
  Nightly w(3);
  w.cluster.build_fails.assign(static_cast<size_t>(kBuildTries), kMirrorDown);
  REQUIRE(w.start().ok());
  CHECK(w.cluster.builds.size() == 1);
  CHECK(w.status()["builds"][0]["error"] == kMirrorDown.message);
  CHECK(unbuilt_images(*w.service->record()).empty());
  w.tries_pass();
  CHECK(unbuilt_images(*w.service->record()).at("gpu").why == kMirrorDown.message);
  CHECK(w.cluster.builds.size() == static_cast<size_t>(kBuildTries));
  CHECK(w.run().nodes == Names{"n0"});
  CHECK(w.service->record()->row->batch->images.at("n0") == "new");
  const Json night = w.night_is_over();
  CHECK(night["updated"] == 3);
  CHECK(night["outcome"] == "partial");
  CHECK(night["why"] == "images");
  CHECK(night["unbuilt"] == Json({{"gpu", kMirrorDown.message}}));
  CHECK(unbuilt_images(*w.service->record()).count("gpu") == 1);
  CHECK(rollout_problem(*w.service->record()) != "");
  w.reactor.advance(kOneDay - w.cluster.spec.window - kOneHour);
  CHECK(w.night()["outcome"] == "done");  // of the next night
  CHECK(unbuilt_images(*w.service->record()).empty());
  CHECK(rollout_problem(*w.service->record()) == "");
}

TEST_CASE("rollout builds: a second try that succeeds leaves nothing to tell", "[rollout][service]") {
  Nightly w(3);
  w.cluster.build_fails = {kMirrorDown};
  REQUIRE(w.start().ok());
  w.tries_pass();
  CHECK(w.cluster.builds.size() == 2);
  const Json night = w.night_is_over();
  CHECK(night["outcome"] == "done");
  CHECK(night["unbuilt"].empty());
}

TEST_CASE("rollout builds: what no second try can change is not tried again", "[rollout][service]") {
  Nightly w(3);
  w.cluster.build_fails = {fail(Code::invalid, "the recipe has no such kernel")};
  REQUIRE(w.start().ok());
  w.tries_pass();
  CHECK(w.cluster.builds.size() == 1);
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout builds: behind a failed build the rollout goes on where it was", "[rollout][service]") {
  Nightly w(5);
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n0"});
  w.reactor.advance(w.cluster.spec.window);
  w.end_run();
  CHECK(w.cluster.runs.size() == 1);
  w.reactor.advance(kOneDay - w.cluster.spec.window);
  w.cluster.build_fails = {fail(Code::invalid, "x")};
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1", "n2"});  // the image was proven in the night before
  CHECK(w.service->record()->id == 2);
  const Record first = record_from_text(w.store.rollout(1)->text).value();
  CHECK(first.runs.size() == 1);
  CHECK(first.row->stop == StopReason::replaced);
  w.end_run();
  CHECK(w.night_is_over()["updated"] == 4);
}

TEST_CASE("rollout builds: images are built one after the other, and one that fails keeps no other",
          "[rollout][service]") {
  Nightly w(2);
  w.cluster.now.images["cpu"] = {"cpu0", "recipe2"};
  w.cluster.built_at["cpu"] = 0;
  REQUIRE(w.approve().ok());
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  CHECK(w.cluster.builds == Names{"cpu"});
  w.end_build(fail(Code::invalid, "x"));
  CHECK(w.cluster.builds == Names{"cpu", "gpu"});
  CHECK(w.cluster.runs.empty());
  w.end_build();
  CHECK(w.cluster.runs.size() == 1);
  CHECK(w.service->record()->images.at("cpu") == "cpu0");
  CHECK(w.service->record()->images.at("gpu") == "gpu build 2");
}

TEST_CASE("rollout builds: a second start builds nothing, in the window or behind it", "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  const Json again = w.start().value();
  CHECK(again["begun"] == false);
  CHECK(again["night"] == 1);
  CHECK(w.cluster.builds.size() == 1);
  w.end_build();
  CHECK(w.start().value()["begun"] == false);
  w.night_is_over();
  const Json another = w.start().value();
  CHECK(another["begun"] == true);
  CHECK(another["preparing"] == false);
  CHECK(w.cluster.builds.size() == 1);
}

TEST_CASE("rollout builds: a start while one of two images is new joins the night", "[rollout][service]") {
  Nightly w(2);
  w.cluster.now.images["cpu"] = {"cpu0", "recipe2"};
  w.cluster.built_at["cpu"] = 0;
  REQUIRE(w.approve().ok());
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  w.end_build();
  CHECK(w.start().value()["begun"] == false);
  CHECK(w.service->record()->night == 1);
  CHECK(w.cluster.builds == Names{"cpu", "gpu"});
}

TEST_CASE("rollout builds: one that ended while its controller was killed is not built again",
          "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  w.cluster.built("gpu");
  w.kill();
  CHECK(w.cluster.builds.size() == 1);
  CHECK(w.run().nodes == Names{"n0"});
  CHECK(w.service->record()->row->batch->images.at("n0") == "gpu build 1");
}

TEST_CASE("rollout builds: a controller that is killed in a build begins it again, but not for ever",
          "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  for (int64_t tries = 2; tries <= kBuildTries; ++tries) {
    w.kill();
    CHECK(w.cluster.builds.size() == static_cast<size_t>(tries));
    CHECK(w.status()["builds"][0]["tries"] == tries);
    CHECK(w.status()["preparing"] == true);
  }
  w.kill();
  CHECK(w.cluster.builds.size() == static_cast<size_t>(kBuildTries));
  CHECK(w.run().nodes == Names{"n0"});
  CHECK(w.night_is_over()["why"] == "images");
}

TEST_CASE("rollout builds: killed at any point, each node gets the new image once", "[rollout][service]") {
  for (const auto unsynced : {MemStore::Unsynced::lost, MemStore::Unsynced::kept})
    for (int at = 0; at < 60; ++at) {
      INFO("killed after " << at << " tasks");
      Nightly w(3);
      w.service->start({}, [](Result<Json>) {});
      for (int i = 0; i < at && w.reactor.step(w.reactor.steady().ms + 50); ++i)
        if (!w.cluster.runs.empty() && !w.run().over && i % 3 == 2) {
          w.cluster.end_run();
          w.service->poke();
        }
      w.kill(unsynced);
      for (int i = 0; i < 20 && w.state() != "done"; ++i) {
        (void)w.start();  // it may not have been durable
        if (!w.cluster.runs.empty() && !w.run().over) w.end_run();
        w.reactor.advance(RolloutService::kAgain + 1000);
      }
      CHECK(w.state() == "done");
      CHECK(w.cluster.builds.size() == 1);
      for (const auto& [node, times] : w.cluster.taken) CHECK(times == 1);
    }
}

TEST_CASE("rollout builds: a window that is over before its images are built is a night with that reason",
          "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  w.reactor.advance(w.cluster.spec.window + 2 * RolloutService::kAgain);
  const Json night = w.status()["last_window"];
  CHECK(night["outcome"] == "nothing");
  CHECK(night["why"] == "images");
  CHECK(night["unbuilt"].contains("gpu"));
  CHECK(w.status()["waits_for"] == "window");
  w.end_build();
  w.reactor.advance(kOneHour);
  CHECK(w.cluster.runs.empty());
  CHECK(w.status()["last_window"] == night);  // noted once
  CHECK(w.start().value()["preparing"] == false);
  CHECK(w.run().nodes == Names{"n0"});
  CHECK(w.cluster.builds.size() == 1);
}

TEST_CASE("rollout builds: no build begins behind the window", "[rollout][service]") {
  Nightly w(2);
  w.cluster.now.images["cpu"] = {"cpu0", "recipe2"};
  w.cluster.built_at["cpu"] = 0;
  REQUIRE(w.approve().ok());
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  w.reactor.advance(w.cluster.spec.window + kOneHour);
  w.end_build();
  w.reactor.advance(kOneHour);
  CHECK(w.cluster.builds == Names{"cpu"});
}

TEST_CASE("rollout builds: a pause holds the batches behind them", "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  REQUIRE(w.pause().ok());
  w.end_build();
  w.reactor.advance(kOneHour);
  CHECK(w.cluster.runs.empty());
  CHECK(w.state() == "paused");
  REQUIRE(w.resume().ok());
  CHECK(w.run().nodes == Names{"n0"});
}

TEST_CASE("rollout builds: an approval in between ends the night", "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  REQUIRE(w.approve().ok());
  w.end_build();
  w.reactor.advance(kOneHour);
  CHECK(w.state() == "approved");
  CHECK(w.cluster.runs.empty());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.builds.size() == 1);  // the image is new
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout builds: one that the approval does not cover stops the rollout", "[rollout][service]") {
  Nightly w(3);
  w.cluster.hold_build = true;
  REQUIRE(w.start().ok());
  w.cluster.now.images["gpu"].built_from = "another version's playbooks";
  w.end_build();
  CHECK(w.state() == "stopped");
  CHECK(w.status()["stop"] == "target-changed");
  CHECK(w.status()["last_window"]["outcome"] == "stopped");
  CHECK(w.cluster.runs.empty());
  CHECK(code_of(w.start()) == Code::denied);
}

TEST_CASE("rollout builds: nothing is built while a batch is under way, or where all is held",
          "[rollout][service]") {
  Nightly w(3);
  REQUIRE(w.start().ok());
  w.reactor.advance(kOneDay);
  CHECK(code_of(w.start()) == Code::conflict);
  CHECK(w.cluster.builds.size() == 1);
  w.cluster.outcome["n0"] = {Outcome::returned, "panic"};
  w.end_run();
  CHECK(w.state() == "stopped");
  CHECK(code_of(w.start()) == Code::denied);
  CHECK(w.cluster.builds.size() == 1);
}

TEST_CASE("rollout builds: weekly, by the age of the image", "[rollout][service]") {
  Nightly w(2);
  w.cluster.spec.rebuild = w.cluster.now.rebuild = Rebuild::weekly;
  w.cluster.built_at["gpu"] = w.reactor.now();
  REQUIRE(w.approve().ok());
  for (int day = 0; day < 15; ++day) {
    w.night();
    w.reactor.advance(kOneDay - w.cluster.spec.window - kOneHour);
  }
  CHECK(w.cluster.builds.size() == 2);
}

TEST_CASE("rollout builds: none without `rebuild`, however old the image is", "[rollout][service]") {
  Nightly w(2);
  w.cluster.spec.rebuild = w.cluster.now.rebuild = Rebuild::never;
  w.cluster.built_at["gpu"] = 0;
  REQUIRE(w.approve().ok());
  CHECK(w.night()["outcome"] == "done");
  CHECK(w.cluster.builds.empty());
}
