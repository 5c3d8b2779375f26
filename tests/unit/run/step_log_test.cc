#include "controller/run/step_log.h"

#include "controller/run/run_limits.h"
#include "tests/catch.h"

using namespace muster;

namespace {

JournalRow row(const std::string& event, int attempt) {
  JournalRow r;
  r.action = "node01/image";
  r.node = "node01";
  r.event = event;
  r.attempt = attempt;
  return r;
}

}  // namespace

TEST_CASE("the step log takes a legal story and knows its end", "[run]") {
  StepLog log;
  for (const auto& [event, attempt] : std::vector<std::pair<std::string, int>>{{"intent", 1},
                                                                               {"started", 1},
                                                                               {"step", 1},
                                                                               {"unknown", 1},
                                                                               {"intent", 2},
                                                                               {"failed", 2},
                                                                               {"intent", 3},
                                                                               {"succeeded", 3}})
    REQUIRE(log.apply(row(event, attempt)).ok());
  CHECK(log.of("node01/image").state == ActionState::succeeded);
  CHECK(log.of("node01/image").attempt == 3);
  CHECK(log.of("node02/image").state == ActionState::fresh);
}

TEST_CASE("the step log refuses everything else and stays as it was", "[run]") {
  StepLog log;
  CHECK_FALSE(log.apply(row("succeeded", 1)).ok());  // no intent
  CHECK_FALSE(log.apply(row("intent", 2)).ok());     // attempts count from 1
  REQUIRE(log.apply(row("intent", 1)).ok());
  CHECK_FALSE(log.apply(row("intent", 2)).ok());     // the first one has not ended
  CHECK_FALSE(log.apply(row("succeeded", 2)).ok());  // result of another attempt
  REQUIRE(log.apply(row("succeeded", 1)).ok());
  for (const char* event : {"intent", "started", "failed", "unknown", "abandoned", "succeeded"}) {
    CHECK_FALSE(log.apply(row(event, 1)).ok());
    CHECK_FALSE(log.apply(row(event, 2)).ok());
  }
  CHECK(log.of("node01/image").state == ActionState::succeeded);
}

TEST_CASE("limits count per lane and keep power-ons apart", "[run]") {
  PlanLimits plan;
  plan.parallel_imaging = 1;
  plan.parallel_netboot = 2;
  plan.power_stagger = 1000;
  plan.failure_budget = 1;
  Limits limits(plan);
  CHECK(limits.may_begin(Limits::Lane::imaging));
  limits.begin(Limits::Lane::imaging, "a");
  limits.begin(Limits::Lane::imaging, "a");
  CHECK_FALSE(limits.may_begin(Limits::Lane::imaging));
  CHECK(limits.may_begin(Limits::Lane::netboot));
  limits.end(Limits::Lane::imaging, "a");
  CHECK(limits.may_begin(Limits::Lane::imaging));
  CHECK(limits.reserve_power_on(SteadyMs{5000}) == SteadyMs{5000});
  CHECK(limits.reserve_power_on(SteadyMs{5001}) == SteadyMs{6000});
  CHECK(limits.reserve_power_on(SteadyMs{5002}) == SteadyMs{7000});
  CHECK(limits.reserve_power_on(SteadyMs{90000}) == SteadyMs{90000});
  CHECK_FALSE(limits.budget_spent(1));
  CHECK(limits.budget_spent(2));
}
