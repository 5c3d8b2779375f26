#include "controller/run/recovery.h"

#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

using testing::action;
using Stage = NodeRun::Stage;

JournalRow row(const std::string& action, const std::string& event, int attempt, Json data = Json::object()) {
  JournalRow made;
  made.run = 1;
  made.action = action;
  made.node = "n1";
  made.attempt = attempt;
  made.event = event;
  made.time = 1000 + attempt;
  made.data = std::move(data);
  return made;
}

}  // namespace

TEST_CASE("a node goes on behind what its journal says it proved", "[run]") {
  const Action first = action("n1", "first", ActionKind::steps),
               second = action("n1", "second", ActionKind::check);
  const auto recovery = recover(
      RunRow{}, {row("n1/first", "intent", 1), row("n1/first", "succeeded", 1), row("n1/second", "intent", 1),
                 row("n1/second", "failed", 1, {{"excused", "n2 was away"}, {"excused_by", "n2"}}),
                 row("n1/second", "intent", 2)});
  REQUIRE(recovery.ok());
  CHECK(recovery->last_sign == 1002);
  NodeRun node;
  node.name = "n1";
  node.actions = {&first, &second};
  restore(node, *recovery, {});
  CHECK(node.index == 1);
  CHECK(node.begun);
  CHECK(node.stage == Stage::pending);
  CHECK(node.verdicts.excused == std::map<std::string, int>{{"n2", 1}});
  CHECK(recovery->log.of("n1/second").attempt == 2);
}

TEST_CASE("a node that was out stays out, for the reason it had", "[run]") {
  for (const auto& [event, stage] : std::map<std::string, Stage>{{"quarantined", Stage::quarantined},
                                                                 {"not_started", Stage::not_started}}) {
    JournalRow out = row("", event, 0, {{"reason", "its power supply smokes"}});
    const auto recovery = recover(RunRow{}, {out, row("n1/first", "step", 1, {{"step", "late"}})});
    REQUIRE(recovery.ok());
    NodeRun node;
    node.name = "n1";
    restore(node, *recovery, {});
    CHECK(node.stage == stage);
    CHECK(node.reason == "its power supply smokes");
  }
}

TEST_CASE("a journal that contradicts itself is not gone on from", "[run]") {
  const auto recovery = recover(RunRow{}, {row("n1/first", "succeeded", 1)});
  REQUIRE_FALSE(recovery.ok());
  CHECK(recovery.error().code == Code::corrupt);
}

TEST_CASE("a run is taken up within its time, by whichever way the clock was set", "[run]") {
  const ExecutorTiming timing;
  const TimeMs sign = 1'700'000'000'000;
  CHECK(abandoned(sign, sign, timing).empty());
  CHECK(abandoned(sign, sign + timing.abandoned_after, timing).empty());
  CHECK(abandoned(sign, sign - timing.abandoned_after, timing).empty());
  CHECK_FALSE(abandoned(sign, sign + timing.abandoned_after + 1, timing).empty());
  CHECK_FALSE(abandoned(sign, sign - timing.abandoned_after - 1, timing).empty());
}

TEST_CASE("a node on its way back, or back, is so after a restart of the controller", "[run][slot]") {
  const Action first = action("n1", "first", ActionKind::steps),
               back = action("n1", "return", ActionKind::return_slot),
               resume = action("n1", "resume-old", ActionKind::steps);
  std::vector<JournalRow> rows = {row("n1/first", "intent", 1), row("n1/first", "failed", 1),
                                  row("n1/first", "abandoned", 1),
                                  row("", "returning", 0, {{"reason", "too slow"}, {"action", "n1/first"}})};
  const auto restored = [&] {
    const auto recovery = recover(RunRow{}, rows);
    REQUIRE(recovery.ok());
    NodeRun node;
    node.name = "n1";
    node.actions = {&first};
    node.rescue = {&back, &resume};
    restore(node, *recovery, {});
    return node;
  };
  NodeRun node = restored();
  CHECK(node.returning);
  CHECK(node.stage == Stage::pending);
  CHECK(node.action().id == "n1/return");
  CHECK(node.reason == "too slow");
  CHECK(node.failed_action == "n1/first");
  rows.push_back(row("n1/return", "intent", 1));
  rows.push_back(row("n1/return", "succeeded", 1));
  node = restored();
  CHECK(node.action().id == "n1/resume-old");
  std::vector<JournalRow> failed = rows;
  rows.push_back(row("n1/resume-old", "intent", 1));
  rows.push_back(row("n1/resume-old", "succeeded", 1));
  rows.push_back(
      row("", "returned", 0, {{"reason", "returned to slot a: too slow"}, {"action", "n1/first"}}));
  node = restored();
  CHECK(node.returned());
  CHECK(node.reason == "returned to slot a: too slow");
  rows = failed;
  rows.push_back(row("", "quarantined", 0, {{"reason", "both"}, {"action", "n1/resume-old"}}));
  node = restored();
  CHECK(node.stage == Stage::quarantined);
  CHECK_FALSE(node.returned());
}
