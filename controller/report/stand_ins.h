// Marks checks of GPUs that a lab simulates: each such check contains SIMULATED GPU in its title, in what was
// found, and in its reason, which becomes the reason of its node. Verdicts are not changed. Thread safety:
// stateless functions.
#pragma once

#include <vector>

#include "base/facts.h"
#include "controller/report/report.h"

namespace muster {

// Takes the checks of one node. GPU checks are: steps "gpu ...", metrics "gpu..." and "nvlink..." of other
// steps (whose titles are not changed), the hardware check of GPUs, and checks whose title has SIMULATED GPU
// already. Does nothing unless `facts` has a stand-in.
void say_simulated(const HardwareFacts& facts, std::vector<Check>& checks);

}  // namespace muster
