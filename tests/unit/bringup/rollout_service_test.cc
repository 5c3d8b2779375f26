// The loop of a rollout, over a cluster that does what each test says, and a store that keeps what it synced.
#include "controller/bringup/rollout_service.h"

#include <set>

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;
using namespace muster::rollout;

namespace {

// A cluster of nodes n0, n1, ... of role "gpu" that run image "old" where "new" is wanted. Runs do not end by
// themselves.
class FakeCluster : public RolloutPort {
 public:
  explicit FakeCluster(size_t count) {
    spec.max_unavailable = 2;
    for (size_t i = 0; i < count; ++i) {
      Node node{.name = "n" + std::to_string(i), .role = "gpu", .image_now = "old", .image_wanted = "new"};
      node.state = NodeState::accepted;
      node.online = node.has_bmc = true;
      nodes.push_back(node);
    }
    now.spec_revision = 1;
    now.spec_digest = "spec1";
    now.roles = {"gpu"};
    now.images["gpu"] = {"new", "recipe1"};
  }

  struct Run {
    int64_t id = 0;
    std::string by;
    std::vector<std::string> nodes;
    bool over = false;
  };
  Result<SeenCluster> look() override {
    if (broken) return *broken;
    SeenCluster out;
    out.view.policy = policy_of(spec);
    out.view.policy.roles = {"gpu"};
    out.view.nodes = nodes;
    for (Node& node : out.view.nodes) node.image_wanted = now.images.at("gpu").digest;
    out.view.groups = groups;
    out.view.active_run = other_run;
    for (const Run& run : runs)
      if (!run.over) out.view.active_run = run.id;
    out.now = now;
    out.rollout = spec;
    return out;
  }
  void find_ways(const std::vector<std::string>& names,
                 std::function<void(Result<std::vector<NodeWay>>)> done) override {
    std::vector<NodeWay> out;
    for (const auto& name : names)
      out.push_back(
          {name, no_way.count(name) ? NodeWay::By::none : NodeWay::By::in_place, "as the test says"});
    done(std::move(out));
  }
  void plan(const BatchOrder& order, std::function<void(Result<PlannedBatch>)> done) override {
    orders.push_back(order);
    if (hold_plan) return void(held_plan = [this, order, done] { done(made(order)); });
    done(made(order));
  }
  PlannedBatch made(const BatchOrder& order) {
    std::vector<Refusal> refusals;
    for (const auto& name : order.nodes)
      if (refuse.count(name)) refusals.push_back({name, "storage-needed", "as the test says"});
    Plan plan;
    plan.kind = PlanKind::reimage;
    plan.spec_revision = now.spec_revision;
    plan.images["gpu"] = now.images.at("gpu").digest;
    plan.nodes = order.nodes;
    for (const auto& name : order.nodes)
      plan.actions.push_back({name + "/write", name, ActionKind::write_slot, "image", "write"});
    if (destroys) {
      plan.destroys.emplace_back();
      plan.destroys.back().node = order.nodes.front();
    }
    planned = order.nodes;
    return {"plan" + std::to_string(orders.size()), std::make_shared<const Plan>(std::move(plan)), refusals};
  }
  void start(const std::string&, const std::string& by, std::function<void(Result<int64_t>)> done) override {
    if (cannot_start) return done(*cannot_start);
    runs.push_back({static_cast<int64_t>(runs.size()) + 1, by, planned, false});
    for (const auto& name : planned) ++taken[name];
    if (!die_at_start) done(runs.back().id);
  }
  Result<std::optional<int64_t>> tagged(const std::string& tag) override {
    for (const Run& run : runs)
      if (has_tag(run.by, tag)) return std::optional<int64_t>(run.id);
    return std::optional<int64_t>();
  }
  Result<bool> ended(int64_t run) override { return runs.at(static_cast<size_t>(run) - 1).over; }
  void read_end(int64_t run, std::function<void(Result<RunEnd>)> done) override {
    RunEnd end{run, 0, cancelled.count(run) > 0, {}};
    for (const auto& name : runs.at(static_cast<size_t>(run) - 1).nodes)
      end.nodes[name] = outcome.count(name) ? outcome[name] : NodeEnd{Outcome::accepted, ""};
    done(end);
  }
  void changed(const Record&) override { ++changes; }

  // The newest run ends; its nodes are what their outcomes say.
  void end_run() {
    Run& run = runs.back();
    REQUIRE_FALSE(run.over);
    run.over = true;
    for (const auto& name : run.nodes)
      if (!outcome.count(name)) node(name).image_now = now.images.at("gpu").digest;
  }
  Node& node(const std::string& name) { return nodes.at(static_cast<size_t>(std::stoi(name.substr(1)))); }

  RolloutSpec spec;
  Approval now;
  std::vector<Node> nodes;
  std::vector<Group> groups;
  int64_t other_run = 0;
  std::optional<Error> broken, cannot_start;
  std::set<std::string> no_way, refuse;
  bool destroys = false, hold_plan = false, die_at_start = false;
  std::function<void()> held_plan;
  std::vector<std::string> planned;
  std::vector<BatchOrder> orders;
  std::vector<Run> runs;
  std::set<int64_t> cancelled;
  std::map<std::string, NodeEnd> outcome;
  std::map<std::string, int> taken;
  int changes = 0;
};

struct World {
  explicit World(size_t nodes) : cluster(nodes), store(reactor) { restart(); }

  void restart() {
    service = std::make_unique<RolloutService>(reactor, store, cluster);
    service->begin();
    settle();
  }
  // The controller is killed; what was synced is there.
  void kill(MemStore::Unsynced unsynced = MemStore::Unsynced::lost) {
    service.reset();
    store.crash(unsynced);
    restart();
  }
  void settle() { reactor.advance(100); }
  Result<Json> ask(const std::function<void(RolloutService::Done)>& what) {
    Result<Json> out = fail(Code::failed, "no answer");
    what([&](Result<Json> answer) { out = std::move(answer); });
    settle();
    return out;
  }
  Result<Json> approve() {
    return ask([this](auto done) { service->approve(digest_of(cluster.now), "ada", done); });
  }
  Result<Json> start() {
    return ask([this](auto done) { service->start(done); });
  }
  Result<Json> pause() {
    return ask([this](auto done) { service->pause("ada", done); });
  }
  Result<Json> resume() {
    return ask([this](auto done) { service->resume(done); });
  }
  Json status() {
    return ask([this](auto done) { service->status(done); }).value();
  }
  void end_run() {
    cluster.end_run();
    service->poke();
    settle();
  }
  const FakeCluster::Run& run() { return cluster.runs.back(); }
  std::string state() { return status()["state"]; }

  ManualReactor reactor;
  FakeCluster cluster;
  MemStore store;
  std::unique_ptr<RolloutService> service;
};

using Names = std::vector<std::string>;

Code code_of(const Result<Json>& answer) { return answer.ok() ? Code::failed : answer.error().code; }

}  // namespace

TEST_CASE("rollout service: nothing begins without an approval, and what is shown is what is approved",
          "[rollout][service]") {
  World w(3);
  CHECK(w.state() == "none");
  CHECK(code_of(w.start()) == Code::denied);
  CHECK(code_of(w.ask([&](auto done) { w.service->approve("other", "ada", done); })) == Code::conflict);
  REQUIRE(w.approve().ok());
  CHECK(w.state() == "approved");
  CHECK(w.cluster.runs.empty());
  CHECK(w.status()["approval"]["by"] == "ada");
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n0"});
}

TEST_CASE("rollout service: a canary, then batches, then it is done, and each node is taken once",
          "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().value()["begun"] == true);
  CHECK(w.state() == "canary");
  CHECK(w.run().nodes == Names{"n0"});
  CHECK(w.cluster.orders.back().prefetch.empty());
  CHECK(w.cluster.orders.back().failure_budget == 0);
  w.end_run();
  CHECK(w.state() == "batches");
  CHECK(w.run().nodes == Names{"n1", "n2"});
  CHECK(w.cluster.orders.back().prefetch == Names{"n3", "n4"});
  w.end_run();
  CHECK(w.run().nodes == Names{"n3", "n4"});
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.cluster.runs.size() == 3);
  for (const auto& [node, times] : w.cluster.taken) CHECK(times == 1);
  CHECK(w.service->record()->runs.size() == 3);
  CHECK(w.service->record()->before.size() == 5);
}

TEST_CASE("rollout service: a failed canary stops it until another approval", "[rollout][service]") {
  World w(4);
  w.cluster.outcome["n0"] = {Outcome::returned, "acceptance"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.state() == "stopped");
  CHECK(w.status()["stop"] == "canary-failed");
  CHECK(w.cluster.runs.size() == 1);
  CHECK(code_of(w.start()) == Code::denied);  // of the next night
  CHECK(code_of(w.pause()) == Code::conflict);
  w.cluster.outcome.clear();
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: more failures than the budget stop it", "[rollout][service]") {
  World w(5);
  w.cluster.spec.failure_budget = 1;
  w.cluster.outcome["n1"] = {Outcome::returned, "x"};
  w.cluster.outcome["n3"] = {Outcome::quarantined, "x"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.cluster.orders.back().failure_budget == 1);
  w.end_run();
  CHECK(w.cluster.orders.back().failure_budget == 0);
  w.end_run();
  CHECK(w.status()["stop"] == "budget");
  CHECK(code_of(w.start()) == Code::denied);
}

TEST_CASE("rollout service: a pause ends after the batch under way", "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  CHECK(code_of(w.pause()) == Code::conflict);
  REQUIRE(w.start().ok());
  REQUIRE(w.pause().ok());
  CHECK(w.state() == "paused");
  w.end_run();
  CHECK(w.cluster.runs.size() == 1);
  CHECK(w.service->record()->row->done.size() == 1);
  CHECK(code_of(w.start()) == Code::denied);
  REQUIRE(w.resume().ok());
  CHECK(code_of(w.resume()) == Code::conflict);
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: a pause while a batch is planned keeps its run from beginning",
          "[rollout][service]") {
  World w(3);
  w.cluster.hold_plan = true;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  Result<Json> paused = fail(Code::failed, "no answer");
  w.service->pause("ada", [&](Result<Json> answer) { paused = std::move(answer); });
  w.cluster.held_plan();
  w.settle();
  CHECK(paused.ok());
  CHECK(w.cluster.runs.empty());
  CHECK(w.state() == "paused");
}

TEST_CASE("rollout service: a second start in a window changes nothing; one behind it is another night",
          "[rollout][service]") {
  World w(4);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  const Json again = w.start().value();
  CHECK(again["begun"] == false);
  CHECK(again["night"] == 1);
  CHECK(w.cluster.runs.size() == 1);
  w.reactor.advance(w.cluster.spec.window);
  w.end_run();
  CHECK(w.cluster.runs.size() == 1);  // no batch begins behind the window
  CHECK(w.status()["waits_for"] == "window");
  const Json next_night = w.start().value();
  CHECK(next_night["begun"] == true);
  CHECK(next_night["night"] == 2);
  CHECK(next_night["id"] == 1);
  CHECK(w.run().nodes == Names{"n1", "n2"});  // its canary was proven in the night before
}

TEST_CASE("rollout service: an operator's run goes first", "[rollout][service]") {
  World w(3);
  w.cluster.other_run = 99;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.empty());
  CHECK(w.status()["waits_for"] == "other-run");
  w.cluster.other_run = 0;
  w.service->poke();
  w.settle();
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: an operator's run that begins while a batch is planned goes first",
          "[rollout][service]") {
  World w(3);
  w.cluster.cannot_start = fail(Code::conflict, "run 99 is still active");
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.empty());
  CHECK_FALSE(w.service->record()->row->batch);
  w.cluster.cannot_start.reset();
  w.reactor.advance(RolloutService::kAgain + 1000);
  REQUIRE(w.cluster.runs.size() == 1);
  CHECK(w.run().by.rfind("rollout 1/2, ", 0) == 0);  // a batch's number is used once
}

TEST_CASE("rollout service: another spec stops it, and voids the approval", "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.now.spec_revision = 2;
  w.cluster.now.spec_digest = "spec2";
  w.service->poke();
  w.settle();
  CHECK(w.state() == "canary");  // its run goes on
  w.end_run();
  CHECK(w.status()["stop"] == "target-changed");
  CHECK(w.status()["not_covered"] != "");
  CHECK(code_of(w.start()) == Code::denied);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: a spec without the section, or an image that is not built, stops it",
          "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.broken = fail(Code::invalid, "no rollout");
  w.end_run();
  CHECK(w.status()["stop"] == "target-changed");
  CHECK(code_of(w.start()) == Code::invalid);
}

TEST_CASE("rollout service: an image built again is covered where the spec says so, with a canary of its own",
          "[rollout][service]") {
  for (const bool covered : {false, true}) {
    World w(3);
    w.cluster.now.rebuilt_images = covered;
    REQUIRE(w.approve().ok());
    REQUIRE(w.start().ok());
    w.cluster.now.images["gpu"].digest = "newer";
    w.end_run();
    CHECK(w.status()["stop"] == "target-changed");
    const auto again = w.start();
    REQUIRE(again.ok() == covered);
    if (!covered) continue;
    CHECK(again.value()["id"] == 2);
    CHECK(w.state() == "canary");
    CHECK(w.run().nodes.size() == 1);
    w.end_run();
    w.cluster.now.images["gpu"] = {"newest", "recipe2"};  // of another recipe
    w.end_run();
    CHECK(code_of(w.start()) == Code::denied);
  }
}

TEST_CASE("rollout service: a plan beyond the approval waits for a person", "[rollout][service]") {
  World w(3);
  w.cluster.destroys = true;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.empty());
  CHECK(w.state() == "paused");
  CHECK(w.status()["why_paused"] != "");
  w.cluster.destroys = false;
  REQUIRE(w.resume().ok());
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: nodes that the planner refuses are left for the night", "[rollout][service]") {
  World w(4);
  w.cluster.refuse = {"n1"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n2", "n3"});
  w.end_run();
  CHECK(w.status()["waits_for"] == "night");
  CHECK(w.service->record()->row->postponed.at("n1").refused);
  w.cluster.refuse.clear();
  w.reactor.advance(w.cluster.spec.window);
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1"});
}

TEST_CASE("rollout service: nodes without a way are left, and the rollout ends", "[rollout][service]") {
  World w(3);
  w.cluster.no_way = {"n1", "n2"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: a cancelled run pauses it", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.cancelled = {1};
  w.cluster.outcome["n0"] = {Outcome::unfinished, "cancelled"};
  w.end_run();
  CHECK(w.state() == "paused");
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: it waits for a section to heal, and looks again by itself",
          "[rollout][service]") {
  World w(4);
  w.cluster.groups.push_back({"data", GroupKind::storage, 1, true});
  for (const char* name : {"n1", "n2", "n3"}) w.cluster.node(name).groups = {0};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n1"});
  w.cluster.groups[0].healed = false;
  w.end_run();
  CHECK(w.cluster.runs.size() == 2);
  CHECK(w.status()["waits_for"] == "healing");
  w.cluster.groups[0].healed = true;
  w.reactor.advance(RolloutService::kAgain + 1000);
  CHECK(w.run().nodes == Names{"n2"});
}

TEST_CASE("rollout service: a window that closes while a section heals leaves nodes with that reason",
          "[rollout][service]") {
  World w(3);
  w.cluster.groups.push_back({"data", GroupKind::storage, 1, true});
  for (const char* name : {"n1", "n2"}) w.cluster.node(name).groups = {0};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  w.cluster.groups[0].healed = false;
  w.end_run();
  CHECK(w.status()["waits_for"] == "healing");
  w.reactor.advance(w.cluster.spec.window + RolloutService::kAgain);
  CHECK(w.service->record()->left == std::map<std::string, std::string>{{"n2", "healing: data"}});
}

TEST_CASE("rollout service: status knows the nodes without a way, as the loop does", "[rollout][service]") {
  World w(4);
  w.cluster.no_way = {"n3"};
  w.cluster.refuse = {"n1"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n2"});
  w.end_run();
  CHECK(w.status()["waits_for"] == "night");
  CHECK(w.service->record()->left.at("n3") == "no-way: as the test says");
}

TEST_CASE("rollout service: a run that ended unannounced is found within a minute", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.end_run();
  w.reactor.advance(RolloutService::kAgain + 1000);
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: killed before its run was known, it finds it again", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  w.cluster.die_at_start = true;
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.size() == 1);
  CHECK(w.service->record()->row->batch->run == 0);
  w.cluster.die_at_start = false;
  w.kill();
  CHECK(w.cluster.runs.size() == 1);
  REQUIRE(w.service->record()->row->batch);
  CHECK(w.service->record()->row->batch->run == 1);
  w.end_run();
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: killed before its run began, the batch begins once more", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  w.cluster.die_at_start = true;
  REQUIRE(w.start().ok());
  w.cluster.runs.clear();  // its row was not durable
  w.cluster.taken.clear();
  w.cluster.die_at_start = false;
  w.kill();
  CHECK_FALSE(w.service->record()->row->batch);
  w.reactor.advance(RolloutService::kAgain + 1000);
  REQUIRE(w.cluster.runs.size() == 1);
  CHECK(w.cluster.taken == std::map<std::string, int>{{"n0", 1}});
}

TEST_CASE("rollout service: killed at any point, no node is taken twice and all come through",
          "[rollout][service]") {
  for (const auto unsynced : {MemStore::Unsynced::lost, MemStore::Unsynced::kept})
    for (int at = 0; at < 60; ++at) {
      INFO("killed after " << at << " tasks");
      World w(4);
      REQUIRE(w.approve().ok());
      w.service->start([](Result<Json>) {});
      for (int i = 0; i < at && w.reactor.step(w.reactor.steady().ms + 50); ++i)
        if (!w.cluster.runs.empty() && !w.run().over && i % 3 == 2) {
          w.cluster.end_run();
          w.service->poke();
        }
      w.kill(unsynced);
      for (int i = 0; i < 20 && w.state() != "done"; ++i) {
        (void)w.start();  // it may not have been durable
        if (!w.cluster.runs.empty() && !w.run().over) w.end_run();
        w.reactor.advance(RolloutService::kAgain + 1000);
      }
      CHECK(w.state() == "done");
      CHECK(w.cluster.taken.size() == 4);
      for (const auto& [node, times] : w.cluster.taken) CHECK(times == 1);
    }
}

TEST_CASE("rollout service: a record that cannot be written leaves everything as it was",
          "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  w.store.fail_next(1, fail(Code::failed, "disk full"));
  CHECK_FALSE(w.start().ok());
  CHECK(w.state() == "approved");
  REQUIRE(w.start().ok());
  w.store.fail_next(1, fail(Code::failed, "disk full"));
  w.end_run();
  CHECK(w.service->record()->row->batch);
  w.reactor.advance(RolloutService::kAgain + 1000);
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: an approval is refused while a batch is under way", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(code_of(w.approve()) == Code::conflict);
}

TEST_CASE("rollout service: a plan says of each node which batch it is in, or why in none",
          "[rollout][service]") {
  World w(4);
  w.cluster.no_way = {"n2"};
  const Json plan = w.ask([&](auto done) { w.service->plan(done); }).value();
  CHECK(plan["approved"] == false);
  CHECK(plan["approval"]["digest"] == digest_of(w.cluster.now));
  REQUIRE(plan["batches"].size() == 2);
  CHECK(plan["batches"][0]["canary"] == true);
  CHECK(plan["batches"][1]["nodes"] == Json(Names{"n1", "n3"}));
  REQUIRE(plan["nodes"].size() == 4);
  CHECK(plan["nodes"][0]["batch"] == 1);
  CHECK(plan["nodes"][1]["way"] == "in-place");
  CHECK(plan["nodes"][2]["batch"] == 0);
  CHECK(plan["nodes"][2]["reason"] == "no-way");
  CHECK(w.cluster.runs.empty());
}
