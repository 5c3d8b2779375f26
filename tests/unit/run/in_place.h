// A run that re-images nodes in place: slot a stands, slot b is written and tried.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/run/bench.h"

namespace muster::testing {

constexpr char kOldImage[] = "sha256:old";
constexpr char kNewImage[] = "sha256:new";

struct InPlace : RunBench {
  // The plan's actions of a node, in order, and what is done instead when one fails.
  static std::vector<std::string> ordinary() {
    return {"write", "pause", "boot", "configure", "accept", "commit", "resume"};
  }

  explicit InPlace(std::vector<std::string> nodes = {"n1"}, const std::string& state = "accepted") {
    plan.kind = PlanKind::reimage;
    for (const auto& node : nodes) add_node(node, state);
    live();
    for (const auto& node : nodes) {
      executor->set_node(NodeName(node), [state](NodeRow& row) {
        row.state = node_state_from_string(state).value();
        row.accepted_run = 7;
        row.config_digest = "sha256:conf-old";
      });
      plan.config_digests[node] = "sha256:conf-new";
    }
    for (const auto& node : nodes) old_system(node, "old");
  }
  void add_node(const std::string& node, const std::string& state) {
    for (const auto& name : ordinary()) {
      Action a = action(node, name, ActionKind::steps);
      if (name == "write") a.kind = ActionKind::write_slot;
      if (name == "accept") a.kind = ActionKind::check;
      if (name == "boot") {
        a.kind = ActionKind::boot_slot;
        a.params = {{"slot", "b"}, {"digest", kNewImage}, {"trial", 120 * kMinute}};
        a.timeout = 40 * kMinute;  // as planned: twice limits.boot
        a.max_attempts = 1;
      }
      add(a);
    }
    Action back = action(node, "return", ActionKind::return_slot,
                         {{"slot", "a"}, {"digest", kOldImage}, {"state", state}});
    back.timeout = 40 * kMinute;
    back.when_failed = true;
    add(back);
    Action resume = action(node, "resume-old", ActionKind::steps);
    resume.phase = "resume";
    resume.when_failed = true;
    add(resume);
  }
  void go() {
    executor->start(plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    reactor.advance(200);
  }
  // The controller is killed, and another takes the run up.
  void killed() {
    restart();
    REQUIRE(executor->resume(1).ok());
    reactor.advance(100);
  }
  void old_system(const std::string& node, const std::string& boot) {
    hello(node, wire::Mode::installed, node + "-" + boot, kOldImage, "a");
  }
  bool is_committed(const std::string& node) {
    return executor->log().of(node + "/commit").state == ActionState::succeeded;
  }
  void new_system(const std::string& node, const std::string& boot) {
    hello(node, wire::Mode::installed, node + "-" + boot, kNewImage, "b", !is_committed(node));
  }
  void asks(const std::string& node, const std::string& boot, bool fresh) {
    asks(node, boot, fresh, fresh && !is_committed(node));
  }
  void asks(const std::string& node, const std::string& boot, bool fresh, bool trial) {
    Presence present;
    present.boot_id = node + "-" + boot;
    present.mode = wire::Mode::installed;
    present.image_digest = Digest(fresh ? kNewImage : kOldImage);
    present.slot = fresh ? "b" : "a";
    present.trial = trial;
    executor->on_contact(NodeName(node), present);
    reactor.advance(100);
  }
  // Everything before this action went well; it is on offer now.
  void reaches(const std::string& node, const std::string& action) {
    for (const auto& name : ordinary()) {
      REQUIRE(offered(node) == id(node + "/" + name, 1));
      if (name == action) return;
      finish(node);
      if (name == "boot") new_system(node, "new");
    }
  }
  void fails(const std::string& node) { finish(node, false, "denied"); }
  bool on_offer(const std::string& action, wire::OrderKind kind) {
    const NodeName node(action.substr(0, action.find('/')));
    return offered(node) == id(action, 1) && offers[node].kind == kind;
  }
  std::string shown(const std::string& node) {
    return executor->why(NodeName(node))["state"].get<std::string>();
  }
  bool says(const std::string& node, const std::string& what) {
    return row(node).reason.find(what) != std::string::npos;
  }
  // It works in the system that it had, and counts as what it was accepted for then.
  void is_back(const std::string& node, NodeState state = NodeState::accepted,
               const char* how = "returned to slot a") {
    const NodeRow now = row(node);
    CHECK(now.state == state);
    CHECK(now.accepted_run == 7);
    CHECK(now.config_digest == "sha256:conf-old");
    CHECK(now.image_digest == kOldImage);
    CHECK(says(node, how));
    CHECK(shown(node) == "returned");
  }
  // As postponed, where a rollout judges it.
  bool counts_as_kept(const std::string& node = "n1") {
    std::vector<const Action*> own;
    for (const Action& a : plan.actions)
      if (a.node == node) own.push_back(&a);
    return kept_by_jobs(own, executor->log());
  }
  void ended_as(RunState state) {
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].state == state);
  }
  void no_power() {
    CHECK(powered.empty());
    CHECK(switched_on.empty());
    CHECK(switched_off.empty());
  }
};

}  // namespace muster::testing
