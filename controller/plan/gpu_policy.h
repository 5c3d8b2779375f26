// GPUs whose speeds stop a node: the steps of an acceptance profile held to signed results of the same model.
#pragma once

#include <string>
#include <vector>

#include "controller/plan/plan_steps.h"
#include "controller/report/gpu_results.h"

namespace muster {

// Of the steps that measure this node's own GPUs: everything about them becomes mandatory, and each speed
// gets `proven`, {by, ratio, models: {model: {value, gpus}}}, in the place of the table's value. A problem
// for each speed that the results do not have of the model this node has; of one whose driver was never
// loaded (`facts` tells a PCI id, or nothing) the model it declares counts, and controller/report judges what
// is found. What is written into the steps does not depend on `facts`.
void hold_to_results(const GpuResults& results, const NodeSpec& node, const HardwareFacts* facts,
                     std::vector<PlannedStep>& steps, std::vector<std::string>& problems);

}  // namespace muster
