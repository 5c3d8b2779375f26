#include "controller/run/gate.h"

#include <map>

#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

using testing::action;
using Stage = NodeRun::Stage;

// n1 and n2 do "first"; n1 then does "second", which each test makes depend on something.
struct Plans {
  Plan plan;
  StepLog log;
  std::map<std::string, NodeRun> nodes;

  Plans() {
    for (const char* node : {"n1", "n2"}) {
      plan.nodes.push_back(node);
      plan.actions.push_back(action(node, "first", ActionKind::steps));
      nodes[node].name = NodeName(node);
    }
    plan.actions.push_back(action("n1", "second", ActionKind::steps));
  }
  Action& second() { return plan.actions.back(); }
  Gate::Answer request(Gate& gate) {
    return gate.check(second(), log, [this](const std::string& name) -> const NodeRun* {
      const auto found = nodes.find(name);
      return found == nodes.end() ? nullptr : &found->second;
    });
  }
};

}  // namespace

TEST_CASE("what depends on an action waits for it, and follows it when it must", "[run]") {
  struct Row {
    bool hard;
    Stage other;
    bool open, never;
  };
  const Row rows[] = {{true, Stage::awaiting, false, false},   {false, Stage::awaiting, false, false},
                      {true, Stage::quarantined, false, true}, {false, Stage::quarantined, true, false},
                      {true, Stage::not_started, false, true}, {false, Stage::not_started, true, false},
                      {true, Stage::done, false, false}};  // its success is not durable yet
  for (const Row& row : rows) {
    INFO(row.hard << static_cast<int>(row.other));
    Plans p;
    p.second().after = {{"n2/first", row.hard}};
    p.nodes["n2"].stage = row.other;
    Gate gate(p.plan);
    Gate::Answer answer = p.request(gate);
    CHECK(answer.open == row.open);
    CHECK(answer.never.empty() != row.never);
    CHECK(answer.wait.reason.empty() == (row.open || row.never));
    gate.succeeded("n2/first");
    CHECK(p.request(gate).open);
  }
}

TEST_CASE("a barrier opens when each of its members is done or out", "[run]") {
  Plans p;
  p.plan.barriers = {{"n1/first", "n2/first"}};
  p.second().behind = 0;
  Gate gate(p.plan);
  CHECK_FALSE(p.request(gate).open);
  gate.succeeded("n1/first");
  CHECK_FALSE(p.request(gate).open);
  p.nodes["n2"].stage = Stage::quarantined;
  CHECK(p.request(gate).open);
}

TEST_CASE("who waits for a person is waited for by those only that need it", "[run]") {
  Plans p;
  p.nodes["n2"].control = {{Switch::person, {"rack 3", kMinute}}};
  p.nodes["n2"].stage = Stage::powering;
  p.second().after = {{"n2/first", false}};
  Gate soft(p.plan);
  CHECK(p.request(soft).open);
  p.second().after = {{"n2/first", true}};
  Gate hard(p.plan);
  CHECK_FALSE(p.request(hard).open);
  p.nodes["n2"].stage = Stage::awaiting;  // they came
  p.second().after = {{"n2/first", false}};
  Gate back(p.plan);
  CHECK_FALSE(p.request(back).open);
}

TEST_CASE("no node waits for one that goes back to its old system", "[run][slot]") {
  for (const Stage stage : {Stage::pending, Stage::awaiting, Stage::done}) {  // on its way, or there
    Plans p;
    p.nodes["n2"].returning = true;
    p.nodes["n2"].stage = stage;
    p.nodes["n2"].reason = "too slow";
    p.second().after = {{"n2/first", false}};
    Gate soft(p.plan);
    CHECK(p.request(soft).open);
    p.second().after = {{"n2/first", true}};
    Gate hard(p.plan);
    CHECK_FALSE(p.request(hard).open);
    CHECK(p.request(hard).never.find("too slow") != std::string::npos);
    p.plan.barriers = {{"n1/first", "n2/first"}};
    p.second().after = {};
    p.second().behind = 0;
    Gate barrier(p.plan);
    CHECK_FALSE(p.request(barrier).open);
    barrier.succeeded("n1/first");
    CHECK(p.request(barrier).open);
  }
}

TEST_CASE("the way back waits for no node, and is waited for only while it may happen", "[run][slot]") {
  Plans p;
  p.second().after = {{"n1/first", true}, {"n2/first", true}};
  p.second().when_failed = true;
  Gate gate(p.plan);
  CHECK(p.request(gate).open);
  Plans q;
  q.plan.actions[1].when_failed = true;
  q.second().after = {{"n2/first", false}};
  Gate other(q.plan);
  CHECK_FALSE(q.request(other).open);
  q.nodes["n2"].stage = Stage::done;  // without it
  CHECK(q.request(other).open);
}
