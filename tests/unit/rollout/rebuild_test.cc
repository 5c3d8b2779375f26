// Which images a night builds again, and the record of such a night.
#include "controller/rollout/rebuild.h"

#include "controller/rollout/rollout_record.h"
#include "tests/catch.h"
#include "tests/unit/rollout/rollout_fixture.h"

using namespace muster;
using namespace muster::rollout;

namespace {

constexpr TimeMs kTonight = 1'700'000'000'000;
constexpr DurationMs kAnHour = 60 * kMinute, kADay = 24 * kAnHour;

Record night_before() {
  Record record;
  record.id = 4;
  record.night = 7;
  record.approval.images["gpu"] = {"gpu1", "recipe"};
  record.row = begun(4, "target");
  record.row->proven["gpu1"] = 1;
  record.row->batches = 3;
  record.images["gpu"] = "gpu1";
  record.runs.push_back({3, 9, false, {{"n1", "gpu1"}}});
  record.before["n1"] = "gpu0";
  record.started = 5;
  return record;
}

Record opened_record() {
  Record record = night_before();
  ++record.night;
  record.window = {kTonight, 6 * kAnHour, {"boot", 5}, 0, 4};
  return record;
}

Approval approved_now(const std::string& digest) {
  Approval now;
  now.images["gpu"] = {digest, "recipe"};
  return now;
}

}  // namespace

TEST_CASE("rebuild: an image is due from its age on, half a day early, and where that is unknown",
          "[rollout]") {
  const auto due = [](Rebuild rebuild, DurationMs age) { return is_due(rebuild, kTonight - age, kTonight); };
  for (const DurationMs age : {DurationMs{0}, kADay, 100 * kADay}) CHECK_FALSE(due(Rebuild::never, age));
  CHECK_FALSE(is_due(Rebuild::never, 0, kTonight));
  CHECK_FALSE(due(Rebuild::daily, 11 * kAnHour));
  CHECK(due(Rebuild::daily, 13 * kAnHour));
  CHECK_FALSE(due(Rebuild::weekly, 6 * kADay));
  CHECK(due(Rebuild::weekly, 7 * kADay - kAnHour));
  for (const Rebuild rebuild : {Rebuild::daily, Rebuild::weekly}) {
    CHECK(is_due(rebuild, 0, kTonight));
    CHECK(due(rebuild, -kAnHour));  // by a clock that was wrong
  }
  CHECK(due_images(Rebuild::daily, {{"a", 0}, {"b", kTonight - kAnHour}, {"c", kTonight - kADay}},
                   kTonight) == std::vector<std::string>{"a", "c"});
}

TEST_CASE("rebuild: builds are made in the order of their names until each has ended", "[rollout]") {
  Builds builds = {{"a", {1, 5, 6, ""}}, {"b", {1, 7, 0, "x"}}, {"c", {}}};
  CHECK(next_build(builds) == "b");
  builds["b"].ended = 8;
  CHECK(next_build(builds) == "c");
  builds["c"].ended = 9;
  CHECK_FALSE(next_build(builds));
}

TEST_CASE("rebuild: a night that builds is a record of its own, in which nothing begins before",
          "[rollout]") {
  const Record next = with_builds(night_before(), opened_record(), {"gpu"}).value();
  CHECK(next.id == 5);
  CHECK(next.row->id == 5);
  CHECK(next.night == 8);
  CHECK(next.started == kTonight);
  CHECK(next.runs.empty());
  CHECK(next.before.empty());
  CHECK(next.window.preparing);
  CHECK(next_build(next.window.builds) == "gpu");
  CHECK(to_text(record_from_text(to_text(next)).value()) == to_text(next));

  Record approval_only = night_before();
  approval_only.row.reset();
  CHECK(with_builds(approval_only, opened_record(), {"gpu"}).value().id == 4);
  Record busy = night_before();
  busy.row->batch = Underway{4, 10, false, {{"n2", "gpu1"}}};
  CHECK(with_builds(busy, opened_record(), {"gpu"}).error().code == Code::conflict);
}

TEST_CASE("rebuild: behind the builds a new image begins from its canary, and the present one goes on",
          "[rollout]") {
  Record built = with_builds(night_before(), opened_record(), {"gpu"}).value();
  built.row->paused = true;
  built.row->held["gpu1"] = {"n1", "panic", "gpu1", 9};
  const Record same = after_builds(built, approved_now("gpu1"), "target");
  CHECK_FALSE(same.window.preparing);
  CHECK(same.row->proven == built.row->proven);
  CHECK(same.window.first_batch == 4);
  const Record other = after_builds(built, approved_now("gpu2"), "another target");
  CHECK_FALSE(other.window.preparing);
  CHECK(other.row->id == 5);
  CHECK(other.row->target == "another target");
  CHECK(other.row->proven.empty());
  CHECK(other.row->paused);
  CHECK(other.row->held.count("gpu2") == 1);
  CHECK(other.images.at("gpu") == "gpu2");
  CHECK(other.window.first_batch == 1);
}
