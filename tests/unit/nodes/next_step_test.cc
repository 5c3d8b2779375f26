#include "controller/nodes/next_step.h"

#include <set>
#include <string>
#include <vector>

#include "base/split.h"
#include "tests/catch.h"

namespace muster {
namespace {

std::vector<NodeState> all_states() {
  const auto all = node_states();
  return {all.begin(), all.end()};
}

const std::vector<std::optional<NodeRunState>>& all_in_run() {
  static const std::vector<std::optional<NodeRunState>> all = {
      std::nullopt,           NodeRunState::waiting,     NodeRunState::running,    NodeRunState::done,
      NodeRunState::returned, NodeRunState::quarantined, NodeRunState::not_started};
  return all;
}

NodeStanding standing(NodeState state) {
  NodeStanding node;
  node.name = "gpu03";
  node.state = state;
  node.declared = true;
  node.image = "gpu";
  node.image_built = true;
  return node;
}

}  // namespace

TEST_CASE("a node has a next step in every state and every place in a run", "[nodes]") {
  for (const NodeState state : all_states())
    for (const auto& in_run : all_in_run())
      for (const int64_t active : {int64_t{0}, int64_t{7}, int64_t{8}})
        for (int bits = 0; bits < 64; ++bits) {
          NodeStanding node = standing(state);
          node.declared = bits & 1;
          node.image_built = bits & 2;
          node.silent = bits & 4;
          node.by_hand = bits & 8;
          node.adopted = bits & 16;
          node.held_by = state != NodeState::quarantined ? HeldBy::nobody
                         : bits & 32                     ? HeldBy::an_operator
                                                         : HeldBy::run;
          node.in_run = in_run;
          node.run = in_run ? 7 : 0;
          node.active_run = active;
          const std::string next = next_step(node);
          CAPTURE(to_string(state), in_run ? to_string(*in_run) : "none", active, bits, next);
          CHECK(next.find('\n') == std::string::npos);
          // A command for this node or the run, or nothing to do.
          CHECK((has(next, "`muster ") || next.starts_with("nothing")));
          if (!next.starts_with("nothing")) CHECK((has(next, "gpu03") || has(next, "SPEC")));
        }
}

TEST_CASE("the next step leads from each state to service", "[nodes]") {
  const auto next = [](NodeState state) { return next_step(standing(state)); };
  CHECK(has(next(NodeState::unknown), "muster up --limit gpu03"));
  CHECK(has(next(NodeState::discovered), "muster up --limit gpu03"));
  CHECK(has(next(NodeState::installing), "muster up --limit gpu03"));
  CHECK(next(NodeState::accepted).starts_with("nothing"));
  NodeStanding with_cause = standing(NodeState::accepted);
  with_cause.cause_next = "muster rollout status";
  CHECK(has(next_step(with_cause), "`muster rollout status`"));
  CHECK(has(next(NodeState::degraded), "muster accept gpu03"));
  CHECK(has(next(NodeState::draining), "muster undrain gpu03"));
  CHECK(has(next(NodeState::drained), "muster undrain gpu03"));
  NodeStanding held = standing(NodeState::quarantined);
  held.held_by = HeldBy::run;
  CHECK(has(next_step(held), "muster up --limit gpu03"));
  held.held_by = HeldBy::an_operator;
  CHECK(has(next_step(held), "muster node quarantine gpu03 --release"));
}

TEST_CASE("an image that was never built, and a node that nothing declares, are part of the next step",
          "[nodes]") {
  NodeStanding node = standing(NodeState::unknown);
  CHECK_FALSE(has(next_step(node), "image gpu"));
  node.image_built = false;
  CHECK(has(next_step(node), "image gpu"));
  node.declared = false;
  CHECK(has(next_step(node), "muster node rm gpu03"));
  node.state = NodeState::unadmitted;
  CHECK(has(next_step(node), "--machine gpu03"));
}

TEST_CASE("a silent node is looked at before anything else, and one that went back before it is tried again",
          "[nodes]") {
  NodeStanding node = standing(NodeState::accepted);
  node.silent = true;
  CHECK(has(next_step(node), "muster power state gpu03"));
  node.run = 7;
  node.in_run = NodeRunState::returned;
  CHECK(has(next_step(node), "muster logs gpu03 --run 7"));
}

TEST_CASE("while a run works on a node there is nothing to do, except the task that it waits for",
          "[nodes]") {
  NodeStanding node = standing(NodeState::installing);
  node.run = node.active_run = 7;
  node.in_run = NodeRunState::running;
  CHECK(next_step(node).starts_with("nothing"));
  node.by_hand = true;
  CHECK(has(next_step(node), "muster power done gpu03"));
  // Nothing can be planned before the run is over.
  NodeStanding other = standing(NodeState::drained);
  other.active_run = 7;
  CHECK(has(next_step(other), "run 7"));
  CHECK(has(next_step(other), "muster undrain gpu03"));
}

TEST_CASE("every word of a node's place in a run is read back", "[nodes]") {
  std::set<std::string_view> words;
  for (const auto& in_run : all_in_run()) {
    if (!in_run) continue;
    CHECK(words.insert(to_string(*in_run)).second);
    CHECK(node_run_state_from_string(to_string(*in_run)) == in_run);
  }
  CHECK_FALSE(node_run_state_from_string("accepted"));
}

}  // namespace muster
