#include "controller/bringup/plan_worker.h"

#include <fmt/format.h>

#include <utility>

#include "sys/contain.h"

namespace muster {
namespace {

Error not_planned() {
  return fail(Code::failed, "planning failed because of an internal error: see the controller's log");
}

}  // namespace

Result<MadePlanPtr> make_plan_of(const PlanningSnapshot& snapshot, const PlanWorker::Render& show) {
  auto made = std::make_shared<MadePlan>();
  made->inputs = inputs_of(snapshot);
  TRY(auto outcome, make_plan(planner_input(snapshot)));
  made->refusals = std::move(outcome.refusals);
  if (!made->refusals.empty()) return MadePlanPtr(std::move(made));
  made->plan = std::make_shared<const Plan>(std::move(outcome.plan));
  made->digest = plan_digest(*made->plan);
  if (!made->plan->empty()) made->json = plan_text(*made->plan);
  if (show) made->shown = show(*made);
  return MadePlanPtr(std::move(made));
}

void PlanWorker::make(Look look, Render show, Done done) {
  carry_out(
      std::move(look),
      [show = std::move(show)](const PlanningSnapshot& snapshot) { return make_plan_of(snapshot, show); },
      std::move(done));
}

void PlanWorker::carry_out(Look look, Work work, Done done) {
  if (waiting_.size() >= kMostWaiting)
    return done(
        fail(Code::unavailable,
             fmt::format("{} planning requests are already waiting: try again later", waiting_.size())));
  waiting_.push_back({std::move(look), std::move(work), std::move(done)});
  next();
}

void PlanWorker::next() {
  while (!busy_ && !waiting_.empty()) {
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    // The next requests are handled even if this one fails.
    Result<PlanningSnapshot> snapshot = not_planned();
    contain_exceptions("reading the inputs of a plan", [&] { snapshot = job.look(); });
    if (snapshot.ok()) return start(std::move(job), std::move(snapshot).value());
    const auto alive = alive_.watch();
    contain_exceptions("returning a plan", [&] { job.done(std::move(snapshot).error()); });
    if (!*alive) return;
  }
}

void PlanWorker::start(Job job, PlanningSnapshot snapshot) {
  busy_ = true;
  auto made = std::make_shared<Result<MadePlanPtr>>(not_planned());
  offload_([snapshot = std::make_shared<const PlanningSnapshot>(std::move(snapshot)),
            work = std::move(job.work), made] { *made = work(*snapshot); },
           [this, alive = alive_.watch(), made, done = std::move(job.done)] {
             if (!*alive) return;
             busy_ = false;
             contain_exceptions("returning a plan", [&] { done(std::move(*made)); });
             if (*alive) next();
           });
}

}  // namespace muster
