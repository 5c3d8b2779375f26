// Brings the planned steps of check actions and the agents' results into the form that the rules of
// controller/report/ use; and functions to read JSON from agents. Thread safety: stateless functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/verdict.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns an action's steps; those that are stored as text are returned without "peers" in their params,
// which in a large cluster take long to parse.
std::vector<wire::Step> planned_steps(const Action& action);
// The same, with a cache of the last action requested, since its result is read several times.
class StepsOfAction {
 public:
  const std::vector<wire::Step>& of(const std::shared_ptr<const Plan>& plan, const Action& action);

 private:
  std::shared_ptr<const Plan> plan_;
  std::string action_;
  std::vector<wire::Step> steps_;
};

// Returns the steps of a node's check, each with its result; a step without a result was not run. Steps about
// GPUs are marked.
std::vector<MeasuredStep> measured_steps(const std::string& node, const std::vector<wire::Step>& planned,
                                         const Json& answered, const GpuHosts& hosts);

// Returns the GPU hosts of a plan. `spec` null: it cannot be read. Valid as long as `facts` and `spec`.
GpuHosts gpu_hosts(bool simulated, decltype(GpuHosts::facts) facts, const Spec* spec);

}  // namespace muster
