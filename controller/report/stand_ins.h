// What a report says about GPUs that a lab stands in for: each such check says SIMULATED GPU, in its title,
// in what was found, and in its reason, which becomes that of its node. Verdicts are not changed here.
// Thread: pure functions.
#pragma once

#include <vector>

#include "base/facts.h"
#include "controller/report/report.h"

namespace muster {

// Checks of one node. About GPUs are those of steps "gpu ...", of metrics "gpu..." and "nvlink..." of other
// steps (without their title), of the hardware's GPUs, and those whose title says SIMULATED GPU already.
// Nothing is done unless `facts` has a stand-in.
void say_simulated(const HardwareFacts& facts, std::vector<Check>& checks);

}  // namespace muster
