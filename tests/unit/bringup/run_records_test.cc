#include "controller/bringup/run_records.h"

#include "tests/catch.h"

using namespace muster;

namespace {

Action action(const std::string& node, const std::string& name, const std::string& phase) {
  Action a;
  a.id = node + "/" + name;
  a.node = NodeName(node);
  a.phase = phase;
  return a;
}

JournalRow row(const std::string& node, const std::string& name, const std::string& event, TimeMs time,
               Json data = Json::object()) {
  JournalRow out;
  out.node = NodeName(node);
  out.action = name.empty() ? "" : node + "/" + name;
  out.event = event;
  out.attempt = name.empty() ? 0 : 1;
  out.time = time;
  out.data = std::move(data);
  return out;
}

// Its actions, not grouped by node.
Plan plan() {
  Plan out;
  out.nodes = {"n1", "n2"};
  out.actions = {action("n1", "image", "image"), action("n2", "image", "image"),
                 action("n1", "a", "configure"), action("n1", "b", "configure"),
                 action("n2", "a", "configure")};
  return out;
}

}  // namespace

TEST_CASE("run records: what is given up before it began took no time, and not that since 1970",
          "[bringup]") {
  const Plan of = plan();
  JournalRow given_up = row("n2", "image", "abandoned", 50);
  given_up.attempt = 0;
  const auto records = RunRecords::of(of, {given_up});
  REQUIRE(records.ok());
  REQUIRE(records->phases("n2").size() == 1);
  CHECK(records->phases("n2")[0].outcome == "failed");
  CHECK(records->phases("n2")[0].start == 50);
  CHECK(records->phases("n2")[0].end == 50);
}

TEST_CASE("run records: phases of each node in order, with their beginning, end and outcome", "[bringup]") {
  const Plan of = plan();
  const auto records = RunRecords::of(
      of,
      {row("n1", "image", "intent", 10), row("n2", "image", "intent", 11), row("n1", "image", "started", 12),
       row("n1", "image", "succeeded", 20), row("n1", "a", "intent", 30), row("n1", "a", "started", 31),
       row("n1", "a", "succeeded", 40), row("n1", "b", "intent", 41), row("n2", "image", "abandoned", 50)});
  REQUIRE(records.ok());
  const auto phases = records->phases("n1");
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].phase == "image");
  CHECK(phases[0].start == 10);
  CHECK(phases[0].end == 20);
  CHECK(phases[0].outcome == "done");
  CHECK(phases[1].phase == "configure");
  CHECK(phases[1].start == 30);
  CHECK(phases[1].end == 40);
  CHECK(phases[1].outcome == "running");
  REQUIRE(records->phases("n2").size() == 1);
  CHECK(records->phases("n2")[0].outcome == "failed");
  CHECK(records->phases("n2")[0].start == 11);
  CHECK(records->phases("n2")[0].end == 50);
  CHECK(records->phases("n3").empty());
  REQUIRE(records->node("n1").actions.size() == 3);
  CHECK(records->node("n1").actions[1]->id == "n1/a");
  CHECK(records->record("n1/a").state == ActionState::succeeded);
}

TEST_CASE("run records: the last word about a node counts, and only for that node", "[bringup]") {
  const Plan of = plan();
  std::vector<JournalRow> journal = {row("n1", "", "quarantined", 1, {{"reason", "first"}}),
                                     row("n1", "", "quarantined", 2, {{"reason", "second"}}),
                                     row("n2", "", "returning", 3, {{"reason", "configure: broken"}})};
  const auto read = [&] { return RunRecords::of(of, journal).value(); };
  CHECK(read().node("n1").reason == "second");
  CHECK_FALSE(read().node("n1").back);
  CHECK(read().node("n2").reason.empty());
  REQUIRE(read().node("n2").back);
  CHECK(read().node("n2").back->reason == "configure: broken");
  CHECK_FALSE(read().node("n2").back->there);
  SECTION("it arrives") {
    journal.push_back(row("n2", "", "returned", 4, {{"reason", "configure: broken"}}));
    CHECK(read().node("n2").back->there);
  }
  SECTION("it is cancelled on its way") {
    journal.push_back(row("n2", "", "not_started", 4));
    CHECK_FALSE(read().node("n2").back);
  }
}

TEST_CASE("run records: a journal that cannot be is an error", "[bringup]") {
  const Plan of = plan();
  CHECK_FALSE(RunRecords::of(of, {row("n1", "image", "succeeded", 10)}).ok());
}
