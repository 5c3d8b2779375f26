#include "controller/bringup/plan_worker.h"

#include <utility>

#include "base/contain.h"
#include "controller/plan/lint.h"

namespace muster {

Result<MadePlanPtr> make_plan_of(const PlanningSnapshot& snapshot, const PlanWorker::Show& show) {
  auto made = std::make_shared<MadePlan>();
  made->inputs = inputs_of(snapshot);
  TRY(auto outcome, make_plan(planner_input(snapshot)));
  made->refusals = std::move(outcome.refusals);
  if (!made->refusals.empty()) return MadePlanPtr(std::move(made));
  made->plan = std::make_shared<const Plan>(std::move(outcome.plan));
  for (const auto& problem : lint_plan(*made->plan)) made->refusals.push_back({"", "lint", problem});
  made->digest = plan_digest(*made->plan);
  if (!made->plan->empty()) made->json = plan_text(*made->plan);
  if (show && made->refusals.empty()) made->shown = show(*made);
  return MadePlanPtr(std::move(made));
}

void PlanWorker::make(Look look, Show show, Done done) {
  waiting_.push_back({std::move(look), std::move(show), std::move(done)});
  next();
}

void PlanWorker::next() {
  while (!busy_ && !waiting_.empty()) {
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    auto snapshot = job.look();
    if (snapshot.ok()) return start(std::move(job), std::move(snapshot).value());
    const auto alive = alive_;
    job.done(std::move(snapshot).error());
    if (!*alive) return;
  }
}

void PlanWorker::start(Job job, PlanningSnapshot snapshot) {
  busy_ = true;
  auto made = std::make_shared<Result<MadePlanPtr>>(
      fail(Code::failed, "it was not planned, which is a fault of muster: see the controller's log"));
  offload_([snapshot = std::make_shared<const PlanningSnapshot>(std::move(snapshot)),
            show = std::move(job.show), made] { *made = make_plan_of(*snapshot, show); },
           [this, alive = alive_, made, done = std::move(job.done)] {
             if (!*alive) return;
             busy_ = false;
             contain_exceptions("the end of a plan", [&] { done(std::move(*made)); });
             if (*alive) next();
           });
}

}  // namespace muster
