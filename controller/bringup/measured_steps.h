// What check actions had to measure and what their agents returned, in the form that the rules of
// controller/report/ use; and functions to read JSON from agents. Thread: pure functions.
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
namespace told {

// A member if it exists and has that type; else "", 0, an empty list.
std::string text_of(const Json& object, const char* key);
int64_t whole_number_of(const Json& object, const char* key);
const Json& list_of(const Json& object, const char* key);

}  // namespace told

// An action's steps; those that are held as text without "peers" in their params. In a large cluster reading
// them takes long.
std::vector<wire::Step> planned_steps(const Action& action);
// The same, of the last action requested: its result is read several times.
class StepsOfAction {
 public:
  const std::vector<wire::Step>& of(const std::shared_ptr<const Plan>& plan, const Action& action);

 private:
  std::shared_ptr<const Plan> plan_;
  std::string action_;
  std::vector<wire::Step> steps_;
};

// The steps of a node's check, each with its result; a step without a result was not run. Those about GPUs
// are marked.
std::vector<MeasuredStep> measured_steps(const std::string& node, const std::vector<wire::Step>& planned,
                                         const Json& answered, const GpuHosts& hosts);

// For a plan's nodes. `spec` null: it cannot be read. Valid as long as `facts` and `spec`.
GpuHosts gpu_hosts(bool simulated, decltype(GpuHosts::facts) facts, const Spec* spec);

}  // namespace muster
