// Detects GPUs that are not in the plan: none were found when it was made, but the inventory just before
// acceptance shows them, so no check that measures them is planned. Thread safety: stateless functions.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/facts.h"
#include "controller/plan/plan.h"
#include "controller/report/verdict.h"

namespace muster {

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

// Returns a mandatory check that did not run, if `facts` show real GPUs, the profile checks a node's own
// GPUs, and no such check is planned on this node. The checks planned on other nodes show what the profile
// contains: if no node of the plan has such a check, none is required. `checked`: checked_for_gpus().
std::optional<Check> unplanned_gpus(const std::set<std::string>& checked, const std::string& node,
                                    const HardwareFacts* facts);
// True if the facts show GPUs that are not simulated by a lab.
bool has_real_gpus(const HardwareFacts* facts);

}  // namespace muster
