// The executor's hooks for `check` actions, which judge acceptance: they apply the rules of
// controller/report/ to the agents' results. For the end of a run see conclude.h. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/facts.h"
#include "base/facts_text.h"
#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/plan/plan.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/verdict.h"
#include "controller/spec/spec.h"

namespace muster {

// Steps that are stored as text are returned without "peers" in their params, which in a large cluster take
// long to parse.
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

// Read for each node on first use. Thread: as its source.
class Inventories {
 public:
  using Source = std::function<FactsText(const std::string& node)>;
  explicit Inventories(Source source) : source_(std::move(source)) {}
  // Null: never seen, or not readable. Valid as long as this object.
  const HardwareFacts* of(const std::string& node);

 private:
  Source source_;
  std::map<std::string, std::shared_ptr<const HardwareFacts>> taken_;
};

// Returns the nodes whose own GPUs are checked by the plan.
std::set<std::string> checked_for_gpus(const Plan& plan);
// The same, with a cache of the last plan requested, which is read once for all results.
class GpuChecksOfPlan {
 public:
  const std::set<std::string>& of(const std::shared_ptr<const Plan>& plan);

 private:
  std::shared_ptr<const Plan> plan_;
  std::set<std::string> nodes_;
};

// Returns a mandatory check that did not run, if `facts` (the inventory just before acceptance) show real
// GPUs, the profile checks a node's own GPUs, and no such check is planned on this node, because no GPUs were
// found when the plan was made. The checks planned on other nodes show what the profile contains: if no node
// of the plan has such a check, none is required. `checked`: checked_for_gpus().
std::optional<Check> unplanned_gpus(const std::set<std::string>& checked, const std::string& node,
                                    const HardwareFacts* facts);
// True if the facts show GPUs that are not simulated by a lab.
bool has_real_gpus(const HardwareFacts* facts);

// What was read from the plan for one result, kept because the next result needs it, too.
struct KeptOfPlan {
  GpuChecksOfPlan gpus = {};
  StepsOfAction steps = {};
};

// Returns Code::failed with the first reason if what was found or measured on the action's node alone is not
// as declared, or if a test of several nodes gave no valid result. What depends on other nodes (fleet, links,
// speed of collectives, and whether all nodes miss the same floor) is judged in conclude().
Status judge(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
             const Json& result);

// Returns the first floor that the action's node missed in this result; "" if there is none.
std::string reservation(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
                        const Json& result);

// Returns the next round if a test of several nodes failed in the last attempt (`results.front()`): the same
// test in pairs, until the faulty node is isolated or there is no way to isolate it. nullopt: no further
// round, or the node failed by itself.
std::optional<FollowUp> follow_up(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor,
                                  const Action& action, const std::vector<Json>& results);

}  // namespace muster
