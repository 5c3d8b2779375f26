// Mandatory GPU speeds: puts limits from signed results of the same GPU model into acceptance steps.
#pragma once

#include <string>
#include <vector>

#include "controller/plan/plan_steps.h"
#include "controller/report/gpu_results.h"

namespace muster {

// Changes the steps that measure this node's own GPUs: everything about them becomes mandatory, and each
// speed gets `proven`, {by, ratio, models: {model: {value, gpus}}}, instead of the value in the GPU table.
// Adds a problem for each speed that the results lack for this node's model; if the GPU driver was never
// loaded (`facts` has only a PCI id, or nothing), the declared model is used, and controller/report later
// judges the model that is found. The changed steps do not depend on `facts`.
void hold_to_results(const GpuResults& results, const NodeSpec& node, const HardwareFacts* facts,
                     std::vector<PlannedStep>& steps, std::vector<std::string>& problems);

}  // namespace muster
