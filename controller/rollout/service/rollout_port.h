// What a rollout needs from the controller: the state of the cluster, builds of its images, a plan for a
// batch, its run, and the result of that run. RolloutWorld implements it in the daemon; tests have their own.
// Thread: the reactor's; `done` may be called before the call returns.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/plan/planner.h"
#include "controller/rollout/approval.h"
#include "controller/rollout/rollout_record.h"
#include "controller/rollout/rollout_view.h"

namespace muster {

struct SeenCluster {
  rollout::View view;     // target, night, window are not set; `way` is always "in place" (see find_ways())
  rollout::Approval now;  // what an approval would cover now
  RolloutSpec rollout;
  std::vector<std::string> notes = {};          // for the operator, before the approval
  std::map<std::string, TimeMs> built_at = {};  // the images of `now`; 0: unknown
};
struct BatchOrder {
  std::vector<std::string> nodes, prefetch;
  int failure_budget = 0;  // as PlanLimits; negative: any number
};
struct PlannedBatch {
  std::string digest;
  std::shared_ptr<const Plan> plan;    // null with refusals
  std::vector<Refusal> refusals = {};  // if not empty, nothing was planned
};

class RolloutPort {
 public:
  virtual ~RolloutPort() = default;
  // invalid, not_found: the spec has no rollout, or one of its images is not built. Other errors are retried.
  virtual Result<SeenCluster> look() = 0;
  virtual void find_ways(const std::vector<std::string>& nodes,
                         std::function<void(Result<std::vector<NodeWay>>)> done) = 0;
  virtual void plan(const BatchOrder& order, std::function<void(Result<PlannedBatch>)> done) = 0;
  // Starts the run of a plan that was made. An error: no run began.
  virtual void start(const std::string& digest, const std::string& by,
                     std::function<void(Result<int64_t>)> done) = 0;
  // Builds this image of the spec again, which takes minutes; until it succeeds the present one stays.
  virtual void build(const std::string& image, std::function<void(Status)> done) = 0;
  // Returns the run whose row has this tag (rollout::run_tag).
  virtual Result<std::optional<int64_t>> tagged(const std::string& tag) = 0;
  virtual Result<bool> ended(int64_t run) = 0;
  // `night` is not set.
  virtual void read_end(int64_t run, std::function<void(Result<rollout::RunEnd>)> done) = 0;
  // Called with the rollout's newest record, after it was written durably.
  virtual void changed(const rollout::Record& record) = 0;
};

}  // namespace muster
