// GPUs that the plan knew nothing of: none were found when it was made, and the inventory just before
// acceptance shows them, so nothing that would measure them is planned. Thread: pure functions.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/facts.h"
#include "controller/plan/plan.h"
#include "controller/report/verdict.h"

namespace muster {

// The nodes of whose own GPUs something in the plan is a check.
std::set<std::string> checked_for_gpus(const Plan& plan);
// The same, of the last plan requested: read once, however many results are judged.
class GpuChecksOfPlan {
 public:
  const std::set<std::string>& of(const std::shared_ptr<const Plan>& plan);

 private:
  std::shared_ptr<const Plan> plan_;
  std::set<std::string> nodes_;
};

// A mandatory check that did not run, where `facts` show real GPUs, the profile checks a node's own GPUs, and
// nothing of that is planned on this node. What the profile contains is seen by what is planned on the other
// nodes: where no node of the plan has such a check, nothing is demanded. `checked`: checked_for_gpus().
std::optional<Check> unplanned_gpus(const std::set<std::string>& checked, const std::string& node,
                                    const HardwareFacts* facts);
// Whether that is a question at all: the facts show GPUs that no lab plays.
bool has_real_gpus(const HardwareFacts* facts);

}  // namespace muster
