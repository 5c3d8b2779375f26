// PlanWorker: makes plans on a worker thread without blocking the reactor. One at a time: a plan of a large
// cluster takes much memory, and two at once would not be faster. The inputs of a plan are read when its turn
// comes. Thread: the reactor's; functions that run on the worker are marked.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/alive.h"
#include "base/result.h"
#include "controller/bringup/planning_snapshot.h"
#include "controller/plan/planner.h"

namespace muster {

struct MadePlan {
  std::shared_ptr<const Plan> plan = std::make_shared<const Plan>();
  std::string digest = {};
  std::vector<Refusal> refusals = {};  // if not empty, only this and `inputs` are set
  std::string json = {};               // the plan as stored; empty if it has no actions
  PlannedInputs inputs = {};
  std::string shown = {};  // the result of `show`
};
// Owned by the caller, which may move the texts out: for a large cluster they are hundreds of megabytes.
using MadePlanPtr = std::shared_ptr<MadePlan>;

class PlanWorker {
 public:
  using Task = std::function<void()>;
  // Runs `work` on another thread, then `done` on the reactor's, even if `work` threw.
  using Offload = std::function<void(Task work, Task done)>;
  using Look = std::function<Result<PlanningSnapshot>()>;
  using Render = std::function<std::string(const MadePlan&)>;  // on the worker's thread; may be null
  using Work = std::function<Result<MadePlanPtr>(const PlanningSnapshot&)>;  // on the worker's thread
  using Done = std::function<void(Result<MadePlanPtr>)>;

  explicit PlanWorker(Offload offload) : offload_(std::move(offload)) {}
  ~PlanWorker() { alive_.end(); }  // `done` is not called after this
  PlanWorker(const PlanWorker&) = delete;
  PlanWorker& operator=(const PlanWorker&) = delete;

  // unavailable: too many plans are waiting. A plan is made even if its requester has given up.
  void make(Look look, Render show, Done done);
  // The same for other work on the inputs of a plan, in the same queue.
  void carry_out(Look look, Work work, Done done);

  static constexpr size_t kMostWaiting = 16;

 private:
  struct Job {
    Look look;
    Work work;
    Done done;
  };
  void next();
  void start(Job job, PlanningSnapshot snapshot);

  Offload offload_;
  std::deque<Job> waiting_;
  bool busy_ = false;
  Alive alive_;
};

// Runs on the worker thread.
Result<MadePlanPtr> make_plan_of(const PlanningSnapshot& snapshot, const PlanWorker::Render& show);

}  // namespace muster
