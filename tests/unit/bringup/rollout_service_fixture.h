// A cluster that does what each test says, under a rollout's loop, and a store that keeps what it synced.
#pragma once

#include <deque>
#include <set>

#include "controller/rollout/service/rollout_service.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

namespace muster::rollout::service_test {

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
    out.notes = notes;
    out.built_at = built_at;
    return out;
  }
  void build(const std::string& image, std::function<void(Status)> done) override {
    builds.push_back(image);
    if (hold_build) return void(held_build = std::move(done));
    if (build_fails.empty()) {
      built(image);
      return done(Ok{});
    }
    const Error error = build_fails.front();
    build_fails.pop_front();
    done(error);
  }
  void built(const std::string& image) {
    now.images.at(image).digest = image + " build " + std::to_string(builds.size());
    built_at[image] = clock();
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
    for (const auto& name : order.nodes)
      if (cannot_plan.count(name)) return done(cannot_plan.at(name));
    if (hold_plan) return void(held_plan = [this, order, done] { done(made(order)); });
    done(made(order));
  }
  PlannedBatch made(const BatchOrder& order) {
    std::vector<Refusal> refusals;
    for (const auto& name : order.nodes)
      if (name == refuse_beside)
        refusals.push_back({NodeName("storage1"), "storage-needed", "as the test says"});
      else if (refuse.count(name))
        refusals.push_back({NodeName(name), "storage-needed", "as the test says"});
    for (const auto& name : order.prefetch)
      if (refuse.count(name)) refusals.push_back({NodeName(name), "trial-short", "as the test says"});
    Plan plan;
    plan.kind = PlanKind::reimage;
    plan.spec_revision = now.spec_revision;
    plan.images["gpu"] = now.images.at("gpu").digest;
    plan.nodes = order.nodes;
    for (const auto& name : order.nodes)
      plan.actions.push_back({name + "/write", NodeName(name), ActionKind::write_slot, "image", "write"});
    for (const auto& name : order.nodes)
      if (destroys.count(name)) {
        plan.destroys.emplace_back();
        plan.destroys.back().node = NodeName(name);
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
    end.unwritten = unwritten;
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

  std::function<TimeMs()> clock;
  RolloutSpec spec;
  Approval now;
  std::map<std::string, TimeMs> built_at;
  std::vector<std::string> builds;  // in the order in which they began
  std::deque<Error> build_fails;    // of the next builds
  bool hold_build = false;
  std::function<void(Status)> held_build;
  std::vector<Node> nodes;
  std::vector<Group> groups;
  std::vector<std::string> notes;
  int64_t other_run = 0;
  std::optional<Error> broken, cannot_start;
  std::set<std::string> no_way, refuse, destroys;
  std::string refuse_beside;                 // plans with it are refused, naming another node
  std::map<std::string, Error> cannot_plan;  // plans with one of these fail
  std::map<std::string, std::string> unwritten;
  bool hold_plan = false, die_at_start = false;
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
  explicit World(size_t nodes) : cluster(nodes), store(reactor) {
    cluster.clock = [this] { return reactor.now(); };
    restart();
  }

  void restart() {
    service = std::make_unique<RolloutService>(reactor, store, cluster, [this] {
      return BootTime{boot, reactor.steady().ms - booted};
    });
    service->begin();
    settle();
  }
  // The controller is killed; what was synced is there.
  void kill(MemStore::Unsynced unsynced = MemStore::Unsynced::lost) {
    service.reset();
    store.crash(unsynced);
    restart();
  }
  // The controller's machine restarts: its clock of the boot begins again.
  void reboot() {
    service.reset();
    store.crash(MemStore::Unsynced::lost);
    boot += "+";
    booted = reactor.steady().ms;
    restart();
  }
  void settle() { reactor.advance(100); }
  Result<Json> request(const std::function<void(RolloutService::Done)>& what) {
    Result<Json> out = fail(Code::failed, "no answer");
    what([&](Result<Json> answer) { out = std::move(answer); });
    settle();
    return out;
  }
  Result<Json> approve(const std::vector<std::string>& canaries = {}) {
    return request([&](auto done) { service->approve({digest_of(cluster.now), "ada", canaries}, done); });
  }
  Result<Json> start(WindowStart how = {}) {
    return request([&](auto done) { service->start(how, done); });
  }
  Result<Json> pause() {
    return request([this](auto done) { service->pause("ada", done); });
  }
  Result<Json> resume() {
    return request([this](auto done) { service->resume(done); });
  }
  Json status() {
    return request([this](auto done) { service->status(done); }).value();
  }
  void end_run() {
    cluster.end_run();
    service->poke();
    settle();
  }
  void end_build(const Status& ended = Ok{}) {
    if (ended.ok()) cluster.built(cluster.builds.back());
    const auto held = std::move(cluster.held_build);
    held(ended);
    settle();
  }
  const FakeCluster::Run& run() { return cluster.runs.back(); }
  std::string state() { return status()["state"].get<std::string>(); }

  ManualReactor reactor;
  FakeCluster cluster;
  MemStore store;
  std::unique_ptr<RolloutService> service;
  std::string boot = "boot 1";
  int64_t booted = 0;
};

using Names = std::vector<std::string>;

inline Code code_of(const Result<Json>& answer) { return answer.ok() ? Code::failed : answer.error().code; }

}  // namespace muster::rollout::service_test
