// GPUs that the plan knew nothing of: none were found when it was made, and the inventory just before
// acceptance shows them, so nothing that would measure them is planned. Thread: pure functions.
#pragma once

#include <optional>
#include <string>

#include "base/facts.h"
#include "controller/plan/plan.h"
#include "controller/report/verdict.h"

namespace muster {

// A mandatory check that did not run, where `facts` show real GPUs, the profile checks a node's own GPUs, and
// nothing of that is planned on this node. What the profile contains is seen by what is planned on the other
// nodes: where no node of the plan has such a check, nothing is demanded.
std::optional<Check> unplanned_gpus(const Plan& plan, const std::string& node, const HardwareFacts* facts);

}  // namespace muster
