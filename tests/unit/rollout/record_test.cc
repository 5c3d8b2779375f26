// What outlives an approval and a build: what rollouts did with nodes, held images, skips.
#include "controller/rollout/rollout_record.h"

#include "base/split.h"
#include "base/utf8.h"
#include "tests/catch.h"
#include "tests/unit/rollout/rollout_fixture.h"

using namespace muster;
using namespace muster::rollout;

namespace {

Approval approval_of(const std::string& digest) {
  Approval out;
  out.images["gpu"] = {digest, "recipe"};
  return out;
}

// After the run of one batch, each of whose nodes ended as `outcome`.
Record after_batch(Record record, View& view, Outcome outcome, int64_t run) {
  recall(view, record, 0);
  const Answer answer = next(view, *record.row);
  REQUIRE(answer.what == Do::run);
  record = with_batch(std::move(record), view, answer);
  record.row = with_run(*record.row, run).value();
  RunEnd end{run, 0, false, {}};
  for (const auto& [node, image] : record.row->batch->images) end.nodes[node] = {outcome, "as the test says"};
  return judged(std::move(record), end, 1000 + run).value();
}

Record started(const Record& record, const std::string& digest) {
  Record out = at_start(record, approval_of(digest), "t1");
  ++out.night;
  return out;
}

}  // namespace

TEST_CASE("rollout record: what a node went through outlives an approval and a build", "[rollout]") {
  View view = cluster(4, 1);
  Record record = started(approved({}, approval_of("new")), "new");
  record = after_batch(record, view, Outcome::jobs, 5);
  record = after_batch(record, view, Outcome::returned, 6);
  for (int i = 0; i < 2; ++i) {
    const Past& given_back = record.past.at("n00");
    CHECK(given_back.postponed == 1);
    CHECK(given_back.digest == "new");
    CHECK(given_back.before == "old");
    CHECK(given_back.run == 5);
    CHECK(given_back.time == 1005);
    CHECK(record.past.at("n01").failed == 1);
    CHECK(record.past.at("n01").reason == "as the test says");
    record = started(i == 0 ? approved(record, approval_of("new")) : record, "new");
    record = record_from_text(to_text(record)).value();
  }
  recall(view, record, 0);
  CHECK(view.nodes[1].failed_before);
  CHECK_FALSE(view.nodes[0].failed_before);
  CHECK(view.nodes[0].turn > view.nodes[2].turn);
  record = after_batch(record, view, Outcome::accepted, 7);  // n02
  CHECK(record.past.at("n02").failed == 0);
  CHECK(record.past.at("n02").accepted_in == record.id);
}

TEST_CASE("rollout record: memory ends when the node gets another image, by a rollout or by hand",
          "[rollout]") {
  View view = cluster(2, 1);
  view.nodes[1].has_bmc = false;
  Record record = started(approved({}, approval_of("new")), "new");
  record = after_batch(record, view, Outcome::returned, 5);
  record = started(approved(record, approval_of("new")), "new");
  recall(view, record, 0);
  CHECK(view.nodes[0].failed_before);
  CHECK(next(view, *record.row).what == Do::done);
  view.nodes[0].image_now = "by hand";
  view.nodes[0].state = NodeState::installing;  // not accepted yet
  recall(view, record, 0);
  CHECK(view.nodes[0].failed_before);
  view.nodes[0].state = NodeState::accepted;
  recall(view, record, 0);
  CHECK_FALSE(view.nodes[0].failed_before);
  record = after_batch(record, view, Outcome::returned, 6);
  CHECK(record.past.at("n00").failed == 1);  // counted from 0
}

TEST_CASE("rollout record: a refused node is remembered like one that was given back", "[rollout]") {
  View view = cluster(3, 1);
  Record record = started(approved({}, approval_of("new")), "new");
  record = refused_in(record, view, {{"n00", "trial-short"}}, 77);
  CHECK(record.row->postponed.at("n00").refused);
  CHECK(record.past.at("n00").postponed == 1);
  CHECK(record.past.at("n00").time == 77);
  recall(view, record, 0);
  CHECK(nodes_of(view, *record.row) == Places{1});
}

TEST_CASE("rollout record: a node that others took out has its turn in the next night at once", "[rollout]") {
  View view = cluster(4, 1);
  Record record = started(approved({}, approval_of("new")), "new");
  record = after_batch(record, view, Outcome::accepted, 5);  // the canary
  view.nodes[0].image_now = "new";
  const bool left = GENERATE(true, false);
  record = after_batch(record, view, left ? Outcome::left : Outcome::jobs, 6);
  CHECK(record.row->postponed.at("n01").reason == "as the test says");
  CHECK(record.row->postponed.at("n01").night == record.night);
  CHECK(record.past.at("n01").postponed == (left ? 0 : 1));
  recall(view, record, 0);
  CHECK(nodes_of(view, *record.row) == Places{2});  // not again in this window
  // The next night has new images, and a canary has proven them.
  ++record.night;
  for (Node& node : view.nodes) node.image_wanted = "newer";
  record = with_builds(record, record, {"gpu"}).value();
  record = after_builds(record, approval_of("newer"), "t2");
  view.target = "t2";
  record.row->proven["newer"] = 1;
  recall(view, record, 0);
  CHECK(nodes_of(view, *record.row) == Places{left ? 1u : 2u});
}

TEST_CASE("rollout record: a held image is held in its next build, and not after an approval", "[rollout]") {
  View view = cluster(3, 1);
  Record record = started(approved({}, approval_of("new")), "new");
  record = after_batch(record, view, Outcome::returned, 5);
  REQUIRE(held_images(record).count("gpu") == 1);
  const Record rebuilt = at_start(record, approval_of("newer"), "t2");
  CHECK(rebuilt.id == record.id + 1);
  CHECK(rebuilt.row->held.at("newer").node == "n00");
  CHECK(rebuilt.row->held.at("newer").digest == "new");
  CHECK(at_start(rebuilt, approval_of("newest"), "t3").row->held.count("newest") == 1);
  CHECK(started(approved(rebuilt, approval_of("newer")), "newer").row->held.empty());
}

TEST_CASE("rollout record: a canary that failed under an earlier version holds its image", "[rollout]") {
  Record record = approved({}, approval_of("new"));
  record.row = begun(1, "t1");
  record.row->failed["n00"] = {"panic", 5, true, true};
  record.row->stage = Stage::stopped;
  record.row->stop = StopReason::canary_failed;
  record.runs = {{1, 5, true, {{"n00", "new"}}}};
  const Record again = record_from_text(to_text(record)).value();
  CHECK(again.row->held.at("new").node == "n00");
  CHECK(held_images(again).count("gpu") == 1);
}

TEST_CASE("rollout record: reasons of any length that an earlier version kept are cut when they are read",
          "[rollout]") {
  const std::string whole(1 << 20, 'x');
  Record record = approved({}, approval_of("new"));
  record.row = begun(1, "t1");
  record.row->failed["n01"] = {whole, 5, false, true};
  record.row->held["new"] = {"n00", whole, "new", 5};
  record.returned["n02"] = {"old", whole};
  const Record again = record_from_text(to_text(record)).value();
  CHECK(again.row->failed.at("n01").reason.size() == kLongestReason);
  CHECK(again.row->held.at("new").reason.size() == kLongestReason);
  CHECK(again.returned.at("n02").reason.size() == kLongestReason);
}

TEST_CASE("rollout record: a node that went back is remembered until it succeeds, or an approval",
          "[rollout]") {
  View view = cluster(4, 1);
  Record record = started(approved({}, approval_of("new")), "new");
  record = after_batch(record, view, Outcome::accepted, 5);  // the canary
  view.nodes[0].image_now = "new";
  record = after_batch(record, view, Outcome::returned, 6);
  REQUIRE(returned_nodes(record).count("n01") == 1);
  record = with_builds(record, at_start(record, approval_of("new"), "t1"), {"gpu"}).value();
  CHECK(returned_nodes(record).at("n01").before == "old");
  record = after_builds(record, approval_of("newer"), "t2");
  record = record_from_text(to_text(record)).value();
  CHECK(record.row->failed.empty());  // it is tried again
  CHECK(returned_nodes(record).at("n01").reason == "as the test says");
  CHECK(returned_nodes(at_start(record, approval_of("newest"), "t3")).count("n01") == 1);
  Record succeeded = record;
  succeeded.row->done["n01"] = 7;
  CHECK(returned_nodes(succeeded).empty());
  CHECK(returned_nodes(started(approved(record, approval_of("newer")), "newer")).empty());
}

TEST_CASE("rollout record: a skip outlives a start", "[rollout]") {
  Record record = approved({}, approval_of("new"));
  record.skips["n00"] = {"demo", "ada", 5, 0};
  const Record started_one = started(record, "new");
  CHECK(started_one.id == record.id);
  CHECK(started_one.skips.count("n00") == 1);
  View view = cluster(2);
  recall(view, started_one, 6);
  CHECK(view.nodes[0].skipped);
  CHECK_FALSE(view.nodes[1].skipped);
}

TEST_CASE("rollout record: a night with a held image is partial, whatever else was updated", "[rollout]") {
  Record record = started(approved({}, approval_of("new")), "new");
  record.window.length = 1;
  record.window.first_batch = 1;
  record.runs = {{1, 5, false, {{"n02", "other"}}}};
  record.row->done["n02"] = 5;
  record.left["n01"] = "canary-failed: panic";
  record.left["n03"] = "jobs: job 12";
  CHECK(result_of(record, {}, 0).outcome == WindowOutcome::progress);
  record.row->held["new"] = {"n00", "panic", "new", 3};  // by an earlier build
  CHECK(result_of(record, {}, 0).outcome == WindowOutcome::partial);
}

TEST_CASE("rollout night: its line names failed nodes, images that were not built, and who approved it",
          "[rollout]") {
  Record record;
  record.id = 3;
  record.approval.by = "anna (sudo)";
  record.row = begun(3, "target");
  WindowResult last;
  last.rollout = 3;
  last.outcome = WindowOutcome::partial;
  last.why = "failed";
  last.ended = 50;
  last.failed = 2;
  last.unbuilt["gpu"] = "no mirror";
  record.last_window = last;
  const std::string line = window_line(record, kDay), problem = rollout_problem(record);
  CAPTURE(line, problem);
  for (const char* part : {"2 failed", "(gpu)", "anna (sudo)"}) CHECK(has(line, part));
  for (const char* part : {"(2)", "(gpu)"}) CHECK(has(problem, part));
  record.last_window->rollout = 2;  // another one was approved since
  CHECK_FALSE(has(window_line(record, kDay), "anna"));
}

TEST_CASE("rollout night: its line names a day without a window, where one is needed", "[rollout]") {
  const TimeMs opened = 100 * kDay, night = 8 * 60 * kMinute;
  Record record = started(approved({}, approval_of("new")), "new");
  record.approval.time = opened - 10 * kDay;
  record.window.opened = opened;
  record.window_until = opened + night;
  WindowResult last;
  last.rollout = record.id;
  last.opened = opened;
  last.ended = opened + night;
  record.last_window = last;
  const TimeMs morning = opened + 10 * 60 * kMinute, later = morning + kDay;
  const auto says = [&](TimeMs now) { return has(window_line(record, now), to_iso8601(opened)); };
  SECTION("nodes wait") {
    CHECK_FALSE(says(morning));
    CHECK(says(later));
  }
  SECTION("a window that is longer than a day is open") {
    record.window_until = opened + 3 * kDay;
    record.last_window.reset();
    CHECK(window_line(record, later).empty());
    CHECK(says(opened + 3 * kDay));
  }
  SECTION("all is done: nothing is missed, unless windows build images") {
    record.row->stage = Stage::done;
    CHECK(window_line(record, later).empty());
    record.approval.rebuild = Rebuild::daily;
    CHECK(says(later));
  }
  SECTION("an operator has stopped it") {
    record.row->paused = true;
    CHECK(window_line(record, later).empty());
  }
  SECTION("approved, and none was opened since") {
    record = approved(record, approval_of("newer"));
    record.approval.time = opened + kDay;
    CHECK(window_line(record, opened + 2 * kDay - 1).empty());
    CHECK(has(window_line(record, opened + 2 * kDay), to_iso8601(opened + kDay)));
  }
}
