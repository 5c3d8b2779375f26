// What a batch's run came to, per node.
#include "controller/rollout/service/rollout_world.h"

#include "tests/catch.h"

using namespace muster;
using rollout::Outcome;

namespace {

struct Case {
  Case() {
    plan.kind = PlanKind::reimage;
    plan.nodes = {"n1"};
    for (const auto& [name, kind, phase] :
         {std::tuple{"write", ActionKind::write_slot, "image"},
          std::tuple{"pause", ActionKind::steps, "pause"}, std::tuple{"boot", ActionKind::boot_slot, "boot"},
          std::tuple{"accept", ActionKind::check, "accept"}}) {
      Action a;
      a.id = std::string("n1/") + name;
      a.node = "n1";
      a.kind = kind;
      a.phase = phase;
      plan.actions.push_back(a);
    }
    run.id = 7;
    run.state = RunState::done;
    row.name = "n1";
    row.state = NodeState::accepted;
  }
  void happened(const std::string& action, const std::string& event, Json data = Json::object()) {
    JournalRow r;
    r.run = 7;
    r.node = "n1";
    r.action = action.empty() ? "" : "n1/" + action;
    r.attempt = action.empty() ? 0 : 1;
    r.event = event;
    r.time = ++time;
    r.data = std::move(data);
    journal.push_back(r);
  }
  void did(const std::string& action, const std::string& end) {
    happened(action, "intent");
    happened(action, "started");
    happened(action, end);
  }
  rollout::NodeEnd end() const {
    const auto ended = end_of({run, std::make_shared<const Plan>(plan), journal}, {{"n1", row}});
    REQUIRE(ended.ok());
    CHECK(ended->run == 7);
    CHECK(ended->cancelled == (run.state == RunState::cancelled));
    return ended->nodes.at("n1");
  }
  Plan plan;
  RunRow run;
  NodeRow row;
  std::vector<JournalRow> journal;
  TimeMs time = 0;
};

}  // namespace

TEST_CASE("rollout end: accepted by this run, also degraded, and by no other", "[rollout][bringup]") {
  Case c;
  c.row.accepted_run = 7;
  CHECK(c.end().outcome == Outcome::accepted);
  c.row.state = NodeState::degraded;
  CHECK(c.end().outcome == Outcome::accepted);
  c.row.accepted_run = 6;
  CHECK(c.end().outcome == Outcome::quarantined);
}

TEST_CASE("rollout end: given back before its system was left is its jobs or others', else a failure",
          "[rollout][bringup]") {
  Case jobs;
  jobs.did("write", "succeeded");
  jobs.did("pause", "failed");
  jobs.happened("", "returned", {{"reason", "jobs 12"}});
  CHECK(jobs.end().outcome == Outcome::jobs);
  Case failed;
  failed.did("write", "succeeded");
  failed.did("pause", "succeeded");
  failed.did("boot", "failed");
  failed.happened("", "returned", {{"reason", "panic"}});
  CHECK(failed.end().outcome == Outcome::returned);
  CHECK(failed.end().reason == "panic");
  Case resumed;  // refused by its agent, right before the boot
  resumed.did("write", "succeeded");
  resumed.did("pause", "succeeded");
  resumed.happened("boot", "intent");
  resumed.happened("boot", "failed", {{"code", "conflict"}, {"result", {{"precondition", "scheduler/x"}}}});
  resumed.happened("boot", "abandoned", {{"message", "it has jobs"}});
  resumed.happened("", "returned", {{"reason", "it has jobs"}});
  CHECK(resumed.end().outcome == Outcome::jobs);
  Case denied;  // while its jobs were waited for, others took it out
  denied.did("write", "succeeded");
  denied.happened("pause", "intent");
  denied.happened("pause", "failed", {{"code", "failed"}, {"result", {{"denied", "scheduler/x"}}}});
  denied.happened("", "returned", {{"reason", "drained by ann"}});
  CHECK(denied.end().outcome == Outcome::left);
  CHECK(denied.end().reason == "drained by ann");
  Case late;  // and so behind its pause
  late.did("write", "succeeded");
  late.did("pause", "succeeded");
  late.happened("boot", "intent");
  late.happened(
      "boot", "failed",
      {{"code", "conflict"}, {"result", {{"precondition", "scheduler/x"}, {"denied", "scheduler/x"}}}});
  late.happened("boot", "abandoned", {{"message", "drained by ann"}});
  late.happened("", "returned", {{"reason", "drained by ann"}});
  CHECK(late.end().outcome == Outcome::left);
  Case write;
  write.did("write", "failed");
  write.happened("", "returned", {{"reason", "disk"}});
  CHECK(write.end().outcome == Outcome::returned);
}

TEST_CASE("rollout end: quarantined, held, not begun, cancelled", "[rollout][bringup]") {
  Case c;
  c.happened("", "quarantined", {{"reason", "silent"}});
  c.row.state = NodeState::quarantined;
  c.row.held_by = HeldBy::run;
  CHECK(c.end().outcome == Outcome::quarantined);
  c.row.held_by = HeldBy::an_operator;
  CHECK(c.end().outcome == Outcome::held);
  Case none;
  none.happened("", "not_started", {{"reason", "budget"}});
  CHECK(none.end().outcome == Outcome::not_begun);
  none.run.state = RunState::cancelled;
  CHECK(none.end().outcome == Outcome::unfinished);
  Case cancelled;
  cancelled.run.state = RunState::cancelled;
  CHECK(cancelled.end().outcome == Outcome::unfinished);
}

TEST_CASE("rollout end: a slot that was not written ahead is said, and is no failure of its node",
          "[rollout][bringup]") {
  const auto unwritten = [](const std::string& last, RunState state = RunState::done) {
    Case c;
    c.plan.serving = {"n1"};
    c.run.state = state;
    if (!last.empty()) c.did("write", last);
    if (last == "failed") c.happened("", "returned", {{"reason", "write: no space left"}});
    const auto ended = end_of({c.run, std::make_shared<const Plan>(c.plan), c.journal}, {{"n1", c.row}});
    REQUIRE(ended.ok());
    CHECK(ended->nodes.empty());
    return ended->unwritten;
  };
  CHECK(unwritten("succeeded").empty());
  CHECK(unwritten("").empty());
  CHECK(unwritten("failed").at("n1") == "write: no space left");
  CHECK(unwritten("failed", RunState::cancelled).empty());
}

TEST_CASE("rollout: an image is in use where a node runs it, and where the active run installs it",
          "[rollout][bringup]") {
  NodeRow runs, blank;
  runs.image_digest = "sha256:old";
  const std::map<std::string, NodeRow> nodes = {{"n1", runs}, {"n2", blank}};
  Plan plan;
  plan.images = {{"gpu", "sha256:new"}};
  for (const Plan* active : {static_cast<const Plan*>(nullptr), static_cast<const Plan*>(&plan)}) {
    const auto used = images_in_use(nodes, active);
    CHECK(used.count("sha256:old") == 1);
    CHECK((used.count("sha256:new") == 1) == (active != nullptr));
  }
}

TEST_CASE(
    "rollout: before the approval it is said that the new image's Slurm does not read the leader's data",
    "[rollout]") {
  Spec spec;
  spec.nodes.resize(2);
  spec.nodes[0].name = "head", spec.nodes[1].name = "n1";
  spec.nodes[0].role = spec.nodes[1].role = "gpu";
  spec.roles = {{"gpu", {"scheduler"}}};
  rollout::View view;
  view.policy.roles = {"gpu"};
  for (const char* name : {"head", "n1"})
    view.nodes.push_back({.name = name, .role = "gpu", .image_now = "old", .image_wanted = "new"});
  std::map<std::string, std::string> slurm = {{"old", "22.05.8-4+deb12u3"}, {"new", "24.11.5-4"}};
  const auto notes = [&] {
    return notes_of(spec, view, [&](const std::string& digest) { return slurm[digest]; });
  };
  REQUIRE(notes().size() == 1);  // before each of the changes below
  CHECK(notes()[0].starts_with("head: its queue and accounting are of Slurm 22.05"));

  SECTION("not if it is read") { slurm["new"] = "22.05.9-1"; }
  SECTION("not if one of them is unknown") { slurm["old"] = ""; }
  SECTION("not if the leader has the image already") { view.nodes[0].image_now = "new"; }
  SECTION("not if the leader is in no role of the rollout") { view.nodes[0].role = "head"; }
  SECTION("not if no node leads Slurm") { spec.roles = {{"gpu", {"base"}}}; }
  CHECK(notes().empty());
}
