#include "controller/run/progress.h"

#include "tests/catch.h"

using namespace muster;

namespace {

using Stage = NodeRun::Stage;

NodeRun in(Stage stage, bool returning = false) {
  NodeRun node;
  node.stage = stage;
  node.returning = returning;
  return node;
}

}  // namespace

TEST_CASE("what counts of a node follows from its stage and its way", "[run][ready]") {
  struct Row {
    NodeRun node;
    int failed;
    size_t over, works, good;
  };
  const Row rows[] = {{in(Stage::pending), 0, 0, 0, 0},      {in(Stage::powering), 0, 0, 0, 0},
                      {in(Stage::done), 0, 1, 1, 1},         {in(Stage::done, true), 1, 1, 1, 0},
                      {in(Stage::quarantined), 1, 1, 0, 0},  {in(Stage::quarantined, true), 1, 1, 0, 0},
                      {in(Stage::not_started), 0, 1, 0, 0},  {in(Stage::not_started, true), 1, 1, 0, 0},
                      {in(Stage::pending, true), 1, 0, 0, 0}};
  for (const Row& from : rows)
    for (const Row& to : rows) {
      Tally tally;
      tally.move({}, standing_of(from.node));
      tally.move(standing_of(from.node), standing_of(to.node));
      CHECK(tally.failed == to.failed);
      CHECK(tally.over == to.over);
      CHECK(tally.works == to.works);
      CHECK(tally.good == to.good);
    }
}

TEST_CASE("others see of a node whether it is over, works, goes back, or waits for a person",
          "[run][ready]") {
  const Standing pending = standing_of(in(Stage::pending));
  CHECK(pending.pending);
  CHECK(standing_of(in(Stage::awaiting)).same_for_others(pending));
  CHECK_FALSE(standing_of(in(Stage::awaiting)) == pending);
  for (const Stage over : {Stage::done, Stage::quarantined, Stage::not_started})
    CHECK_FALSE(standing_of(in(over)).same_for_others(pending));
  CHECK_FALSE(standing_of(in(Stage::quarantined)).same_for_others(standing_of(in(Stage::done))));
  CHECK_FALSE(standing_of(in(Stage::pending, true)).same_for_others(pending));
  NodeRun asks = in(Stage::powering);
  CHECK(standing_of(asks).same_for_others(pending));
  asks.control.by = Switch::person;
  CHECK_FALSE(standing_of(asks).same_for_others(pending));
  asks.stage = Stage::awaiting;
  CHECK(standing_of(asks).same_for_others(pending));
}

TEST_CASE("an agent should be heard while its order is on offer or its failure is weighed", "[run][ready]") {
  NodeRun node = in(Stage::awaiting);
  CHECK_FALSE(standing_of(node).heeded);
  node.attempt.offered = true;
  CHECK(standing_of(node).heeded);
  node.attempt.offered = false;
  node.attempt.weighing = Weighing{};
  CHECK(standing_of(node).heeded);
}
