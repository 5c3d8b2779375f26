// Plans are made elsewhere, one after the other, from what was the case when the turn came.
#include "controller/bringup/plan_worker.h"

#include <stdexcept>

#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

PlanningSnapshot snapshot_of(std::vector<std::string> nodes) {
  PlanningSnapshot out;
  out.spec =
      std::make_shared<const SpecRevision>(SpecRevision{1, "sha256:spec", parse_spec(testing::kSpec).spec});
  auto books = std::make_shared<Playbooks>();
  books->all = testing::playbooks();
  out.playbooks = books;
  out.in.lab = true;
  out.in.request.nodes = std::move(nodes);
  for (const char* name : {"node01", "node02", "node03"}) out.in.nodes[name] = {};
  return out;
}

// Carries out nothing by itself.
struct Bench {
  struct Job {
    PlanWorker::Task work, done;
  };
  std::vector<Job> jobs;
  PlanWorker worker{[this](PlanWorker::Task work, PlanWorker::Task done) {
    jobs.push_back({std::move(work), std::move(done)});
  }};
  std::vector<std::string> looked, answered;
  std::vector<MadePlanPtr> made;

  void request(const std::string& node, PlanWorker::Render show = {}) {
    worker.make(
        [this, node] {
          looked.push_back(node);
          return snapshot_of({node});
        },
        std::move(show),
        [this, node](Result<MadePlanPtr> plan) {
          answered.push_back(plan.ok() ? node : node + ": " + std::string(to_string(plan.error().code)));
          if (plan.ok()) made.push_back(*plan);
        });
  }
  void carry_out_next() {
    REQUIRE_FALSE(jobs.empty());
    const Job job = jobs.front();
    jobs.erase(jobs.begin());
    try {
      job.work();
    } catch (const std::exception&) {  // the reactor contains it, and goes on
    }
    job.done();
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("plan worker: each who asks gets the own plan, in order, from what was the case then",
          "[bringup]") {
  Bench b;
  b.request("node01");
  b.request("node02");
  CHECK(b.looked == Names{"node01"});
  CHECK(b.jobs.size() == 1);
  CHECK(b.answered.empty());
  b.carry_out_next();
  CHECK(b.answered == Names{"node01"});
  CHECK(b.looked == Names{"node01", "node02"});
  b.carry_out_next();
  CHECK(b.answered == Names{"node01", "node02"});
  CHECK(b.jobs.empty());
  REQUIRE(b.made.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(b.made[i]->plan->nodes == Names{b.answered[i]});
    CHECK(b.made[i]->plan->kind == PlanKind::discover);
    CHECK(b.made[i]->digest == plan_digest(*b.made[i]->plan));
    CHECK(plan_digest(plan_from_json(parse_json(b.made[i]->json).value()).value()) == b.made[i]->digest);
    CHECK(changed_inputs(b.made[i]->inputs, inputs_of(snapshot_of({b.answered[i]}))).empty());
  }
}

TEST_CASE("plan worker: what cannot be looked at, planned or shown is an answer, and the next has its turn",
          "[bringup]") {
  Bench b;
  b.worker.make([]() -> Result<PlanningSnapshot> { return fail(Code::unavailable, "no rows"); }, {},
                [&](Result<MadePlanPtr> plan) {
                  REQUIRE_FALSE(plan.ok());
                  b.answered.push_back(std::string(to_string(plan.error().code)));
                });
  CHECK(b.answered == Names{"unavailable"});
  b.request("no node");
  b.request("node01", [](const MadePlan&) -> std::string { throw std::runtime_error("a fault"); });
  b.request("node02", [](const MadePlan& made) { return "for " + made.plan->nodes.front(); });
  for (int i = 0; i < 3; ++i) b.carry_out_next();
  CHECK(b.answered == Names{"unavailable", "no node: invalid", "node01: failed", "node02"});
  CHECK(b.made.front()->shown == "for node02");
}

TEST_CASE("plan worker: one that answers at once answers all", "[bringup]") {
  std::vector<std::string> answered;
  PlanWorker worker([](PlanWorker::Task work, PlanWorker::Task done) {
    work();
    done();
  });
  // Who is answered may ask again.
  worker.make([] { return snapshot_of({"node01"}); }, {},
              [&](Result<MadePlanPtr> first) {
                answered.push_back(first.value()->plan->nodes.front());
                worker.make([] { return snapshot_of({"node02"}); }, {},
                            [&](Result<MadePlanPtr> second) {
                              answered.push_back(second.value()->plan->nodes.front());
                            });
              });
  CHECK(answered == Names{"node01", "node02"});
}

TEST_CASE("plan worker: one that is gone answers no request", "[bringup]") {
  std::vector<PlanWorker::Task> later;
  bool answered = false;
  {
    PlanWorker worker([&](PlanWorker::Task work, PlanWorker::Task done) {
      later.push_back(std::move(work));
      later.push_back(std::move(done));
    });
    worker.make([] { return snapshot_of({"node01"}); }, {},
                [&](const Result<MadePlanPtr>&) { answered = true; });
  }
  for (const auto& task : later) task();
  CHECK_FALSE(answered);
}

TEST_CASE("plan worker: a look that throws is an answer, and those behind it have their turn", "[bringup]") {
  Bench b;
  b.request("node01");
  b.worker.make([]() -> Result<PlanningSnapshot> { throw std::runtime_error("a folder is gone"); }, {},
                [&](Result<MadePlanPtr> plan) {
                  REQUIRE_FALSE(plan.ok());
                  b.answered.push_back(std::string(to_string(plan.error().code)));
                  throw std::runtime_error("nor can that be said");
                });
  b.request("node02");
  for (int i = 0; i < 2; ++i) b.carry_out_next();
  CHECK(b.answered == Names{"node01", "failed", "node02"});
}

TEST_CASE("plan worker: only so many wait, and there is room again for the next", "[bringup]") {
  Bench b;
  for (size_t i = 0; i < PlanWorker::kMostWaiting + 2; ++i) b.request("node01");  // one is at work
  CHECK(b.answered == Names{"node01: unavailable"});
  b.carry_out_next();
  b.request("node02");
  CHECK(b.answered == Names{"node01: unavailable", "node01"});
  while (!b.jobs.empty()) b.carry_out_next();
  CHECK(b.answered.size() == PlanWorker::kMostWaiting + 3);
  CHECK(b.answered.back() == "node02");
}
