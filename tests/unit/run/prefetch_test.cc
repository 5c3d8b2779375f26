// A node of the next batch, whose other slot is written while it works: it keeps its state, whatever fails.
#include "tests/unit/run/in_place.h"

using namespace muster;
using testing::InPlace;
using wire::OrderKind;

namespace {

struct Prefetch : InPlace {
  explicit Prefetch(const std::string& state = "accepted") : InPlace(std::vector<std::string>{}) {
    Action write = testing::action("n1", "write", ActionKind::write_slot);
    write.max_attempts = 1;
    Action look = testing::action("n1", "look", ActionKind::inventory);
    look.max_attempts = 1;
    Action back = testing::action("n1", "look-old", ActionKind::inventory, {{"state", state}});
    back.max_attempts = 1;
    back.when_failed = true;
    for (const auto& one : {write, look, back}) add(one);
    plan.serving = {"n1"};
    executor->set_node("n1", [state](NodeRow& row) {
      row.state = node_state_from_string(state).value();
      row.accepted_run = 7;
      row.config_digest = "sha256:conf-old";
    });
    old_system("n1", "old");
    go();
    REQUIRE(on_offer("n1/write", OrderKind::write_slot));
  }
  void works_as_before(NodeState state = NodeState::accepted) {
    const NodeRow now = row("n1");
    CHECK(now.state == state);
    CHECK(now.held_by == HeldBy::nobody);
    CHECK(now.accepted_run == 7);
    CHECK(now.config_digest == "sha256:conf-old");
    no_power();
  }
};

}  // namespace

TEST_CASE("prefetch: a node whose slot was written is what it was", "[run][slot][rollout]") {
  const std::string state = GENERATE("accepted", "degraded");
  Prefetch b(state);
  b.finish("n1");
  REQUIRE(b.offered("n1") == b.id("n1/look", 1));
  b.finish("n1");
  b.ended_as(RunState::done);
  b.works_as_before(node_state_from_string(state).value());
  CHECK(b.row("n1").reason == "");
}

TEST_CASE("prefetch: a node whose slot cannot be written works on, and is not quarantined",
          "[run][slot][rollout]") {
  const bool inventory = GENERATE(true, false);
  Prefetch b;
  SECTION("the write fails") { b.fails("n1"); }
  SECTION("what was written cannot be read") {
    b.finish("n1");
    b.fails("n1");
  }
  SECTION("behind a controller that was killed") {
    b.killed();
    b.asks("n1", "old", false);
    b.fails("n1");
  }
  REQUIRE(b.offered("n1") == b.id("n1/look-old", 1));
  b.works_as_before();
  inventory ? b.finish("n1") : b.fails("n1");
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state != RunState::done);
  b.works_as_before();
  CHECK(b.row("n1").reason != "");
}

TEST_CASE("prefetch: a node that falls silent is not quarantined", "[run][slot][rollout]") {
  Prefetch b;
  b.reactor.advance(24 * 60 * kMinute);
  REQUIRE(b.ended.size() == 1);
  b.works_as_before();
}

TEST_CASE("prefetch: an operator's quarantine holds", "[run][slot][rollout]") {
  Prefetch b;
  b.executor->quarantine("n1", "loose cable");
  b.reactor.advance(200);
  CHECK(b.row("n1").state == NodeState::quarantined);
}
