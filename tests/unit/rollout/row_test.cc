// A rollout's row: what each event makes of it, and that it survives the store.
#include "controller/rollout/rollout_row.h"

#include "base/json_dump.h"
#include "controller/rollout/rollout_record.h"
#include "tests/catch.h"
#include "tests/unit/rollout/rollout_fixture.h"

using namespace muster;
using namespace muster::rollout;

namespace {
Row under_way(size_t nodes) {
  const View view = cluster(nodes);
  const Row row = proven_row();
  return with_batch(row, view, next(view, row));
}
}  // namespace

TEST_CASE("rollout row: a batch has one run", "[rollout]") {
  Row row = under_way(2);
  CHECK(row.batch->number == 1);
  CHECK(row.batch->images == std::map<std::string, std::string>{{"n00", "new"}, {"n01", "new"}});
  CHECK_FALSE(judged(row, {0, 1, false, {}}).ok());  // its run is not known
  row = with_run(row, 7).value();
  CHECK(with_run(row, 7).ok());
  CHECK(with_run(row, 8).error().code == Code::conflict);
  CHECK(without_batch(row).error().code == Code::conflict);
  CHECK(judged(row, {8, 1, false, {}}).error().code == Code::conflict);
  row = judged(row, {7, 1, false, {}}).value();
  CHECK(judged(row, {7, 1, false, {}}).error().code == Code::conflict);
  CHECK(with_run(row, 9).error().code == Code::conflict);
}

TEST_CASE("rollout row: a batch that never began leaves no trace but its number", "[rollout]") {
  const Row row = without_batch(under_way(2)).value();
  CHECK_FALSE(row.batch);
  CHECK(row.batches == 1);
  CHECK(row.failed.empty());
  CHECK(row.postponed.empty());
}

TEST_CASE("rollout row: each outcome is kept as what it is", "[rollout]") {
  const Row row = with_run(under_way(8), 5).value();
  const RunEnd end{5,
                   3,
                   false,
                   {{"n00", {Outcome::accepted, ""}},
                    {"n01", {Outcome::returned, "acceptance"}},
                    {"n02", {Outcome::quarantined, "silent"}},
                    {"n03", {Outcome::held, "under repair"}},
                    {"n04", {Outcome::jobs, "job 12"}},
                    {"n05", {Outcome::not_begun, ""}},
                    {"n07", {Outcome::left, "drained by ann"}}}};
  const Row after = judged(row, end).value();
  CHECK(after.done == std::map<std::string, int64_t>{{"n00", 5}});
  CHECK(after.failed.size() == 3);  // with n06, of which the run says nothing
  CHECK(after.failed.at("n01").returned);
  CHECK_FALSE(after.failed.at("n02").returned);
  CHECK_FALSE(after.failed.at("n06").returned);
  REQUIRE(after.postponed.size() == 2);
  CHECK(after.postponed.at("n07").night == 3);
  CHECK(after.postponed.at("n04").night == 3);
  CHECK(after.postponed.at("n04").times == 1);
  CHECK_FALSE(after.paused);
  CHECK(after.proven == row.proven);  // no canaries
}

TEST_CASE("rollout row: canaries prove the image that they got", "[rollout]") {
  View view = cluster(3);
  view.policy.canary = 2;
  view.nodes[2].image_wanted = "other";
  Row row = begun(1, "t1");
  row = after_run(with_batch(row, view, next(view, row)), Outcome::accepted, 7);
  CHECK(row.proven == std::map<std::string, int>{{"new", 2}, {"other", 1}});
}

TEST_CASE("rollout row: a cancelled run pauses the rollout, and its nodes wait for a night", "[rollout]") {
  Row row = with_run(under_way(1), 5).value();
  row = judged(row, {5, 2, true, {{"n00", {Outcome::unfinished, "cancelled"}}}}).value();
  CHECK(row.paused);
  CHECK(row.failed.empty());
  CHECK(row.postponed.at("n00").cancelled);
}

TEST_CASE("rollout row: started again it keeps its counts, its pause and its stop", "[rollout]") {
  Row row = proven_row();
  row.failed["n00"] = {"x", 1, false, true};
  row.paused = true;
  row.stage = Stage::done;
  const Row again = started_again(row, "t1").value();
  CHECK(again.stage == Stage::batches);
  CHECK(again.failed.size() == 1);
  CHECK(again.paused);
  CHECK(started_again(row, "t2").error().code == Code::conflict);
  row.stage = Stage::stopped;
  row.stop = StopReason::budget;
  CHECK(started_again(row, "t1").error().code == Code::conflict);
  row.stop = StopReason::canary_failed;
  row.held["new"] = {"n00", "panic", "new", 3};
  const Row other_images = started_again(row, "t1").value();
  CHECK(other_images.stage == Stage::batches);
  CHECK(other_images.stop == StopReason::none);
  CHECK(other_images.held.count("new") == 1);
}

TEST_CASE("rollout row: an answer sets the stage", "[rollout]") {
  const View view = cluster(3);
  const Row row = begun(1, "t1");
  CHECK(with_answer(proven_row(), next(view, row)).stage == Stage::canary);
  CHECK(with_answer(row, next(view, proven_row())).stage == Stage::batches);
  Answer a;
  a.what = Do::stop;
  a.stop = StopReason::budget;
  CHECK(with_answer(row, a).stage == Stage::stopped);
  CHECK(with_answer(row, a).stop == StopReason::budget);
  a.what = Do::done;
  CHECK(with_answer(row, a).stage == Stage::done);
}

TEST_CASE("rollout row: the store gives back what it was given", "[rollout]") {
  Row row = with_run(under_way(2), 9).value();
  row.failed["n05"] = {"acceptance \"gpu\"", 4, true, true};
  row.postponed["n06"] = {"job 12", 4, 2, 3, true};
  row.done["n07"] = 4;
  row.held["new"] = {"n05", "acceptance", "newer", 4};
  row.stage = Stage::stopped;
  row.stop = StopReason::canary_failed;
  row.paused = row.batch->canary = true;
  const std::string text = to_text(row);
  const Row again = row_from_text(text).value();
  CHECK(to_text(again) == text);
  CHECK(again.paused);
  CHECK(again.stage == Stage::stopped);
  CHECK(again.target == "t1");
  CHECK(again.batches == 1);
  CHECK(again.proven == row.proven);
  CHECK(again.done == row.done);
  CHECK(again.batch->number == 1);
  CHECK(again.batch->canary);
  CHECK(again.batch->run == 9);
  CHECK(again.batch->images == row.batch->images);
  CHECK(again.failed.at("n05").canary);
  CHECK(again.postponed.at("n06").times == 3);
  CHECK(again.held.at("new").digest == "newer");
  CHECK(again.stop == StopReason::canary_failed);
  CHECK(to_text(row_from_text(to_text(begun(3, "t"))).value()) == to_text(begun(3, "t")));
}

TEST_CASE("rollout row: an unreadable text is reported with all of its problems", "[rollout]") {
  Row row = begun(3, "t");
  row.failed["gpu01"] = {"too slow", 11, false, false};
  Json json = parse_json(to_text(row)).value();
  json.erase("id");
  json["failed"]["gpu01"]["run"] = nullptr;
  json["failed"]["gpu02"] = 5;
  json["stage"] = "resting";
  json["postponed"] = Json::array();
  const std::string message = row_from_text(dump_json(json)).error().message;
  for (const char* problem : {"rollout.id: missing", "rollout.failed.gpu01.run: wrong type (null)",
                              "rollout.failed.gpu02: expected", "rollout.stage: unknown word 'resting'",
                              "rollout.postponed: wrong type (array)"}) {
    INFO(message);
    CHECK(message.find(problem) != std::string::npos);
  }
}

TEST_CASE("rollout row: what a later version wrote is not half understood", "[rollout]") {
  const std::string text = to_text(begun(3, "t"));
  CHECK(row_from_text("{").error().code == Code::corrupt);
  CHECK(row_from_text("{}").error().code == Code::corrupt);
  std::string stage = text;
  stage.replace(stage.find("\"canary\""), 8, "\"resting\"");
  CHECK(row_from_text(stage).error().code == Code::corrupt);
  CHECK(row_from_text(text.substr(0, text.size() - 1) + ",\"more\":1}").error().code == Code::corrupt);
}
