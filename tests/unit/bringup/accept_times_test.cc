// What nodes' acceptance took is looked up once, by a worker, before a plan is made that depends on it.
#include "controller/bringup/accept_times.h"

#include <memory>
#include <utility>

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/sim/early_store.h"

using namespace muster;

namespace {

// Counts what is read in full.
struct CountingStore : sim::StoreInFront {
  using StoreInFront::StoreInFront;
  void write(std::vector<Write> batch, Done done) override {
    store_.write(std::move(batch), std::move(done));
  }
  Result<std::vector<JournalRow>> journal_times(int64_t run) override {
    read.push_back(run);
    return store_.journal_times(run);
  }
  std::shared_ptr<RunArchive> archive() override { return {std::shared_ptr<RunArchive>(), this}; }
  std::vector<int64_t> read;
};

struct Bench {
  ManualReactor reactor;
  MemStore memory{reactor};
  CountingStore store{memory};
  std::vector<std::pair<PlanWorker::Task, PlanWorker::Task>> jobs;
  std::unique_ptr<AcceptTimes> times =
      std::make_unique<AcceptTimes>(store, [this](PlanWorker::Task work, PlanWorker::Task done) {
        jobs.emplace_back(std::move(work), std::move(done));
      });

  // Each of the nodes was configured in that time, and accepted.
  void run(int64_t id, PlanKind kind, const std::map<std::string, DurationMs>& nodes, TimeMs ended = 2) {
    Plan plan;
    plan.kind = kind;
    plan.spec_revision = id;  // so that no two are the same
    std::vector<Write> rows;
    for (const auto& [node, took] : nodes) {
      Action action;
      action.id = node + "/configure";
      action.node = NodeName(node);
      plan.nodes.push_back(node);
      plan.actions.push_back(action);
      for (const auto& [event, time] : {std::pair{"intent", TimeMs{10}}, std::pair{"succeeded", 10 + took}}) {
        JournalRow row;
        row.run = id;
        row.action = action.id;
        row.node = NodeName(node);
        row.event = event;
        row.time = time;
        rows.push_back(row);
      }
    }
    const std::string digest = plan_digest(plan);
    store.write({PlanRow{digest, std::string(to_string(kind)), id, 1, plan_text(plan)},
                 RunRow{id, digest, ended ? RunState::done : RunState::running, 1, ended, "test"}},
                {});
    store.write(std::move(rows), {});
    reactor.advance(kSecond);
  }
  void work() {
    while (!jobs.empty()) {
      const auto job = jobs.front();
      jobs.erase(jobs.begin());
      job.first();
      job.second();
    }
  }
  int answered = 0;
  void find(const AcceptTimes::Accepted& accepted) {
    times->find(accepted, [this] { ++answered; });
    work();
  }
};

}  // namespace

TEST_CASE("accept times: a worker reads each run once, and what was found is kept", "[bringup]") {
  Bench b;
  b.run(1, PlanKind::install, {{"n1", 100}, {"n2", 200}});
  CHECK(b.times->of("n1", 1) == 0);
  CHECK_FALSE(b.times->looked_for("n1", 1));
  b.times->find({{"n1", 1}, {"n2", 1}}, [&] { ++b.answered; });
  CHECK(b.answered == 0);
  CHECK(b.jobs.size() == 1);
  b.work();
  CHECK(b.answered == 1);
  CHECK(b.times->of("n1", 1) == 100);
  CHECK(b.times->of("n2", 1) == 200);
  b.find({{"n1", 1}, {"n2", 1}});
  b.find({});
  CHECK(b.answered == 3);
  CHECK(b.store.read == std::vector<int64_t>{1});
  // Accepted by another run: what was found before does not count.
  CHECK(b.times->of("n1", 2) == 0);
  CHECK_FALSE(b.times->looked_for("n1", 2));
  b.run(2, PlanKind::apply, {{"n1", 150}});
  b.find({{"n1", 2}, {"n2", 1}});
  CHECK(b.times->of("n1", 2) == 150);
  CHECK(b.times->of("n2", 1) == 200);
  CHECK(b.store.read == std::vector<int64_t>{1, 2});
}

TEST_CASE("accept times: behind a run that only measured, runs are passed over by their kind", "[bringup]") {
  Bench b;
  b.run(1, PlanKind::install, {{"n1", 100}});
  b.run(2, PlanKind::drain, {{"n1", 5}});
  b.run(3, PlanKind::accept, {{"n1", 9}});
  b.run(4, PlanKind::apply, {{"n2", 70}});
  b.run(5, PlanKind::accept, {{"n1", 9}});
  b.find({{"n1", 5}});
  CHECK(b.answered == 1);
  CHECK(b.times->of("n1", 5) == 100);
  CHECK(b.store.read == std::vector<int64_t>{4, 1});
  b.find({{"n3", 3}});
  CHECK(b.answered == 2);
  CHECK(b.times->looked_for("n3", 3));
  CHECK(b.times->of("n3", 3) == 0);
}

TEST_CASE("accept times: a run that cannot be read is tried again by the next plan", "[bringup]") {
  Bench b;
  b.find({{"n1", 1}});
  CHECK(b.answered == 1);
  CHECK(b.times->looked_for("n1", 1));
  CHECK(b.times->of("n1", 1) == 0);
  b.run(1, PlanKind::install, {{"n1", 100}});
  b.find({{"n1", 1}});
  CHECK(b.times->of("n1", 1) == 100);
  // Its plan is damaged: of that run nothing is known, and nothing ends with it.
  b.run(2, PlanKind::install, {{"n1", 300}});
  PlanRow damaged = b.store.plan(b.store.run(2)->plan_digest).value();
  damaged.json = "{";
  b.store.write({damaged}, {});
  b.reactor.advance(kSecond);
  b.find({{"n1", 2}});
  CHECK(b.answered == 3);
  CHECK(b.times->of("n1", 2) == 0);
}

TEST_CASE("accept times: with it gone no node goes on", "[bringup]") {
  Bench b;
  b.run(1, PlanKind::install, {{"n1", 100}});
  b.times->find({{"n1", 1}}, [&] { ++b.answered; });
  b.times.reset();
  b.work();
  CHECK(b.answered == 0);
}

TEST_CASE("accept times: of a run that has not ended what is there counts for the plan, and is not kept",
          "[bringup]") {
  Bench b;
  b.run(1, PlanKind::install, {{"n1", 100}}, 0);
  b.find({{"n1", 1}});
  CHECK(b.answered == 1);
  CHECK(b.times->looked_for("n1", 1));
  CHECK(b.times->of("n1", 1) == 100);
  // The rest of its journal comes with its end.
  JournalRow row;
  row.run = 1;
  row.action = "n1/configure";
  row.node = "n1";
  row.event = "intent";
  row.time = 1000;
  std::vector<Write> rows = {row};
  row.event = "succeeded";
  row.time = 1300;
  rows.push_back(row);
  RunRow ended = b.store.run(1).value();
  ended.state = RunState::done;
  ended.ended = 2000;
  rows.push_back(ended);
  b.store.write(std::move(rows), {});
  b.reactor.advance(kSecond);
  b.find({{"n1", 1}});
  CHECK(b.times->of("n1", 1) == 400);
  b.find({{"n1", 1}});
  CHECK(b.store.read == std::vector<int64_t>{1, 1});
}

TEST_CASE("accept times: of two searches at once the one of the newer run stays", "[bringup]") {
  Bench b;
  b.run(1, PlanKind::install, {{"n1", 100}});
  b.times->find({{"n1", 1}}, [&] { ++b.answered; });
  b.run(2, PlanKind::apply, {{"n1", 150}});
  b.times->find({{"n1", 2}}, [&] { ++b.answered; });
  REQUIRE(b.jobs.size() == 2);
  std::swap(b.jobs[0], b.jobs[1]);
  b.work();
  CHECK(b.answered == 2);
  CHECK(b.times->looked_for("n1", 2));
  CHECK(b.times->of("n1", 2) == 150);
}
