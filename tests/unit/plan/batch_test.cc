// Plans of batches of rollouts: the next batch's slots are written beside them; and by which way a node goes.
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

PlannerInput batch_of(const std::vector<std::string>& nodes, const std::set<std::string>& prefetch) {
  PlannerInput in = five_at_work();
  in.images["cpu"].digest = "sha256:new";
  in.spec.storage.clear();
  in.request.kind = RequestKind::reimage;
  in.request.nodes = nodes;
  in.request.batch = BatchTerms{prefetch, kMinute, 60 * kMinute, 0};
  return in;
}

Plan plan_of(const PlannerInput& in) {
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  for (const auto& refusal : made->refusals) FAIL(refusal.node + ": " + refusal.message);
  return made->plan;
}

}  // namespace

TEST_CASE(
    "batch: the next one's slots are written when this one leaves its systems, and nothing else is done",
    "[plan][batch]") {
  const Plan plan = plan_of(batch_of({"node01", "node02"}, {"node03"}));
  CHECK(plan.nodes == std::vector<std::string>{"node01", "node02", "node03"});
  CHECK(plan.serving == std::vector<std::string>{"node03"});
  CHECK(ids_of(plan, "node03", false) == std::vector<std::string>{"write", "look"});
  CHECK(ids_of(plan, "node03", true) == std::vector<std::string>{"look-old"});
  const Action* write = plan.find("node03/write");
  REQUIRE(write);
  CHECK(write->kind == ActionKind::write_slot);
  REQUIRE(write->behind >= 0);
  const auto& before = plan.barriers.at(static_cast<size_t>(write->behind));
  CHECK(before.size() == 2);
  // A prefetch holds none of the batch.
  for (const auto& barrier : plan.barriers)
    for (const auto& id : barrier) CHECK(!id.starts_with("node03/"));
  CHECK(plan.config_digests.count("node03") == 0);
}

TEST_CASE("batch: nodes that do not go in place, or are away, are not prefetched", "[plan][batch]") {
  PlannerInput in = batch_of({"node01"}, {"node02", "node03", "node04", "nobody"});
  in.nodes["node02"].on_trial = true;
  in.nodes["node03"].online = false;
  in.nodes["node04"].facts->boot.no_trial = "no systemd-boot";
  const Plan plan = plan_of(in);
  CHECK(plan.nodes == std::vector<std::string>{"node01"});
  CHECK(plan.serving.empty());
}

TEST_CASE("ways: in place, through the RAM system, or none, each with its reason", "[plan][batch]") {
  PlannerInput in = batch_of({"node01", "node02", "node03", "node04"}, {});
  in.nodes["node02"].facts->boot.no_trial = "no systemd-boot";
  in.nodes["node03"].held_by = HeldBy::an_operator;
  in.nodes["node04"].facts.reset();
  const auto ways = ways_of(in);
  REQUIRE(ways.ok());
  REQUIRE(ways->size() == 4);
  CHECK(ways->at(0).by == NodeWay::By::in_place);
  CHECK(ways->at(1).by == NodeWay::By::through_ram);
  CHECK(ways->at(1).why == "no systemd-boot");
  CHECK(ways->at(2).by == NodeWay::By::none);
  CHECK(ways->at(3).by == NodeWay::By::none);
  for (size_t i = 1; i < 4; ++i) CHECK_FALSE(ways->at(i).why.empty());
}
